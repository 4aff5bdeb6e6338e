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

/** Columns of a table, and the keys of each of its parts that they were listed from. */
interface Listed {
  readonly keys: readonly ReadonlyMap<string, Uint32Array>[];
  readonly columns: readonly CountedColumn[];
}

/** What was listed of each table, kept by the keys of its first part: an entry goes when that part's directory goes. */
const listedOf = new WeakMap<ReadonlyMap<string, Uint32Array>, Listed>();

/**
 * Lists the columns that there are: the id, and the keys of live documents' metas in the order in which they came first. `wanted`: names
 * in lower case whose types matter, or null for all; of other columns no more is known than that some document has or had them. For a
 * table of the same segments, none of whose rows is dead, the answer is mostly the same array.
 */
export async function columnsOf(
  context: QueryContext,
  parts: readonly SqlPart[],
  wanted: ReadonlySet<string> | null,
): Promise<readonly CountedColumn[]> {
  const filled = parts.filter(({ rowCount }) => rowCount > 0);
  const keys = filled
    .map(({ keptKeys, allLive }) => (allLive ? keptKeys() : null))
    .filter((each) => each !== null);
  const [first] = keys;
  if (first === undefined || keys.length < filled.length)
    return (await listColumns(context, filled, wanted)).columns;
  const listed = listedOf.get(first);
  if (listed?.keys.length === keys.length && keys.every((each, at) => each === listed.keys[at]))
    return listed.columns;
  const { columns, isSettled } = await listColumns(context, filled, wanted);
  if (isSettled) listedOf.set(first, { keys, columns });
  return columns;
}

/** Lists columns anew. `isSettled`: whether the answer depends on the parts alone, not on what is wanted. */
async function listColumns(
  context: QueryContext,
  parts: readonly SqlPart[],
  wanted: ReadonlySet<string> | null,
): Promise<{ readonly columns: readonly CountedColumn[]; readonly isSettled: boolean }> {
  const types = new ColumnTypes();
  let isSettled = true;
  for (const part of parts) {
    const keys = await liveKeys(part, { wanted, turn: () => takeTurn(context) });
    for (const [key, counts] of keys) {
      if (!isColumn(key)) continue;
      const isWanted = wanted === null || wanted.has(key.toLowerCase());
      const isOpen = (counts[valueKinds.other] as number) > 0 && counts[valueKinds.string] === 0;
      if (isOpen) isSettled = false;
      types.add(key, counts, isWanted && isOpen && (await isTextElsewhere(context, part, key)));
    }
    types.countPart(keys.keys());
  }
  const id: CountedColumn = {
    name: idColumn,
    type: 'text',
    parts: parts.filter(({ hasLive }) => hasLive).length,
  };
  return { columns: [id, ...types.list()], isSettled };
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
