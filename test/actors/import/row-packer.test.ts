import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksBytes, RowPacker } from '../../../actors/import/row-packer.ts';
import { batchBytes } from '../../../actors/import/row-sink.ts';
import { SegmentWriter } from '../../../actors/storage/segment-writer.ts';
import { entryOf, randomText, seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const key = 'ns/ab/n/segment/packed';
const stamp = { firstSequence: 2 ** 33, writtenAt: 1.7e15 };

/** Entries of which some are a block of their own, some pack to nearly nothing, and some not at all. */
function randomEntries(random: () => number, count: number): Buffer[] {
  return Array.from({ length: count }, (_, at) => {
    const dice = random();
    const noise = dice < 0.1 ? Float32Array.from({ length: 2_000 + random() * 60_000 }, random) : null;
    const text = dice > 0.9 ? 'x'.repeat(random() * 400_000) : randomText(random, 40);
    return Buffer.from(entryOf({ id: `row ${at}`, text: Buffer.from(text), meta: null, vector: noise }));
  });
}

async function segmentOf(add: (writer: SegmentWriter) => Promise<void>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  // What a block is given to the sink in is used again.
  const writer = new SegmentWriter(key, (chunk) => void chunks.push(Buffer.from(chunk)));
  await add(writer);
  await writer.finish();
  return Buffer.concat(chunks);
}

test('blocks that are packed batch by batch are those of a segment that packs its rows itself', async (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  let [blocksCame, grown] = [0, 0];
  for (let round = 0; round < 12; round++) {
    const entries = randomEntries(random, 1 + Math.floor(random() * 120));
    const perBatch = 1 + Math.floor(random() * 50);
    // So that memory for blocks is used again, and too small at times.
    let memory: ArrayBufferLike = new ArrayBuffer(random() < 0.5 ? 10_000 : blocksBytes);

    const alone = await segmentOf(async (writer) => {
      for (const [row, entry] of entries.entries())
        await writer.add(stamp.firstSequence + row, stamp.writtenAt, entry, 0);
    });
    const packed = await segmentOf(async (writer) => {
      const packer = new RowPacker(stamp);
      packer.begin(0);
      for (let first = 0; first < entries.length; first += perBatch) {
        const batch = entries.slice(first, first + perBatch);
        const made = packer.pack(Buffer.concat(batch), batch.length, memory);
        for (const [index, entry] of batch.entries())
          await writer.index(stamp.firstSequence + first + index, entry, 0);
        for (const block of made.blocks) await writer.addBlock(block);
        blocksCame += made.blocks.length;
        if (made.memory !== memory) grown++;
        memory = made.memory;
        new Uint8Array(memory).fill(0xee);
      }
      for (const block of packer.end(() => memory)?.blocks ?? []) await writer.addBlock(block);
      assert.equal(
        packer.end(() => memory),
        null,
      );
    });

    assert.ok(packed.equals(alone), `${entries.length} rows in batches of ${perBatch}`);
  }
  t.diagnostic(`${blocksCame} blocks came with their batches, memory grew ${grown} times`);
  assert.ok(blocksCame > 0 && grown > 0);
});

test('memory for blocks is enough for a batch that does not pack at all, with the rows that waited before it', () => {
  const random = seededRandom(seed);
  const packer = new RowPacker(stamp);
  packer.begin(0);
  const memory = new ArrayBuffer(blocksBytes);
  const noise = () => Float32Array.from({ length: 5_000 }, random);
  const entry = () => Buffer.from(entryOf({ id: 'row', text: null, meta: null, vector: noise() }));
  const perBatch = Math.floor(batchBytes / entry().length);
  for (let batch = 0; batch < 3; batch++) {
    const entries = Array.from({ length: perBatch }, entry);
    const made = packer.pack(Buffer.concat(entries), perBatch, memory);
    assert.equal(made.memory, memory);
    assert.ok(made.blocks.length > 10);
  }
});

test('a block of rows that have not come, and rows of which no block comes, are our bugs', async () => {
  const entry = Buffer.from(entryOf({ id: 'a', text: null, meta: null, vector: null }));
  const packer = new RowPacker(stamp);
  packer.begin(3);
  packer.pack(entry, 1, new ArrayBuffer(1_000));
  const [block] = packer.end(() => new ArrayBuffer(1_000))?.blocks ?? [];
  assert.ok(block !== undefined);

  assert.throws(() => new SegmentWriter(key, () => {}).addBlock(block), /row 3/u);
  const writer = new SegmentWriter(key, () => {});
  await writer.index(1, entry, 0);
  await assert.rejects(writer.finish(), /0 of 1 rows/u);
});
