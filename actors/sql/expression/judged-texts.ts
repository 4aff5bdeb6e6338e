import { assert } from '../../../src/base/assert.ts';
import { bytesOf, type Dictionary, dictionaryOf, startOf, type Texts, unknown } from '../frame/column.ts';
import { Interruption, type SqlTurns } from '../interruption.ts';
import type { Bound } from '../plan/bound.ts';

/**
 * Judges texts for conditions that depend on one text alone, such as LIKE. Each string of a dictionary is judged once, with those
 * beside it, when a row has one of them; what is known of a dictionary is kept for the next frames, which mostly have the same.
 */
export class JudgedTexts {
  readonly #judged = new Map<Bound, JudgedCodes>();
  readonly #turns: SqlTurns;
  readonly #hold: () => void;
  #bytes = 0;

  /** `hold`: called before memory is taken; throws where there is none. */
  constructor(turns: SqlTurns, hold: () => void) {
    this.#turns = turns;
    this.#hold = hold;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Answers the truth of each row of a frame, 0 and 1 as `judge` says, unknown where a text is NULL. `bound`: the condition, by
   * which what was judged is kept. Throws an Interruption where a turn is over before.
   */
  truths(bound: Bound, { codes, nulls, dictionary }: Texts, rowCount: number, by: JudgedBy): Uint8Array {
    const judged = this.#judgedOf(bound, dictionary);
    const truths = new Uint8Array(rowCount);
    let { truths: byCode, count } = judged;
    let isFar = false;
    for (let row = 0; row < rowCount; row++) {
      const code = codes[row] as number;
      if (code >= count) {
        if (code >= count + judgedAtOnce) {
          isFar = true;
          continue;
        }
        this.#judgeThrough(judged, code, by);
        ({ truths: byCode, count } = judged);
      }
      truths[row] = byCode[code] as number;
    }
    assert(count <= dictionary.count, () => `${count} strings were judged, of ${dictionary.count}`);
    if (isFar) this.#judgeFar(judged, codes, truths, by);
    if (nulls !== null) for (let row = 0; row < rowCount; row++) if (nulls[row] === 1) truths[row] = unknown;
    return truths;
  }

  #judgedOf(bound: Bound, dictionary: Dictionary): JudgedCodes {
    const known = this.#judged.get(bound);
    if (known?.dictionary === dictionary) return known;
    this.#bytes += dictionary.count - (known?.truths.byteLength ?? 0);
    this.#hold();
    const judged = { dictionary, truths: new Uint8Array(dictionary.count), count: 0, far: new Map() };
    this.#judged.set(bound, judged);
    return judged;
  }

  /** Judges the strings up to that code, and some more. */
  #judgeThrough(judged: JudgedCodes, code: number, by: JudgedBy): void {
    this.#inTurns(
      by,
      () => judged.count > code,
      () => judgeNext(judged, by),
    );
  }

  /**
   * Fills in the rows whose strings lie far behind those that are known, because rows between were not looked at: judges these
   * strings alone, so that a frame costs no more than it has rows, and the next strings, so that what is known catches up.
   */
  #judgeFar(judged: JudgedCodes, codes: Texts['codes'], truths: Uint8Array, by: JudgedBy): void {
    const { far } = judged;
    judgeNext(judged, by);
    const missing = new Set<number>();
    for (let row = 0; row < truths.length; row++) {
      const code = codes[row] as number;
      if (code >= judged.count && !far.has(code)) missing.add(code);
    }
    const left = [...missing];
    this.#inTurns(
      by,
      () => left.length === 0,
      () => judgeApart(judged, left, by),
    );
    for (let row = 0; row < truths.length; row++) {
      const code = codes[row] as number;
      truths[row] = (code < judged.count ? judged.truths[code] : far.get(code)) as number;
    }
    far.clear();
  }

  /**
   * Does some of the work until all is done. Where strings are long to judge, an Interruption is thrown when a turn is over:
   * `mayInterrupt` (plan/bound-parts.ts) says so of the expression.
   */
  #inTurns({ bytesAtOnce }: JudgedBy, isDone: () => boolean, work: () => void): void {
    const turns = this.#turns;
    while (!isDone()) {
      if (!Number.isFinite(bytesAtOnce) || !turns.due()) work();
      else
        throw new Interruption(async () => {
          while (!isDone() && !turns.timedOut) {
            await turns.giveWay();
            do work();
            while (!isDone() && !turns.due());
          }
        });
    }
  }
}

/** What is known of a dictionary's strings. */
interface JudgedCodes {
  readonly dictionary: Dictionary;
  /** The judgements of the first `count` strings, by code. */
  truths: Uint8Array;
  count: number;
  /** The judgements, by code, of strings behind these, which were judged for the frame that is evaluated. */
  readonly far: Map<number, number>;
}

/** How many strings are judged at a time: each call takes some time by itself, and all of them must take no long turn. */
const judgedAtOnce = 16_384;
/** How strings are judged. */
export interface JudgedBy {
  /** Answers 0 or 1 for each string of a dictionary. */
  readonly judge: (some: Dictionary) => Uint8Array;
  /** How many bytes are judged at a time, but for one long string. Infinite where judging is quick: then it is not interrupted. */
  readonly bytesAtOnce: number;
}

/** Judges as many of the next strings as are judged at a time. */
function judgeNext(judged: JudgedCodes, { judge, bytesAtOnce }: JudgedBy): void {
  const { dictionary, count } = judged;
  if (count === dictionary.count) return;
  const end = someEnd(dictionary, count, bytesAtOnce);
  if (judged.truths.length < end) {
    const larger = new Uint8Array(Math.max(dictionary.count, judged.truths.length * 2));
    larger.set(judged.truths);
    judged.truths = larger;
  }
  judged.truths.set(judge(part(dictionary, count, end)), count);
  judged.count = end;
}

/** Judges some of these strings by themselves, and takes them from the list. */
function judgeApart(
  { dictionary, far }: JudgedCodes,
  codes: number[],
  { judge, bytesAtOnce }: JudgedBy,
): void {
  const some: number[] = [];
  for (let bytes = 0; codes.length > 0 && some.length < judgedAtOnce && bytes < bytesAtOnce; ) {
    const code = codes.pop() as number;
    some.push(code);
    bytes += (dictionary.ends[code] as number) - startOf(dictionary, code);
  }
  const truths = judge(dictionaryOf(some.map((code) => bytesOf(dictionary, code))));
  for (const [at, code] of some.entries()) far.set(code, truths[at] as number);
}

/** Answers where the strings end that are judged together, the first of them being `from`. */
function someEnd(dictionary: Dictionary, from: number, bytesAtOnce: number): number {
  const start = startOf(dictionary, from);
  let [least, most] = [from + 1, Math.min(dictionary.count, from + judgedAtOnce)];
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if ((dictionary.ends[middle - 1] as number) - start <= bytesAtOnce) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** A dictionary of the strings from `from` to before `end`. */
function part(dictionary: Dictionary, from: number, end: number): Dictionary {
  if (from === 0 && end === dictionary.count) return dictionary;
  const start = startOf(dictionary, from);
  const ends = dictionary.ends.slice(from, end);
  for (let i = 0; i < ends.length; i++) ends[i] = (ends[i] as number) - start;
  return { count: end - from, bytes: dictionary.bytes.subarray(start, dictionary.ends[end - 1]), ends };
}
