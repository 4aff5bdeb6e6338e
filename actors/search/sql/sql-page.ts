import { invalidField } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import type { SqlRequest } from '../../../protocol/sql.ts';
import { sha256Hex } from '../../../src/base/hash.ts';
import { type CursorScope, decodeCursor, encodeCursor } from '../cursor.ts';
import { frameBytes } from '../page.ts';
import type { QueryContext } from '../query.ts';

/** The rows that one answer shows of those that a statement made. */
export interface SqlPage {
  readonly rows: readonly string[];
  /** The cursor of the rows behind them; null where there are none. */
  readonly next: string | null;
}

/**
 * Cuts the rows to what an answer may hold: they begin where the cursor says, and end at `limit` rows or `max_bytes` bytes. The
 * statement runs again for each page, over the namespace as it is then: pages fit together while nobody writes, or where ORDER BY
 * gives each row its place.
 *
 * Throws 422 for the cursor of another statement, and for a row that alone is larger than the budget: half a row says nothing.
 */
export function sqlPage(
  context: Pick<QueryContext, 'identity' | 'cursorKeys'>,
  request: SqlRequest,
  rows: readonly string[],
): SqlPage {
  const { cursor = '', max_bytes: bytesMax, limit = limits.sqlRowsMax } = request;
  // Made only for an answer that has a cursor, or gets one: most have none, and its digest takes longer than a small query's rows.
  const scope = () => scopeOf(context, request);
  const from = cursor === '' ? 0 : decodeCursor(context.cursorKeys, scope(), cursor);
  let to = Math.min(rows.length, from + limit);
  if (bytesMax !== undefined) to = lastThatFits(rows, { from, to, bytesMax });
  if (from === 0 && to === rows.length) return { rows, next: null };
  return {
    rows: rows.slice(from, to),
    next: to < rows.length ? encodeCursor(context.cursorKeys, scope(), to) : null,
  };
}

function lastThatFits(
  rows: readonly string[],
  { from, to, bytesMax }: { readonly from: number; readonly to: number; readonly bytesMax: number },
): number {
  let bytesLeft = bytesMax - frameBytes;
  for (let at = from; at < to; at++) {
    const bytes = Buffer.byteLength(rows[at] as string) + 1;
    if (bytes > bytesLeft && at === from) {
      const problem = `the next row alone takes ${bytes + frameBytes} bytes: allow so many, or select fewer columns`;
      throw invalidField('max_bytes', problem);
    }
    if (bytes > bytesLeft) return at;
    bytesLeft -= bytes;
  }
  return to;
}

function scopeOf({ identity }: Pick<QueryContext, 'identity'>, { sql }: SqlRequest): CursorScope {
  const { tenantId, namespaceId } = identity;
  return { tenantId, namespaceId, queryDigest: sha256Hex(JSON.stringify(['sql', sql])) };
}
