import { createRequire } from 'node:module';

/** Draws of one request: the same seed and number draw the same. */
export type Draw = () => number;

export const below = (draw: Draw, end: number): number => Math.floor(draw() * end);
export const chance = (draw: Draw, share: number): boolean => draw() < share;

export function pick<T>(draw: Draw, some: readonly T[]): T {
  if (some.length === 0) throw new Error('nothing to pick from');
  return some[below(draw, some.length)] as T;
}

/** A piece of JSON text that no JavaScript value is written as: numbers past doubles, half a surrogate pair. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The Big List of Naughty Strings. */
export const naughtyStrings: readonly string[] = createRequire(import.meta.url)(
  'big-list-of-naughty-strings',
);

const longText = 'lorem ipsum dolor sit amet '.repeat(400);
const oddStrings: readonly unknown[] = [
  '',
  ' ',
  '\0',
  '\u0001',
  '\n',
  '\u2028',
  '\u0085',
  '😀',
  'e\u0301',
  '\u202etxet',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  '%00',
  '%2e%2e',
  'a'.repeat(65),
  'a'.repeat(513),
  longText,
  new RawJson('"\\ud800"'),
  new RawJson('"\\udc00\\ud800"'),
  new RawJson('"\\u0000"'),
];

const oddNumbers: readonly unknown[] = [
  0,
  -1,
  1,
  2,
  1_000,
  1_001,
  2_048,
  2_049,
  10_000,
  10_001,
  0.1,
  -0.5,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  1e21,
  1e308,
  5e-324,
  new RawJson('-0'),
  new RawJson('1e400'),
  new RawJson('-1e400'),
  new RawJson('9007199254740993'),
  new RawJson('-9223372036854775808'),
  new RawJson('18446744073709551616'),
  new RawJson('1.0'),
  new RawJson('1E+2'),
  new RawJson(`1${'0'.repeat(400)}`),
];

export function oddString(draw: Draw): unknown {
  return chance(draw, 0.6) ? pick(draw, naughtyStrings) : pick(draw, oddStrings);
}

export const oddNumber = (draw: Draw): unknown => pick(draw, oddNumbers);

export function nested(draw: Draw): RawJson {
  const depth = pick(draw, [5, 31, 32, 33, 64, 65, 1_000, 20_000]);
  const [open, close] = pick(draw, [
    ['[', ']'],
    ['{"a":', '}'],
    ['{"eq":[', ']}'],
  ] as const);
  return new RawJson(open.repeat(depth) + (open.endsWith(':') ? '1' : '') + close.repeat(depth));
}

/** Anything that JSON can say. */
export function oddValue(draw: Draw): unknown {
  switch (below(draw, 9)) {
    case 0:
      return null;
    case 1:
      return chance(draw, 0.5);
    case 2:
    case 3:
      return oddNumber(draw);
    case 4:
    case 5:
      return oddString(draw);
    case 6:
      return Array.from({ length: below(draw, 5) }, () =>
        chance(draw, 0.7) ? oddString(draw) : oddNumber(draw),
      );
    case 7:
      return { [String(pick(draw, naughtyStrings))]: oddString(draw), a: oddNumber(draw) };
    default:
      return nested(draw);
  }
}

/** Replaces, drops, adds or repeats something somewhere in a value. */
export function damaged(draw: Draw, value: unknown): unknown {
  if (Array.isArray(value)) {
    if (value.length === 0 || chance(draw, 0.2)) return damagedArray(draw, value);
    const at = below(draw, value.length);
    return value.map((element, i) => (i === at ? damaged(draw, element) : element));
  }
  if (typeof value === 'object' && value !== null && !(value instanceof RawJson)) {
    const names = Object.keys(value);
    if (names.length === 0 || chance(draw, 0.3)) return damagedObject(draw, value as Record<string, unknown>);
    const name = pick(draw, names);
    return { ...value, [name]: damaged(draw, (value as Record<string, unknown>)[name]) };
  }
  return oddValue(draw);
}

function damagedArray(draw: Draw, value: readonly unknown[]): unknown {
  switch (below(draw, 4)) {
    case 0:
      return oddValue(draw);
    case 1:
      return [...value, oddValue(draw)];
    case 2:
      return [...value, ...value, ...value];
    default:
      return value.slice(1);
  }
}

function damagedObject(draw: Draw, value: Readonly<Record<string, unknown>>): unknown {
  const names = Object.keys(value);
  switch (below(draw, 4)) {
    case 0:
      return oddValue(draw);
    case 1:
      return { ...value, [String(oddStringName(draw))]: oddValue(draw) };
    case 2: {
      const [dropped, ...kept] = names;
      return dropped === undefined ? value : Object.fromEntries(kept.map((name) => [name, value[name]]));
    }
    default:
      return Object.fromEntries(
        names.map((name) => [chance(draw, 0.5) ? name : name.toUpperCase(), value[name]]),
      );
  }
}

function oddStringName(draw: Draw): string {
  return pick(draw, [
    'extra',
    '__proto__',
    'constructor',
    '',
    'docs',
    'id',
    'a'.repeat(300),
    ...naughtyStrings,
  ]);
}

export function jsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`,
    );
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

/** Text that is hardly JSON any more. */
export function damagedText(draw: Draw, text: string): Buffer {
  const bytes = Buffer.from(text);
  switch (below(draw, 6)) {
    case 0:
      return bytes.subarray(0, below(draw, bytes.length + 1));
    case 1:
      return Buffer.concat([bytes, Buffer.from(pick(draw, ['}', ']', ',', '\0', 'null', bytes.toString()]))]);
    case 2:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
    case 3: {
      const spoiled = Buffer.from(bytes);
      for (let i = 0; i < 3 && spoiled.length > 0; i++)
        spoiled[below(draw, spoiled.length)] = below(draw, 256);
      return spoiled;
    }
    case 4:
      return Buffer.from(bytes.toString(), 'utf16le');
    default:
      return Buffer.from(String(pick(draw, naughtyStrings)));
  }
}
