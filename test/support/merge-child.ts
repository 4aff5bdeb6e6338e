/**
 * Merges segments of random bytes, which do not compress, in a process of its own and says how much memory it took at
 * its peak beyond what it had before. Arguments: folder, segments, megabytes of each.
 */
import { buildSegment } from '../../actors/compute/build-segment.ts';
import type { BuiltSegment } from '../../actors/compute/lanes.ts';
import { mergeSegments } from '../../actors/compute/merge-segments.ts';
import { noTombstones, tombstonesToWire } from '../../actors/storage/tombstones.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { openObjectStore } from '../../src/object-store/open-object-store.ts';
import { peakResidentMB } from './peak-resident.ts';
import { entryOf } from './segments.ts';

const [folder = '', segments = '', megabytes = ''] = process.argv.slice(2);
const MB = 1e6;
const documentBytes = 10_000;
const rowsEach = Math.ceil((Number(megabytes) * MB) / documentBytes);

const store = await openObjectStore({ kind: 'fs', folder }, systemClock, systemRandom);
const components = { store, clock: systemClock };
/** Noise in the meta, as a string too long for columns, so that nothing is indexed: noise has as many trigrams as bytes, ten times as many as text. */
const textBytes = 1_000;
const noise = (bytes: number) =>
  Buffer.from(Buffer.from(systemRandom.bytes(bytes)).toString('base64').slice(0, bytes));
const buffers: Buffer[] = Array.from({ length: 16 }, (_, at) =>
  entryOf({
    id: `noise-${at}`,
    text: noise(textBytes),
    meta: Buffer.from(JSON.stringify({ noise: noise(documentBytes - textBytes).toString() })),
    vector: null,
  }),
);

async function build(key: string, n: number): Promise<BuiltSegment> {
  const rows = Array.from({ length: rowsEach }, (_, row) => n * rowsEach + row);
  return buildSegment(components, {
    task: 'build-segment',
    key,
    buffers,
    bufferOf: Uint32Array.from(rows, (row) => (row * 7 + (row >> 4)) % buffers.length),
    offsets: new Uint32Array(rowsEach),
    sequences: Float64Array.from(rows, (row) => row + 1),
    writtenAt: new Float64Array(rowsEach),
  });
}

const inputs: { key: string; built: BuiltSegment }[] = [];
for (let n = 0; n < Number(segments); n++) {
  const key = `ns/ab/n/segment/in${n}`;
  inputs.push({ key, built: await build(key, n) });
}
const beforeMB = process.memoryUsage().rss / MB;
const merged = await mergeSegments(components, {
  task: 'merge-segments',
  key: 'ns/ab/n/segment/out',
  inputs: inputs.map(({ key, built }) => ({
    key,
    toc: built.toc,
    tombstones: tombstonesToWire(noTombstones),
  })),
});
process.stdout.write(
  JSON.stringify({
    rows: merged?.toc.rowCount,
    storedMB: (merged?.size ?? 0) / MB,
    aboveIdleMB: peakResidentMB() - beforeMB,
    rowsExpected: rowsEach * Number(segments),
  }),
);
await store.close();
