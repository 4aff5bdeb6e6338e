import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../../actors/storage/segment-reader.ts';
import { openVectors } from '../../../actors/vector/vector-index-reader.ts';
import { row } from '../../support/query-context.ts';
import { buildSegment, CountingStore, seededRandom } from '../../support/segments.ts';

const key = 'ns/ab/n/segment/s';
const tally = emptyReadTally();

async function readerOf(vectors: readonly (Float32Array | null)[]): Promise<SegmentReader> {
  const rows = vectors.map((vector, at) => row(at + 1, `document ${at}`, vector));
  const { toc, bytes } = await buildSegment(rows);
  const store = new CountingStore();
  await store.putIfAbsent(key, [bytes]);
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(1e9) });
  return new SegmentReader(key, toc, fetcher);
}

/** Row and numbers of each. */
async function allVectors(reader: SegmentReader): Promise<[number, Float32Array][]> {
  const index = await openVectors(reader, tally);
  if (index === 'none') return [];
  const found: [number, Float32Array][] = [];
  for (const [at, block] of (await reader.blocks.fetch(index.blocks, tally)).entries()) {
    const { rows, values } = index.vectorsOf(block, index.blocks[at] ?? { count: 0 });
    for (const [i, each] of rows.entries())
      found.push([each, values.slice(i * index.dims, (i + 1) * index.dims)]);
  }
  return found;
}

for (const dims of [1, 3, 256, 2_048]) {
  test(`vectors of ${dims} numbers come back by their rows, whoever has none`, async () => {
    const random = seededRandom(dims);
    const vectors = Array.from({ length: 700 }, () =>
      random() < 0.3 ? null : Float32Array.from({ length: dims }, () => random() - 0.5),
    );
    const reader = await readerOf(vectors);

    assert.deepEqual(
      await allVectors(reader),
      vectors.flatMap((vector, at) => (vector === null ? [] : [[at, vector]])),
    );
  });
}

test('a segment without vectors has no section of them', async () => {
  const reader = await readerOf([null, null]);

  assert.equal(await openVectors(reader, tally), 'none');
  assert.equal(
    reader.toc.sections.some(({ name }) => name === 'vectors'),
    false,
  );
});
