/**
 * Merges segments of 32 MB, as flushes make them, into one, and says how fast and in how much memory.
 * Run: npm run measure -- big-segment [MB of documents, 3900: about 2 GB stored] [bytes of a document, 1000]. The last line is JSON.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSegment } from '../../actors/compute/build-segment.ts';
import type { BuiltSegment } from '../../actors/compute/lanes.ts';
import { mergeSegments } from '../../actors/compute/merge-segments.ts';
import { encodeDocument, encodedDocumentLength } from '../../actors/storage/document-batch.ts';
import { noTombstones, tombstonesToWire } from '../../actors/storage/tombstones.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { openObjectStore } from '../../src/object-store/open-object-store.ts';
import { peakResidentMB } from '../support/peak-resident.ts';
import { randomText, seededRandom } from '../support/segments.ts';

const [rawMB = 3_900, documentBytes = 1_000] = process.argv.slice(2).map(Number);
const MB = 1e6;
const inputBytes = 32 * MB;
const folder = mkdtempSync(join(tmpdir(), 'big-segment-'));
const print = (line: string) => process.stdout.write(`${line}\n`);

const residentMB = () => process.memoryUsage().rss / MB;

/** Half words, half noise: compresses to about half. */
function makeEntries(
  random: () => number,
  count: number,
  firstId: number,
): { buffer: Buffer; offsets: Uint32Array } {
  const words = randomText(random, 100_000);
  const noise = Buffer.from(systemRandom.bytes(600_000)).toString('base64');
  const offsets = new Uint32Array(count);
  let buffer = Buffer.alloc(count * (documentBytes + 200));
  let end = 0;
  for (let i = 0; i < count; i++) {
    const half = documentBytes >> 1;
    const at = Math.floor(random() * (noise.length - half));
    const text = Buffer.from(noise.slice(at, at + half) + words.slice(at, at + half));
    const id = Buffer.from(`document-${firstId + i}-${Math.floor(random() * 1e9)}`).toString();
    const parts = { id, text, meta: null, vector: null };
    const length = encodedDocumentLength(parts);
    if (end + length > buffer.length) buffer = Buffer.concat([buffer, Buffer.alloc(buffer.length + length)]);
    encodeDocument(parts, buffer, end);
    offsets[i] = end;
    end += length;
  }
  return { buffer: buffer.subarray(0, end), offsets };
}

try {
  const store = await openObjectStore({ kind: 'fs', folder }, systemClock, systemRandom);
  const components = { store, clock: systemClock };
  const random = seededRandom(1);
  const rowsEach = Math.ceil(inputBytes / documentBytes);
  const inputs: { key: string; built: BuiltSegment }[] = [];
  const buildAt = performance.now();
  for (let n = 0; n * inputBytes < rawMB * MB; n++) {
    const { buffer, offsets } = makeEntries(random, rowsEach, n * rowsEach);
    const key = `ns/ab/n/segment/in${n}`;
    const built = await buildSegment(components, {
      task: 'build-segment',
      key,
      buffers: [buffer],
      bufferOf: new Uint32Array(rowsEach),
      offsets,
      sequences: Float64Array.from(offsets, (_, i) => n * rowsEach + i + 1),
      writtenAt: new Float64Array(rowsEach).fill(1.7e15),
    });
    inputs.push({ key, built });
  }
  const rawBytes = inputs.reduce((sum, { built }) => sum + built.toc.docsRawBytes, 0);
  print(
    `${inputs.length} inputs, ${(rawBytes / MB).toFixed(0)} MB of documents: ${((performance.now() - buildAt) / 1000).toFixed(1)} s`,
  );
  globalThis.gc?.();
  const idleMB = residentMB();
  let peakMB = idleMB;
  const sampler = setInterval(() => {
    peakMB = Math.max(peakMB, residentMB());
  }, 20);
  const cpuAt = process.cpuUsage();
  const startedAt = performance.now();
  const merged = await mergeSegments(components, {
    task: 'merge-segments',
    key: 'ns/ab/n/segment/out',
    inputs: inputs.map(({ key, built }) => ({
      key,
      toc: built.toc,
      tombstones: tombstonesToWire(noTombstones),
    })),
  });
  const seconds = (performance.now() - startedAt) / 1000;
  clearInterval(sampler);
  const { user, system } = process.cpuUsage(cpuAt);
  print(
    JSON.stringify({
      rows: merged?.toc.rowCount,
      rawMB: Math.round(rawBytes / MB),
      storedMB: Math.round((merged?.size ?? 0) / MB),
      seconds: Number(seconds.toFixed(1)),
      rawMBPerSecond: Math.round(rawBytes / MB / seconds),
      storedMBPerSecond: Math.round((merged?.size ?? 0) / MB / seconds),
      cpuSeconds: Number(((user + system) / 1e6).toFixed(1)),
      idleMB: Math.round(idleMB),
      peakMB: Math.round(peakMB),
      aboveIdleMB: Math.round(peakMB - idleMB),
      processPeakMB: Math.round(peakResidentMB()),
    }),
  );
  await store.close();
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}
