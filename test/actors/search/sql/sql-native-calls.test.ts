/** REGEXP_REPLACE and LIKE over texts and patterns that are made to be hard, beside a neighbour of the thread. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { QueryContext } from '../../../../actors/search/query.ts';
import { runSql } from '../../../../actors/search/sql/run-sql.ts';
import { TimeSlice } from '../../../../actors/search/time-slice.ts';
import { ReadDeadline } from '../../../../actors/storage/read-deadline.ts';
import { MatchRunner, type MatchTask } from '../../../../actors/text/match-task.ts';
import { QueryPatterns } from '../../../../actors/text/query-pattern.ts';
import { spentBefore } from '../../../../actors/thread/spent.ts';
import { ownTurn } from '../../../../actors/thread/turn.ts';
import { ApiError } from '../../../../protocol/errors.ts';
import { limits } from '../../../../protocol/limits.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { contextOf, snapshotOfRows } from '../../../support/query-context.ts';
import { entryOf, type TestRow } from '../../../support/segments.ts';

function rowsOf(count: number, textAt: (at: number) => string): TestRow[] {
  return Array.from({ length: count }, (_, at) => {
    const id = `d${at}`;
    const meta = Buffer.from(JSON.stringify({ n: at, s: textAt(at) }));
    const entry = entryOf({ id, text: null, meta, vector: Float32Array.of(1) });
    return { id, sequence: at + 1, writtenAt: 1.7e15 + at, entry };
  });
}

interface Watched {
  readonly context: QueryContext;
  readonly tasks: MatchTask[];
  turns(): number;
  cancel(): void;
}

/** A context in which each look finds the turn over. What is asked of RE2 elsewhere finds nothing. */
function watched(snapshot: QueryContext['snapshot'], match?: QueryContext['match']): Watched {
  const tasks: MatchTask[] = [];
  const clock = new FakeClock();
  const turn = ownTurn(clock);
  const context = {
    ...contextOf(snapshot, clock),
    slice: new TimeSlice(clock, new ReadDeadline(clock, 1e9), turn),
    match: (task: MatchTask) => {
      tasks.push(task);
      return match?.(task) ?? Promise.resolve({ match: null, cpuMs: 3 });
    },
  };
  let turns = 0;
  const { slice } = context;
  slice.due = () => true;
  const giveWay = slice.giveWay.bind(slice);
  slice.giveWay = () => {
    turns++;
    return giveWay();
  };
  return { context, tasks, turns: () => turns, cancel: () => turn.cancel() };
}

const answersOf = async (context: QueryContext, sql: string) => JSON.parse(await runSql(context, { sql }));

test('LIKE gives way after about a million steps, whatever the pattern, and a neighbour is answered meanwhile', async () => {
  const hard = await snapshotOfRows(rowsOf(160, (at) => `${'a'.repeat(15_900)}${at}`));
  const light = await snapshotOfRows(rowsOf(3, () => 'x'));
  // Words of 32 characters, of which each byte takes a step.
  for (const [pattern, words] of [
    [`%_${'a'.repeat(500)}b%`, 16],
    [`%${'a_'.repeat(490)}b%`, 31],
  ] as const) {
    const { context, turns } = watched(hard.snapshot);
    let isOver = false;
    const attack = answersOf(context, `SELECT COUNT(*) FROM docs WHERE s LIKE '${pattern}'`).finally(() => {
      isOver = true;
    });
    let answered = 0;
    while (!isOver) {
      await answersOf(contextOf(light.snapshot, new FakeClock()), 'SELECT COUNT(*) FROM docs');
      if (!isOver) answered++;
      await nextTurn();
    }
    assert.deepEqual((await attack).rows, [[0]]);
    const turnsMin = Math.floor((160 * 15_900 * words) / 1e6 / 2);
    assert.ok(turns() >= turnsMin, `${turns()} turns, of ${turnsMin}`);
    assert.ok(answered >= 5, `${answered}`);
  }
});

test('finds of a costly pattern leave the thread in pieces of a tenth of a second at worst, and are charged', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(4, (at) => `${'ab'.repeat(7_900)}${at}`));
  const pattern = '(?:a?){999}(?:b?){999}c';
  const { nanoseconds, bytesMax } = new QueryPatterns().of(pattern, true);
  for (const sql of [
    `SELECT REGEXP_REPLACE(s, '${pattern}', 'x') AS r, COUNT(*) FROM docs GROUP BY r`,
    `SELECT MAX(REGEXP_REPLACE(s, '${pattern}', 'x')), COUNT(*), SUM(n) FROM docs`,
    `SELECT n FROM docs WHERE REGEXP_REPLACE(s, '${pattern}', 'x') <> '' ORDER BY REGEXP_REPLACE(s, '${pattern}', 'y')`,
  ]) {
    const { context, tasks } = watched(snapshot);
    await answersOf(context, sql);
    assert.ok(tasks.length >= 4 * 4, `${tasks.length}: ${sql}`);
    const bytesMost = Math.max(2 * bytesMax + 20, (limits.matchPieceMsMax * 1e6) / nanoseconds + 20);
    for (const { text } of tasks) assert.ok(text.length <= bytesMost, `${text.length} of ${bytesMost}`);
    assert.ok(context.slice.cpuMs >= 3 * tasks.length, `${context.slice.cpuMs} ms`);
  }
});

test('answers are the same wherever evaluation was interrupted', async () => {
  const text = (at: number) => `${'ab'.repeat(at % 7)}c${'xyz'.repeat(at % 90)}${at % 11}`;
  const { snapshot } = await snapshotOfRows(rowsOf(700, text));
  const runner = new MatchRunner();
  const slow = 'x.*?q|(y)z';
  for (const sql of [
    `SELECT REGEXP_REPLACE(s, '${slow}', '<\\1>') AS r, COUNT(*), SUM(n), MIN(s) FROM docs GROUP BY r ORDER BY r LIMIT 7`,
    `SELECT s, REGEXP_REPLACE(s, '${slow}', '') AS r, COUNT(*) FROM docs GROUP BY s, r HAVING REGEXP_REPLACE(r, 'a', 'b') LIKE '%bb%c%' ORDER BY s DESC LIMIT 5`,
    `SELECT COUNT(*), SUM(n), COUNT(DISTINCT REGEXP_REPLACE(s, '${slow}', '-')), MAX(REGEXP_REPLACE(REGEXP_REPLACE(s, 'a', 'bb'), '${slow}', '')) FROM docs WHERE s LIKE '%_x%y_'  OR n < 200`,
    `SELECT n, CASE WHEN s LIKE '%x_z%' THEN REGEXP_REPLACE(s, '${slow}', 'q') ELSE s END AS k FROM docs WHERE n > 300 ORDER BY k, n LIMIT 20`,
    `SELECT REGEXP_REPLACE(s, '${slow}', '') FROM docs LIMIT 5 OFFSET 400`,
  ]) {
    const context = contextOf(snapshot, new FakeClock());
    context.slice.due = () => false;
    const expected = (await answersOf(context, sql)).rows;
    const { context: often } = watched(snapshot, async (task) => runner.run(task));
    assert.deepEqual((await answersOf(often, sql)).rows, expected, sql);
    // Now and then.
    let looks = 0;
    const some = watched(snapshot, async (task) => runner.run(task));
    some.context.slice.due = () => looks++ % 37 === 5;
    assert.deepEqual((await answersOf(some.context, sql)).rows, expected, sql);
    assert.ok(expected.length > 0, sql);
  }
});

test('what a text makes too costly or too large is refused with line and column, and its work is counted', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(3, () => 'ab'.repeat(8_000)));
  for (const [expression, says, isCounted] of [
    [
      "REGEXP_REPLACE(s, '(?s)(?:a?){999}(?:b?){999}(?:a?){999}.*c', 'x')",
      /may take longer than 1 s for 16 KB/,
      true,
    ],
    [`REGEXP_REPLACE(s, '', '${'x'.repeat(900)}')`, /makes more text than fits/, false],
    ["REGEXP_REPLACE(s, 'a', '\\3')", /names "\\3", and the pattern has no groups/, false],
    [`REGEXP_REPLACE(s, '${'\\pL'.repeat(300)}', '')`, /the regex is too large/, false],
  ] as const) {
    const error = await answersOf(
      contextOf(snapshot, new FakeClock()),
      `SELECT ${expression} FROM docs`,
    ).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ApiError && error.status === 422, String(error));
    assert.match(error.message, says);
    assert.match(error.message, /^sql: line \d+, column \d+: /);
    if (isCounted) assert.ok(spentBefore(error).cpuMs > 0);
  }
});

test('a statement that nobody waits for any more asks nothing more of RE2', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(20, (at) => `${'ab'.repeat(7_900)}${at}`));
  const watching = watched(snapshot, async () => {
    if (watching.tasks.length === 5) watching.cancel();
    return { match: null, cpuMs: 1 };
  });
  await assert.rejects(
    answersOf(watching.context, "SELECT REGEXP_REPLACE(s, '(?:a?){999}(?:b?){999}c', 'x') FROM docs"),
    (error) => error instanceof ApiError && error.code === 'query_timeout',
  );
  assert.equal(watching.tasks.length, 5);
});
