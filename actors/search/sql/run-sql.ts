import type { SqlRequest } from '../../../protocol/sql.ts';
import { namesIn } from '../../sql/parse/names-in.ts';
import { parseSql } from '../../sql/parse/parser.ts';
import type { Select } from '../../sql/parse/syntax.ts';
import { bindInSteps } from '../../sql/plan/bind.ts';
import type { SelectPlan } from '../../sql/plan/bound.ts';
import { RoomExceeded } from '../../sql/room.ts';
import { located, locating, SqlError } from '../../sql/sql-error.ts';
import { noteSpent, spentBefore } from '../../thread/spent.ts';
import type { QueryContext } from '../query.ts';
import { reading, takeTurn } from './query-turns.ts';
import { sqlAnswer, takesTooMuch } from './sql-answer.ts';
import { type SqlPart, sqlParts } from './sql-parts.ts';
import { SqlQuery } from './sql-query.ts';
import { type CountedColumn, columnsOf } from './table-columns.ts';

/**
 * Runs one statement over a snapshot, and answers its JSON.
 *
 * 1. The columns that there are, and their types, from the directories of all parts.
 * 2. The statement is bound to them: what is wrong with it is known before anything is read.
 * 3. Its plan is run (sql-query.ts).
 */
export async function runSql(context: QueryContext, request: SqlRequest): Promise<string> {
  const { sql } = request;
  const statement = locating(sql, () => parseSql(sql));
  const parts = await reading(context, () => sqlParts(context.snapshot, context.tally));
  const wanted = statement.kind === 'select' ? namesIn(statement) : null;
  let columns = await reading(context, () => columnsOf(context, parts, wanted));
  if (statement.kind === 'showColumns') return showColumns(context, request, { columns, parts });
  let plan: SelectPlan;
  try {
    plan = await boundInTurns(context, statement, columns);
  } catch (error) {
    if (!(error instanceof SqlError)) throw error;
    // What is wrong may name columns that were not asked for.
    if (wanted === null) throw located(sql, error);
    columns = await reading(context, () => columnsOf(context, parts, null));
    plan = await boundInTurns(context, statement, columns).catch((known: unknown) => {
      throw known instanceof SqlError ? located(sql, known) : known;
    });
  }
  try {
    return await new SqlQuery(context, request, { plan, columns, parts }).run();
  } catch (error) {
    if (error instanceof RoomExceeded) {
      const megabytes = (error.bytesMax / 2 ** 20).toPrecision(2);
      const problem = `the groups, distinct values or rows of this query take more than the ${megabytes} MB that it may have now`;
      throw takesTooMuch(
        context,
        problem,
        'narrow it with WHERE, group by less, or run fewer queries at once',
      );
    }
    if (!(error instanceof SqlError)) throw error;
    const { cpuMs } = spentBefore(error.cause);
    const shown = located(sql, error);
    throw cpuMs > 0 ? noteSpent(shown, cpuMs, context.tally) : shown;
  }
}

async function boundInTurns(
  context: QueryContext,
  statement: Select,
  columns: readonly CountedColumn[],
): Promise<SelectPlan> {
  await takeTurn(context);
  const steps = bindInSteps(statement, columns);
  for (let step = steps.next(); ; step = steps.next()) {
    await takeTurn(context);
    if (step.done) return step.value;
  }
}

function showColumns(
  context: QueryContext,
  request: SqlRequest,
  { columns, parts }: { readonly columns: readonly CountedColumn[]; readonly parts: readonly SqlPart[] },
): string {
  const rows = columns.map(({ name, type, parts: count }) => JSON.stringify([name, type, count]));
  return sqlAnswer(context, request, {
    columns: ['name', 'type', 'segments'],
    types: ['text', 'text', 'int'],
    rows,
    truncated: false,
    chunks: parts.reduce((sum, { chunks }) => sum + chunks.length, 0),
    scanned: 0,
  });
}
