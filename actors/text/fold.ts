/**
 * Case folding as RE2 does it: every code point becomes one representative of its orbit, the code points that RE2 takes
 * for one another under (?i) (simple folding, one code point for one; the dotted capital I and the sharp s with its
 * expansions stay what they are). The representative is the smallest of the orbit, lower case for ASCII letters: so the
 * Kelvin sign, K and k meet in k, and folded text is never longer than its source.
 *
 * The index and the plans fold by this one table, and a document that RE2 matches without regard to case has the
 * folded bytes of the pattern. A test derives the table from the installed RE2 itself.
 */
import { foldTable } from './fold-table.ts';

const codePointsFolded = 0x20000;

/** By code point, the low 16 bits of its representative, which lies in the same plane. Planes above these don't fold. */
const lowBits = Uint16Array.from({ length: codePointsFolded }, (_, codePoint) => codePoint);
/** By ASCII byte, of the same table: one small line of cache for the hot path. */
const ascii = new Uint8Array(128);

/** Code points that are not their own representative, and those, in the order of the former: for whoever needs orbits. */
export const foldedPairs: readonly (readonly [codePoint: number, representative: number])[] =
  foldTable.flatMap(([first, last, step, distance]) =>
    Array.from({ length: (last - first) / step + 1 }, (_, at) => {
      const codePoint = first + at * step;
      return [codePoint, codePoint + distance] as const;
    }),
  );
for (const [codePoint, representative] of foldedPairs) lowBits[codePoint] = representative & 0xffff;
for (let byte = 0; byte < 128; byte++) ascii[byte] = lowBits[byte] ?? 0;

export function foldCodePoint(codePoint: number): number {
  if (codePoint >= codePointsFolded) return codePoint;
  return (codePoint & 0x10000) | (lowBits[codePoint] ?? 0);
}

/** Room that folded text needs for `length` bytes of source: a representative is the smallest of its orbit. */
export function foldedBytesMax(length: number): number {
  return length;
}

/**
 * Writes the folded form of source[start, end) into target from `at` on and answers where it ends. Source and target may
 * be the same where `at` is not above `start`. Bytes that are no UTF-8 are copied one by one.
 *
 * Hot: each byte that is indexed passes here. ASCII, most of the world's source code, goes eight bytes at a time, which
 * doubled the speed; measured by test/bench/fold.bench.ts.
 */
export function foldUtf8(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  let from = start;
  let to = at;
  while (from < end) {
    const byte = source[from] as number;
    if (byte < 0x80) {
      const run = foldAsciiEights(source, from, end, target, to);
      from += run;
      to += run;
      if (run === 0) {
        target[to++] = ascii[byte] as number;
        from++;
      }
      continue;
    }
    const codePoint = byte < 0xc2 ? malformed : decode(source, from, end, byte);
    if (codePoint === malformed) {
      target[to++] = byte;
      from++;
      continue;
    }
    from += byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    to = encodeUtf8(foldCodePoint(codePoint), target, to);
  }
  return to;
}

/** Folds as many whole eights of ASCII bytes as stand at `from`; answers how many bytes those are. */
function foldAsciiEights(
  source: Uint8Array,
  from: number,
  end: number,
  target: Uint8Array,
  to: number,
): number {
  let run = 0;
  for (; from + run + 8 <= end; run += 8) {
    const i = from + run;
    const a = source[i] as number;
    const b = source[i + 1] as number;
    const c = source[i + 2] as number;
    const d = source[i + 3] as number;
    const e = source[i + 4] as number;
    const f = source[i + 5] as number;
    const g = source[i + 6] as number;
    const h = source[i + 7] as number;
    if ((a | b | c | d | e | f | g | h) >= 0x80) break;
    const o = to + run;
    target[o] = ascii[a] as number;
    target[o + 1] = ascii[b] as number;
    target[o + 2] = ascii[c] as number;
    target[o + 3] = ascii[d] as number;
    target[o + 4] = ascii[e] as number;
    target[o + 5] = ascii[f] as number;
    target[o + 6] = ascii[g] as number;
    target[o + 7] = ascii[h] as number;
  }
  return run;
}

const malformed = -1;

/** The code point whose lead byte stands at `from`; malformed where continuation bytes are missing or it is overlong. */
function decode(source: Uint8Array, from: number, end: number, lead: number): number {
  const second = from + 1 < end ? (source[from + 1] as number) ^ 0x80 : 0xff;
  if (second > 0x3f) return malformed;
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | second;
  const third = from + 2 < end ? (source[from + 2] as number) ^ 0x80 : 0xff;
  if (third > 0x3f) return malformed;
  if (lead < 0xf0) {
    const codePoint = ((lead & 0x0f) << 12) | (second << 6) | third;
    return codePoint < 0x800 ? malformed : codePoint;
  }
  const fourth = from + 3 < end ? (source[from + 3] as number) ^ 0x80 : 0xff;
  if (fourth > 0x3f || lead > 0xf4) return malformed;
  const codePoint = ((lead & 0x07) << 18) | (second << 12) | (third << 6) | fourth;
  return codePoint < 0x10000 || codePoint > 0x10ffff ? malformed : codePoint;
}

/** Writes a code point as UTF-8 and answers where it ends. */
export function encodeUtf8(codePoint: number, target: Uint8Array, at: number): number {
  let to = at;
  if (codePoint < 0x80) {
    target[to++] = codePoint;
  } else if (codePoint < 0x800) {
    target[to++] = 0xc0 | (codePoint >> 6);
    target[to++] = 0x80 | (codePoint & 0x3f);
  } else if (codePoint < 0x10000) {
    target[to++] = 0xe0 | (codePoint >> 12);
    target[to++] = 0x80 | ((codePoint >> 6) & 0x3f);
    target[to++] = 0x80 | (codePoint & 0x3f);
  } else {
    target[to++] = 0xf0 | (codePoint >> 18);
    target[to++] = 0x80 | ((codePoint >> 12) & 0x3f);
    target[to++] = 0x80 | ((codePoint >> 6) & 0x3f);
    target[to++] = 0x80 | (codePoint & 0x3f);
  }
  return to;
}
