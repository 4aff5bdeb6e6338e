import { valueKinds } from '../../columns/value-kinds.ts';
import type { SqlColumn } from '../../sql/plan/bound.ts';
import { ColumnTypes, idColumn, isColumn } from '../../sql/plan/column-types.ts';
import type { QueryContext } from '../query.ts';
import { liveKeys } from './live-keys.ts';
import { takeTurn } from './query-turns.ts';
import type { SqlPart } from './sql-parts.ts';
import { hasTextElsewhere } from './sql-values.ts';

/** A column of the table, and how many segments and memtables have it. */
export type CountedColumn = SqlColumn & { readonly parts: number };

/**
 * Lists the columns that there are: the id, and the keys of live documents' metas in the order in which they came first. `wanted`: names
 * in lower case whose types matter, or null for all; of other columns no more is known than that some document has or had them.
 */
export async function columnsOf(
  context: QueryContext,
  parts: readonly SqlPart[],
  wanted: ReadonlySet<string> | null,
): Promise<CountedColumn[]> {
  const types = new ColumnTypes();
  for (const part of parts) {
    const keys = await liveKeys(part, { wanted, turn: () => takeTurn(context) });
    for (const [key, counts] of keys) {
      if (!isColumn(key)) continue;
      const isWanted = wanted === null || wanted.has(key.toLowerCase());
      const isOpen = isWanted && (counts[valueKinds.other] as number) > 0 && counts[valueKinds.string] === 0;
      types.add(key, counts, isOpen && (await isTextElsewhere(context, part, key)));
    }
    types.countPart(keys.keys());
  }
  return [
    { name: idColumn, type: 'text', parts: parts.filter(({ hasLive }) => hasLive).length },
    ...types.list(),
  ];
}

async function isTextElsewhere(
  context: QueryContext,
  { chunks, isLive }: SqlPart,
  key: string,
): Promise<boolean> {
  const turn = () => takeTurn(context);
  for (const chunk of chunks) {
    const values = (await chunk.columns([key], turn)).get(key);
    if (values !== undefined && (await hasTextElsewhere(chunk, key, { values, isLive, turn }))) return true;
  }
  return false;
}
