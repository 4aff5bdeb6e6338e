/**
 * Numbers for pairs of numbers, as groups by several keys and COUNT(DISTINCT) ask for them: in JavaScript and in a table in WebAssembly, in
 * turns, a frame of 16,384 pairs at a time. Run: node dist/test/bench/pair-interner.bench.js [pairs]
 */
import { KeptBuffers } from '../../actors/search/sql/kept-buffers.ts';
import { PairInterner } from '../../actors/sql/intern/pair-interner.ts';
import { Room } from '../../actors/sql/room.ts';
import { MemoryBudget } from '../../actors/thread/memory-budget.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { seededRandom } from '../support/segments.ts';

const count = Number(process.argv[2] ?? 1_000_000);
const frameRows = 16_384;
const rounds = 7;
const random = seededRandom(1);
const below = (bound: number) => Math.floor(random() * bound);
const made = (one: (at: number) => number) => Int32Array.from({ length: count }, (_, at) => one(at));

const cases = {
  'each pair is new, and its first number too': [made((at) => at), made(() => below(50_000))],
  'users, each with one region': [made(() => below(200_000)), made(() => 0)],
  'users, a fifth of them with several': [
    made(() => below(200_000)),
    made(() => (below(5) === 0 ? below(9) : 0)),
  ],
  'few first numbers, nearly all pairs are new': [made(() => below(1_000)), made(() => below(500_000))],
  'few first numbers, 100,000 pairs': [made(() => below(100)), made(() => below(1_000))],
  'few pairs': [made(() => below(50)), made(() => below(20))],
} as const;

const memory = new MemoryBudget(2 ** 32);
const withTables = new KeptBuffers(memory, new FakeClock());
const withoutTables = {
  bytesMin: withTables.bytesMin,
  take: (bytes: number) => withTables.take(bytes),
  give: (buffer: ArrayBuffer) => withTables.give(buffer),
  pairTables: { askedMin: Number.POSITIVE_INFINITY, take: () => null, give: () => {} },
};

function nanosecondsOf(
  buffers: typeof withoutTables | KeptBuffers,
  firsts: Int32Array,
  seconds: Int32Array,
): number {
  const room = new Room(count, buffers);
  const frame = new Int32Array(frameRows);
  const began = performance.now();
  const pairs = new PairInterner(room);
  for (let from = 0; from < count; from += frameRows) {
    const some = frame.subarray(0, Math.min(frameRows, count - from));
    some.set(firsts.subarray(from, from + some.length));
    pairs.internAll(some, seconds.subarray(from, from + some.length));
  }
  const took = performance.now() - began;
  room.release();
  return (took * 1e6) / count;
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] as number;
for (const [name, [firsts, seconds]] of Object.entries(cases)) {
  const [plain, table]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    plain.push(nanosecondsOf(withoutTables, firsts, seconds));
    table.push(nanosecondsOf(withTables, firsts, seconds));
  }
  const [first, firstInTable] = [plain[0] as number, table[0] as number];
  const shown = (value: number) => value.toFixed(1).padStart(6);
  process.stdout.write(
    `${name.padEnd(46)} JavaScript ${shown(median(plain))} ns (first ${shown(first)}), ` +
      `WebAssembly ${shown(median(table))} ns (first ${shown(firstInTable)})\n`,
  );
}
