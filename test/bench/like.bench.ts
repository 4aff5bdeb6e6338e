/**
 * What LIKE takes for a byte of text: addresses of web pages, as ordinary statements have them, and texts that are made to be
 * hard. Nanoseconds of the best of several rounds.
 *
 * Run: node dist/test/bench/like.bench.js [ROUNDS]
 */
import { likePattern, matchDictionary } from '../../actors/sql/expression/like.ts';
import { dictionaryOf } from '../../actors/sql/frame/column.ts';
import { seededRandom } from '../support/segments.ts';

const random = seededRandom(1);
const words = [
  'shop',
  'search',
  'q',
  'google',
  'поиск',
  'item',
  'index',
  'html',
  'maps',
  'a',
  'images',
  'news',
];
const pick = () => words[Math.floor(random() * words.length)] as string;
const addresses = dictionaryOf(
  Array.from(
    { length: 50_000 },
    (_, at) => `https://${pick()}.${pick()}.com/${pick()}/${pick()}-${at}?${pick()}=${pick()}`,
  ),
);
const hostile = dictionaryOf(Array.from({ length: 100 }, (_, at) => `${'a'.repeat(16_000)}${at}`));

const ordinary = [
  '%google%',
  '%google%maps%',
  'https://shop%',
  '%.com/news/%html',
  '%it_m%',
  '%_oogle%html%',
  '%=поиск',
];
const hard = [`%_${'a'.repeat(500)}b%`, `%${'a'.repeat(500)}b%`, `%${'_a'.repeat(499)}b%`];

function nanosecondsPerByte(pattern: string, dictionary: typeof addresses, rounds: number): number {
  const prepared = likePattern(pattern, null);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const before = process.hrtime.bigint();
    matchDictionary(prepared, dictionary);
    best = Math.min(best, Number(process.hrtime.bigint() - before));
  }
  return best / (dictionary.ends.at(-1) ?? 1);
}

const rounds = Number(process.argv[2] ?? 15);
const lines = [
  ...ordinary.map((pattern) => [pattern, nanosecondsPerByte(pattern, addresses, rounds)] as const),
  ...hard.map((pattern) => [pattern, nanosecondsPerByte(pattern, hostile, 3)] as const),
];
for (const [pattern, nanoseconds] of lines)
  process.stdout.write(`${pattern.slice(0, 24).padEnd(26)}${nanoseconds.toFixed(2).padStart(8)} ns/byte\n`);
