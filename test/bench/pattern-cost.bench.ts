/**
 * What RE2 takes for a byte of text that does not match, in nanoseconds of processor time, beside the estimated size of
 * its program: where verification stops being cheap. Texts of up to 2 MB, the largest document: this source code, and
 * letters by chance, which make RE2's automaton new states all the time.
 *
 * Run: node dist/test/bench/pattern-cost.bench.js [WORD…]
 */
import { patternInstructions } from '../../actors/text/pattern-cost.ts';
import { compileMatcher } from '../../actors/text/regex.ts';
import { readSources, repositoryRoot } from '../support/repository.ts';
import { seededRandom } from '../support/segments.ts';

const bytes = 2_000_000;
const source = Buffer.from([...readSources(repositoryRoot()).values()].join('\n').slice(0, bytes));

function letters(alphabet: string): Buffer {
  const random = seededRandom(1);
  return Buffer.from(
    Array.from({ length: bytes }, () => alphabet[Math.floor(random() * alphabet.length)]).join(''),
  );
}

const texts = { source, 'a..q': letters('abcdefghijklmnopq'), 'a, b': letters('ab'), x: letters('x') };

const patterns = [
  'needle_that_is_not_there',
  '(?i)needle_that_is_not_there',
  'foo.*bar.*qux!',
  '[a-z]+[0-9]+[a-z]+!',
  '(?i)(alpha|beta|gamma|delta)!',
  '(x+x+)+y',
  '(x+x+)+(y+y+)+z',
  '(a|aa)+!',
  '(a?){30}a{30}!',
  'a[ab]{10}c',
  'a[ab]{20}c',
  'a[ab]{50}c',
  'a[ab]{100}c',
  'a[ab]{300}c',
  'a[ab]{900}c',
  '(?:[a-q]?[b-p]){10}x{2}',
  '(?:[a-q]?[b-p]){50}x{2}',
  '(?:[a-q]?[b-p]){500}x{2}',
  '(?:[a-q]?[b-p]?){500}!',
  '.{1000}!',
  '(?s).{1000}!',
  '(?:.*,){20}!',
  '\\pL{100}!',
  '(?i)(?:[a-q]{1,30}[b-p]){30}!',
];

function nanosecondsPerByte(pattern: string, text: Buffer): number {
  const matcher = compileMatcher(pattern, true);
  let best = Number.POSITIVE_INFINITY;
  // Of large programs less text is enough, and all of it would take minutes.
  const part = text.subarray(0, Math.ceil(4e9 / patternInstructions(pattern)));
  for (let round = 0, spent = 0; round < 3 && spent < 1e6; round++) {
    const before = process.cpuUsage();
    matcher.test(part);
    const { user, system } = process.cpuUsage(before);
    spent += user + system;
    best = Math.min(best, user + system);
  }
  return (best * 1000) / part.length;
}

const write = (columns: readonly string[]) => process.stdout.write(`${columns.join(' ')}\n`);
write([
  'pattern'.padEnd(32),
  'instructions',
  ...Object.keys(texts).map((name) => name.padStart(9)),
  ' worst ns/byte/instruction',
]);
// Words on the command line pick the patterns that contain one of them.
const words = process.argv.slice(2);
for (const pattern of patterns.filter(
  (name) => words.length === 0 || words.some((word) => name.includes(word)),
)) {
  const size = patternInstructions(pattern);
  const figures = Object.values(texts).map((text) => nanosecondsPerByte(pattern, text));
  write([
    pattern.padEnd(32),
    String(size).padStart(12),
    ...figures.map((figure) => figure.toFixed(2).padStart(9)),
    (Math.max(...figures) / size).toFixed(3).padStart(12),
  ]);
}
