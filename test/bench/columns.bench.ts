/**
 * Columns of metas with five keys, beside texts that make documents of about 300 bytes: how fast they are written, what
 * they take, and how long filters take over all rows. Run: node dist/test/bench/columns.bench.js [rows]
 */
import { readColumn } from '../../actors/columns/column-block.ts';
import { ColumnDirectory, decodeColumnsRoot } from '../../actors/columns/column-directory.ts';
import { columnsWriter } from '../../actors/columns/columns-writer.ts';
import { evaluateChunk, planChunk } from '../../actors/columns/evaluate-filter.ts';
import { columnTerms } from '../../actors/columns/filter-terms.ts';
import { BatchBuilder, readBatch } from '../../actors/storage/document-batch.ts';
import { BlockOwner, decodeBlock, encodeBlock } from '../../actors/storage/segment-format.ts';
import { parseFilter } from '../../protocol/filter.ts';
import { must } from '../../src/base/assert.ts';
import { columnsKey } from '../support/columns.ts';
import { seededRandom } from '../support/segments.ts';

const rowCount = Number(process.argv[2] ?? 1_000_000);
const batchRows = 1_000;
const print = (line: string) => process.stdout.write(`${line}\n`);

const services = ['checkout', 'search', 'billing', 'gateway', 'mailer', 'login', 'stock', 'images'];
const text = Buffer.alloc(180, 'the tide turns at noon and again at dusk; ');

/** As they come from a log: a time, a level, a name, a duration, an id of its own. */
function metaOf(random: () => number, row: number): Buffer {
  const level = random() < 0.9 ? 'info' : random() < 0.9 ? 'warn' : 'error';
  const service = services[Math.floor(random() * services.length)];
  const tookMs = Math.floor(random() ** 4 * 100_000) / 100;
  return Buffer.from(
    `{"time":${1_700_000_000 + Math.floor(row / 10)},"level":"${level}","service":"${service}",` +
      `"took_ms":${tookMs},"request":"${Math.floor(random() * 2 ** 48).toString(16)}"}`,
  );
}

function batches(count: number, meta: (random: () => number, row: number) => Buffer | null): Buffer[] {
  const random = seededRandom(1);
  const made: Buffer[] = [];
  for (let first = 0; first < count; first += batchRows) {
    const builder = new BatchBuilder();
    for (let row = first; row < Math.min(count, first + batchRows); row++)
      builder.addDocument({ id: `document-${row}`, text, meta: meta(random, row), vector: null });
    made.push(builder.finish());
  }
  return made;
}

interface Written {
  readonly bytes: Buffer;
  readonly root: Uint8Array;
}

async function write(name: string, metas: readonly Buffer[]): Promise<Written> {
  const entries = metas.map((buffer) => ({ buffer, offsets: readBatch(buffer).documentOffsets }));
  const owner = new BlockOwner(columnsKey);
  let written: Written = { bytes: Buffer.alloc(0), root: Buffer.alloc(0) };
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const chunks: Buffer[] = [];
    let offset = 0;
    const append = async (kind: number, raw: Uint8Array, { compress }: { compress: boolean }) => {
      const block = encodeBlock(kind, raw, { compress, owner, offset });
      const place = { offset, length: block.length };
      chunks.push(block);
      offset += block.length;
      return place;
    };
    const startedAt = process.cpuUsage();
    const writer = columnsWriter();
    for (const { buffer, offsets } of entries) {
      for (let i = 0; i < offsets.length; i++) {
        writer.add(buffer, offsets[i] as number);
        if (writer.isFull) await writer.writePart(append);
      }
    }
    const root = must(await writer.finish(append), 'a root');
    const used = process.cpuUsage(startedAt);
    best = Math.min(best, used.user + used.system);
    written = { bytes: Buffer.concat(chunks), root };
  }
  const rows = entries.reduce((sum, { offsets }) => sum + offsets.length, 0);
  print(
    `${name}: ${rows} rows, ${Math.round(rows / (best / 1e6))} a second of processor, ${(written.bytes.length / rows).toFixed(2)} bytes a row stored`,
  );
  return written;
}

function evaluate(written: Written, filterText: string): void {
  const { directory: place } = decodeColumnsRoot(written.root, columnsKey);
  if (place === null) return;
  const owner = new BlockOwner(columnsKey);
  const rawOf = ({ offset, length, kind }: { offset: number; length: number; kind: number }) =>
    decodeBlock(written.bytes.subarray(offset, offset + length), kind, owner, offset);
  const at = { name: columnsKey, offset: place.offset };
  const directory = new ColumnDirectory(rawOf(place), rowCount, at);
  const terms = columnTerms(parseFilter(JSON.parse(filterText)));
  let readMs = 0;
  let readBytes = 0;
  const plans = Array.from({ length: directory.chunkCount }, (_, chunk) => {
    const plan = planChunk(directory, chunk, terms);
    const planned = plan.kind === 'columns' ? plan.terms : [];
    const startedAt = performance.now();
    const columns = planned.map(({ column }) => readColumn(rawOf(column.place), at));
    readMs += performance.now() - startedAt;
    readBytes += planned.reduce((sum, { column }) => sum + column.place.length, 0);
    return { chunk, plan, planned, columns };
  });
  let best = Number.POSITIVE_INFINITY;
  let longest = 0;
  let found = 0;
  for (let round = 0; round < 10; round++) {
    let ms = 0;
    found = 0;
    for (const { chunk, plan, planned, columns } of plans) {
      if (plan.kind === 'none') continue;
      const startedAt = performance.now();
      found += evaluateChunk(directory.rowCount(chunk), planned, columns, { isExact: plan.isExact }).count;
      const took = performance.now() - startedAt;
      ms += took;
      if (round > 2) longest = Math.max(longest, took);
    }
    best = Math.min(best, ms);
  }
  const read = plans.filter(({ planned }) => planned.length > 0).length;
  print(
    `  ${filterText.slice(0, 60).padEnd(60)} ${found} rows: ${best.toFixed(2)} ms, a chunk at most ${longest.toFixed(2)} ms; ` +
      `${read} of ${plans.length} chunks read, ${(readBytes / 1e6).toFixed(2)} MB, unpacked in ${readMs.toFixed(1)} ms`,
  );
}

const noMeta = batches(Math.min(rowCount, 300_000), () => null);
await write('no meta', noMeta);
const empty = Buffer.from('{}');
await write(
  'empty meta',
  batches(Math.min(rowCount, 300_000), () => empty),
);
const logs = await write('five keys', batches(rowCount, metaOf));
for (const filter of [
  '{"level":"error"}',
  '{"level":{"ne":"info"}}',
  '{"service":["billing","mailer"]}',
  '{"took_ms":{"gte":500,"lt":600}}',
  '{"time":{"gte":1700050000,"lt":1700060000}}',
  '{"time":1700050000}',
  '{"request":"ffffffffffff"}',
  `{"request":${JSON.stringify(Array.from({ length: 1000 }, (_, at) => (2 ** 47 + at).toString(16)))}}`,
  `{"time":${JSON.stringify(Array.from({ length: 1000 }, (_, at) => 1_700_000_000 + at * 100))}}`,
  '{"level":"error","service":"billing","took_ms":{"gt":100}}',
  '{"nobody":1}',
])
  evaluate(logs, filter);
