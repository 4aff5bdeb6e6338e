import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FindRowsTask, RowFinding, type RowsAnswer } from '../../../actors/search/find-rows-task.ts';
import { liveLiteralRows } from '../../../actors/search/literal-rows.ts';
import type { ReadBlock } from '../../../actors/search/read-ahead.ts';
import { ScanRoom } from '../../../actors/search/scan-room.ts';
import { SharedScan } from '../../../actors/search/shared-scan.ts';
import type { SegmentReader } from '../../../actors/storage/segment-reader.ts';
import { noTombstones, withDeleted } from '../../../actors/storage/tombstones.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { limits } from '../../../protocol/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { randomBlock } from '../../support/literal-blocks.ts';
import { contextOf, row, snapshotOfRows } from '../../support/query-context.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const literal = new QueryPatterns().of('ba', false);
const nobody = (await snapshotOfRows([row(1, 'x')])).snapshot;

function blocksOf(random: () => number, count: number): ReadBlock[] {
  let firstRow = 0;
  return Array.from({ length: count }, () => {
    const { block } = randomBlock(random, firstRow);
    const end = firstRow + block.rowCount;
    const dead = Array.from({ length: block.rowCount }, (_, at) => firstRow + at).filter(
      () => random() < 0.2,
    );
    const read: ReadBlock = {
      block,
      ranges: [firstRow, end],
      tombstones: random() < 0.5 ? noTombstones : withDeleted(noTombstones, dead),
      reader: null as unknown as SegmentReader,
      number: 0,
    };
    firstRow = end;
    return read;
  });
}

type Helper = (task: FindRowsTask) => Promise<RowsAnswer>;

/** What becomes of a batch elsewhere. */
function helpers(random: () => number): Readonly<Record<string, Helper>> {
  const finding = new RowFinding();
  const prompt: Helper = async (task) => finding.run(task);
  const late: Helper = (task) =>
    new Promise((resolve) => {
      setImmediate(() => setImmediate(() => resolve(finding.run(task))));
    });
  const never: Helper = () => new Promise(() => {});
  const refusingLate: Helper = () =>
    new Promise((_, reject) => {
      setImmediate(() => setImmediate(() => reject(new Error('the thread died'))));
    });
  const refusing: Helper = () => Promise.reject(new Error('too many wait'));
  const crowded: Helper = async (task) => ({ ...finding.run(task), cpuMs: 1, waitedMs: 20 });
  const all = [prompt, late, never, refusing, refusingLate];
  return {
    prompt,
    late,
    never,
    refusing,
    refusingLate,
    crowded,
    mixed: (task) => (all[Math.floor(random() * all.length)] as Helper)(task),
  };
}

test('every row is taken once, however others help', async (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  for (const [name, help] of Object.entries(helpers(random))) {
    let sent = 0;
    let mostElsewhere = 0;
    for (let round = 0; round < 40; round++) {
      let elsewhere = 0;
      const blocks = blocksOf(random, 60);
      const context = contextOf(nobody, new FakeClock());
      const left = () => elsewhere--;
      const findRows: Helper = (task) => {
        sent++;
        mostElsewhere = Math.max(mostElsewhere, ++elsewhere);
        const found = help(task);
        found.then(left, left);
        return found;
      };
      const taken = new Map<ReadBlock, readonly number[]>();
      const scan = new SharedScan(
        { slice: context.slice, scanRoom: new ScanRoom(), findRows },
        {
          literal,
          take(read, rows) {
            assert.ok(!taken.has(read), `${name}: a block was taken twice`);
            taken.set(read, rows);
          },
          aloneBytes: 2_000,
          batchBytes: 1_000 + Math.floor(random() * 3_000),
        },
      );
      for (const read of blocks) {
        assert.ok(scan.add(read));
        if (random() < 0.1) await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(await scan.finish(), true);
      for (const read of blocks) assert.deepEqual(taken.get(read), liveLiteralRows(read, literal), name);
    }
    assert.ok(sent >= 40, `${name}: ${sent} batches were sent`);
    assert.ok(mostElsewhere <= limits.scanBatchesAheadMax, `${name}: ${mostElsewhere} at once`);
    // Whoever is refused, or finds the cores busy, asks no more.
    if (name === 'refusing' || name === 'crowded')
      assert.ok(sent <= 40 * limits.scanBatchesAheadMax, `${name}: ${sent} batches were sent`);
  }
});

test('a scan whose time is over says so, and a large block is left to others', async () => {
  const random = seededRandom(seed);
  const context = contextOf(nobody, new FakeClock());
  const never = () => new Promise<RowsAnswer>(() => {});
  const scan = new SharedScan(
    { slice: context.slice, scanRoom: new ScanRoom(), findRows: never },
    { literal, take() {}, aloneBytes: 0, batchBytes: 1 },
  );
  const [read] = blocksOf(random, 1) as [ReadBlock];
  assert.equal(scan.add({ ...read, parts: new Map() }), false);
  assert.equal(scan.add(read), true);
  Object.defineProperty(context.slice, 'timedOut', { value: true });
  assert.equal(await scan.finish(), false);
});

test('a literal that RE2 is asked for is not sent, and neither is more than the thread may have elsewhere', async () => {
  const random = seededRandom(seed);
  const context = contextOf(nobody, new FakeClock());
  let sent = 0;
  const findRows = () => {
    sent++;
    return new Promise<RowsAnswer>(() => {});
  };
  const scan = async (query: string, scanRoom: ScanRoom) => {
    let rows = 0;
    const wanted = new QueryPatterns().of(query, false);
    const blocks = blocksOf(random, 20);
    const shared = new SharedScan(
      { slice: context.slice, scanRoom, findRows },
      {
        literal: wanted,
        take(_, found) {
          rows += found.length;
        },
        aloneBytes: 0,
        batchBytes: 1,
      },
    );
    for (const read of blocks) shared.add(read);
    assert.equal(await shared.finish(), true);
    assert.equal(
      rows,
      blocks.reduce((sum, read) => sum + (liveLiteralRows(read, wanted)?.length ?? 0), 0),
    );
  };
  await scan('s', new ScanRoom());
  assert.equal(sent, 0);

  const full = new ScanRoom();
  assert.ok(full.take(limits.scansElsewhereBytesMax));
  await scan('ba', full);
  assert.equal(sent, 0);

  await scan('ba', new ScanRoom());
  assert.equal(sent, limits.scanBatchesAheadMax);
});
