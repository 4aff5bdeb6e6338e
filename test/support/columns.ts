/** Columns in bytes of their own, and what they say of a filter. */
import assert from 'node:assert/strict';
import { readColumn } from '../../actors/columns/column-block.ts';
import { ColumnDirectory, decodeColumnsRoot } from '../../actors/columns/column-directory.ts';
import { type ColumnsOptions, columnsWriter } from '../../actors/columns/columns-writer.ts';
import { evaluateChunk, planChunk } from '../../actors/columns/evaluate-filter.ts';
import { columnTerms } from '../../actors/columns/filter-terms.ts';
import { ValueIndex } from '../../actors/columns/value-index.ts';
import { BlockOwner, blockKinds, decodeBlock, encodeBlock } from '../../actors/storage/segment-format.ts';
import type { Filter } from '../../protocol/filter.ts';
import { must } from '../../src/base/assert.ts';
import { entryOf } from './segments.ts';

export const columnsKey = 'ns/ab/x/segment/s';

export interface BuiltColumns {
  readonly bytes: Buffer;
  readonly root: Uint8Array;
  readonly rowCount: number;
  /** Raw bytes of the blocks of each kind. */
  readonly rawBytes: { readonly [kind: number]: number };
}

export const metaEntry = (meta: string | null, id = 'a') =>
  entryOf({ id, text: null, meta: meta === null ? null : Buffer.from(meta), vector: null });

/** As a segment's writer would; a meta is JSON text. */
export async function buildColumns(
  metas: Iterable<string | null>,
  options: ColumnsOptions = {},
): Promise<BuiltColumns> {
  const writer = columnsWriter(options);
  const owner = new BlockOwner(columnsKey);
  const chunks: Buffer[] = [Buffer.alloc(24, 0xee)];
  const rawBytes: { [kind: number]: number } = {};
  let offset = 24;
  let rowCount = 0;
  const append = async (kind: number, raw: Uint8Array, { compress }: { compress: boolean }) => {
    const block = encodeBlock(kind, raw, { compress, owner, offset });
    const place = { offset, length: block.length };
    chunks.push(block);
    offset += block.length;
    rawBytes[kind] = (rawBytes[kind] ?? 0) + raw.length;
    return place;
  };
  for (const meta of metas) {
    writer.add(metaEntry(meta), 0);
    rowCount++;
    if (writer.isFull) await writer.writePart(append);
  }
  const root = must(await writer.finish(append), 'a root');
  return { bytes: Buffer.concat(chunks), root, rowCount, rawBytes };
}

/** Null where no row has any key. */
export function openBuilt({ bytes, root, rowCount }: BuiltColumns): ColumnDirectory | null {
  const { directory } = decodeColumnsRoot(root, columnsKey);
  if (directory === null) return null;
  return new ColumnDirectory(rawBlock(bytes, directory), rowCount, {
    name: columnsKey,
    offset: directory.offset,
  });
}

export function rawBlock(
  bytes: Buffer,
  { offset, length, kind }: { readonly offset: number; readonly length: number; readonly kind: number },
): Buffer {
  return decodeBlock(bytes.subarray(offset, offset + length), kind, new BlockOwner(columnsKey), offset);
}

export interface FilteredRows {
  /** Numbers of the rows that pass or may pass. */
  readonly rows: readonly number[];
  /** As many that surely pass, of chunks that are exact. */
  readonly isExact: boolean;
  readonly columnsRead: number;
}

export function filterRows(built: BuiltColumns, filter: Filter): FilteredRows {
  const directory = openBuilt(built);
  const terms = columnTerms(filter);
  const rows: number[] = [];
  let isExact = true;
  let columnsRead = 0;
  if (directory === null) {
    const passes = terms.every((term) => term.negated);
    return {
      rows: passes ? Array.from({ length: built.rowCount }, (_, row) => row) : [],
      isExact,
      columnsRead,
    };
  }
  for (let chunk = 0; chunk < directory.chunkCount; chunk++) {
    const plan = planChunk(directory, chunk, terms);
    if (plan.kind === 'none') continue;
    const rowCount = directory.rowCount(chunk);
    const planned = plan.kind === 'columns' ? plan.terms : [];
    columnsRead += planned.length;
    const columns = planned.map(({ column: { place } }) =>
      readColumn(rawBlock(built.bytes, place), { name: columnsKey, offset: place.offset }),
    );
    const { isExact: isPlanExact } = plan;
    const found = evaluateChunk(rowCount, planned, columns, { isExact: isPlanExact });
    // With indexes of all columns that can have one, and of every second of these.
    for (const step of [1, 2]) {
      const indexes = columns.map((column, at) => (at % step === 0 ? ValueIndex.of(column) : null));
      const indexed = evaluateChunk(rowCount, planned, columns, { isExact: isPlanExact, indexes });
      assert.deepEqual(indexed, found);
    }
    isExact &&= found.asks === null;
    for (let row = 0; row < rowCount; row++) {
      if (((found.bits[row >>> 5] as number) >>> (row & 31)) & 1) rows.push(directory.firstRow(chunk) + row);
    }
  }
  return { rows, isExact, columnsRead };
}

export const columnKinds = [blockKinds.column, blockKinds.columnDirectory] as const;
