import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import type { SqlRequest } from '../../../protocol/sql.ts';
import type { SqlType } from '../../sql/plan/bound.ts';
import { noteSpent } from '../../thread/spent.ts';
import { framed, type QueryContext } from '../query.ts';
import { sqlPage } from './sql-page.ts';

/** What a statement answers, before it is made into pages. */
export interface AnsweredRows {
  readonly columns: readonly string[];
  readonly types: readonly SqlType[];
  /** Each a JSON array. */
  readonly rows: readonly string[];
  readonly truncated: boolean;
  readonly chunks: number;
  readonly scanned: number;
}

/** Makes the JSON of the answer, with the page of the rows that the request has room for. Throws where even that is too large. */
export function sqlAnswer(context: QueryContext, request: SqlRequest, answered: AnsweredRows): string {
  const { columns, types, truncated, chunks, scanned } = answered;
  const { rows, next } = sqlPage(context, request, answered.rows);
  refuseLargeAnswer(context, rows);
  return framed(
    context,
    { kind: 'complete' },
    `"columns":${JSON.stringify(columns)},"types":${JSON.stringify(types)},"rows":[${rows.join(',')}],` +
      `"chunks":${chunks},"scanned":${scanned},"truncated":${truncated || next !== null}` +
      `${next === null ? '' : `,"next":"${next}"`}`,
  );
}

function refuseLargeAnswer(context: QueryContext, rows: readonly string[]): void {
  const bytes = rows.reduce((sum, row) => sum + row.length, 0);
  if (bytes <= limits.answerBytesMax) {
    if (context.room.take(bytes)) return;
    throw new ApiError(
      'rate_limited',
      'your running queries take up your part of the memory: send fewer at once, select fewer columns, or say LIMIT',
      { retryAfter: 1 },
    );
  }
  const problem = `the answer takes more than ${limits.answerBytesMax / 2 ** 20} MB`;
  throw takesTooMuch(context, problem, 'select fewer columns, or say LIMIT');
}

/** Makes the error for a query that would take too much memory. Only its work could tell, so that is metered. */
export function takesTooMuch({ slice, tally }: QueryContext, problem: string, remedy: string): ApiError {
  const error = new ApiError('invalid', `sql: ${problem}: ${remedy}`, { fields: { sql: problem } });
  return noteSpent(error, slice.cpuMs, tally);
}
