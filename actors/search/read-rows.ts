import type { NearRow } from './near-row.ts';
import type { QueryContext } from './query.ts';
import { documentInBlock, documentInMemtable, type ScannedDocument } from './scan.ts';

/** The documents of rows, in their order; those that are not at hand come at once, in one round. Throws what reading throws. */
export function readRows(context: QueryContext, rows: readonly NearRow[]): Promise<ScannedDocument[]> {
  return context.slice.waitFor(Promise.all(rows.map((near) => readRow(context, near))));
}

async function readRow({ tally }: QueryContext, near: NearRow): Promise<ScannedDocument> {
  if (near.segment === null) return documentInMemtable(near.memtable, near.row, null);
  const { reader } = near.segment;
  const cached = reader.rowCached(near.row, tally);
  const { block, index } = cached === 'miss' ? await reader.readRow(near.row, tally) : cached;
  return documentInBlock(block, index, null);
}
