import type { TextMatch } from '../../sql/parse/syntax.ts';
import { documentText } from '../../storage/document-batch.ts';
import { type Found, Judge } from '../../text/judge.ts';
import { late, type QueryContext } from '../query.ts';
import type { ReadBlock } from '../read-ahead.ts';
import { scanNewestFirst } from '../scan.ts';
import { SharedScan } from '../shared-scan.ts';
import { blamed, rethrow } from './blamed.ts';
import { tooLate } from './query-turns.ts';
import type { SqlPart } from './sql-parts.ts';

/** Finds the rows of a part whose text matches: 1 for each of them. Throws `SqlError` where the pattern is wrong. */
export async function matchingRows(
  context: QueryContext,
  part: SqlPart,
  { query, regex, at }: TextMatch,
): Promise<Uint8Array> {
  const rows = new Uint8Array(part.rowCount);
  if (query === '') return rows.fill(1);
  const pattern = blamed(at, () => context.patterns.of(query, regex));
  const judge = new Judge(pattern, { elsewhere: context.match, turns: context.slice });
  const blocks =
    judge.literal === null
      ? null
      : new SharedScan(context, {
          literal: judge.literal,
          take(_, found) {
            for (const row of found) rows[row] = 1;
          },
        });
  const takeBlock = (block: ReadBlock) => blocks?.add(block) === true;
  const options = {
    below: Number.POSITIVE_INFINITY,
    condition: pattern.condition,
    slice: context.slice,
    tally: context.tally,
    takeBlock,
  };
  const end = await scanNewestFirst(part.snapshot, options, ({ buffer, offset, row, parts }) => {
    const take = (found: Found) => {
      if (found !== null) rows[row] = 1;
      return true;
    };
    const text = documentText(buffer, offset);
    if (text === null) return true;
    const found = blamed(at, () => judge.find(text, 'none', parts));
    if (!(found instanceof Promise)) return take(found);
    return late(context, found, take).catch((error: unknown) => blamed(at, () => rethrow(error)));
  });
  if (end.kind === 'failed') throw end.cause;
  if (end.kind === 'timed-out') throw tooLate();
  if ((await blocks?.finish()) === false) throw tooLate();
  return rows;
}
