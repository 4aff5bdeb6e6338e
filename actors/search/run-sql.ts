import { ApiError } from '../../protocol/errors.ts';
import type { SqlRequest } from '../../protocol/sql.ts';
import { bindSelect } from '../sql/bind.ts';
import type { SqlColumn } from '../sql/bound.ts';
import { Evaluator } from '../sql/evaluate.ts';
import { parseSql } from '../sql/parser.ts';
import { locating } from '../sql/sql-error.ts';

/** One statement over a snapshot. The front refuses it for as long as this is not whole (operations.ts, `built`). */
export function runSql({ sql }: SqlRequest, columns: readonly SqlColumn[]): never {
  const statement = locating(sql, () => parseSql(sql));
  if (statement.kind === 'select') locating(sql, () => bindSelect(statement, columns));
  throw new ApiError('not_implemented', `${Evaluator.name} is not asked yet`);
}
