import type { DocumentPlace } from '../storage/segment-reader.ts';
import type { NearRow } from './nearest-rows.ts';
import type { QueryContext } from './query.ts';
import type { ScannedDocument } from './scan.ts';

/** The documents of rows, in their order; those that are not at hand come at once, in one round. Throws what reading throws. */
export function readRows(context: QueryContext, rows: readonly NearRow[]): Promise<ScannedDocument[]> {
  return context.slice.waitFor(Promise.all(rows.map((near) => readRow(context, near))));
}

function readRow({ report }: QueryContext, near: NearRow): ScannedDocument | Promise<ScannedDocument> {
  if (near.segment === null) return inMemtable(near);
  const { reader } = near.segment;
  const place = reader.rowCached(near.row);
  return place === 'miss' ? reader.readRow(near.row, report).then(inBlock) : inBlock(place);
}

function inMemtable({ memtable, row }: NearRow & { readonly segment: null }): ScannedDocument {
  return {
    buffer: memtable.bufferOf(row),
    offset: memtable.offsetOf(row),
    sequence: memtable.sequenceOf(row),
    writtenAt: memtable.writtenAtOf(row),
    parts: null,
  };
}

function inBlock({ block, index }: DocumentPlace): ScannedDocument {
  return {
    buffer: block.buffer,
    offset: block.entryOffset(index),
    sequence: block.sequences[index] ?? 0,
    writtenAt: block.writtenAt[index] ?? 0,
    parts: null,
  };
}
