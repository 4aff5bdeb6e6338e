/** One tenant's SQL beside its neighbours: what it holds, and how often others have their turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { runSql } from '../../../../actors/search/sql/run-sql.ts';
import { SqlMemory } from '../../../../actors/search/sql/sql-memory.ts';
import { parseSql } from '../../../../actors/sql/parse/parser.ts';
import { bindInSteps, bindSelect } from '../../../../actors/sql/plan/bind.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { sortedInSteps } from '../../../../actors/sql/run/sorted-in-steps.ts';
import { MemoryBudget } from '../../../../actors/thread/memory-budget.ts';
import { ApiError } from '../../../../protocol/errors.ts';
import { limits } from '../../../../protocol/limits.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { alwaysDue, contextOf, holdingOf, snapshotOfRows } from '../../../support/query-context.ts';
import { entryOf, type TestRow } from '../../../support/segments.ts';

function rowsOf(count: number, metaOf: (at: number) => string): TestRow[] {
  return Array.from({ length: count }, (_, at) => {
    const id = `d${at}`;
    const entry = entryOf({ id, text: null, meta: Buffer.from(metaOf(at)), vector: Float32Array.of(1) });
    return { id, sequence: at + 1, writtenAt: 1.7e15 + at, entry };
  });
}

const many = (count: number, of: (at: number) => string, separator: string) =>
  Array.from({ length: count }, (_, at) => of(at)).join(separator);

function planOf(sql: string) {
  const statement = parseSql(sql);
  assert.equal(statement.kind, 'select');
  if (statement.kind !== 'select') throw new Error('no SELECT');
  return bindSelect(statement, [
    { name: 'n', type: 'int' },
    { name: 's', type: 'text' },
  ]);
}

test('what an alias stands for is bound once, and evaluated once for a frame, however often it is named', () => {
  const cases = many(200, (at) => `WHEN n = ${at} THEN ${at}`, ' ');
  for (const clause of [
    `GROUP BY n HAVING ${many(700, (at) => `x = ${at}`, ' OR ')}`,
    `ORDER BY CASE ${many(700, (at) => `WHEN x = ${at} THEN 1`, ' ')} END`,
  ]) {
    const sql = `SELECT CASE ${cases} END AS x FROM docs ${clause}`;
    const plan = planOf(sql);
    // Each for itself they were 200 × 700 × 3.
    assert.ok(plan.weight < 10_000, `${plan.weight}`);
    assert.ok(plan.repeated.size >= 1);
  }
  assert.equal(planOf('SELECT n + 1, LENGTH(s) FROM docs WHERE n > 1').repeated.size, 0);
});

test('binding gives way, and what it makes in steps is what it makes at once', () => {
  const cases = many(200, (at) => `WHEN n = ${at} THEN ${at}`, ' ');
  for (const [sql, stepsMin] of [
    [
      `SELECT CASE ${cases} END AS x, COUNT(*) FROM docs GROUP BY n HAVING ${many(700, (at) => `x = ${at}`, ' OR ')} ORDER BY x + 1`,
      4,
    ],
    [
      `SELECT ${many(500, (at) => `n + ${at} AS c${at}`, ', ')} FROM docs WHERE ${many(700, (at) => `n = ${at}`, ' OR ')} ORDER BY c7`,
      4,
    ],
    [
      `SELECT ${many(300, (at) => `SUM(n) - ${at}`, ', ')}, COUNT(DISTINCT s) FROM docs WHERE contains(text, 'a') GROUP BY s`,
      1,
    ],
    ['SELECT n FROM docs', 0],
  ] as const) {
    const statement = parseSql(sql);
    if (statement.kind !== 'select') throw new Error('no SELECT');
    const steps = bindInSteps(statement, [
      { name: 'n', type: 'int' },
      { name: 's', type: 'text' },
    ]);
    let count = 0;
    let next = steps.next();
    for (; !next.done; next = steps.next()) count++;
    assert.ok(count >= stepsMin, `${count} steps: ${sql.slice(0, 60)}`);
    assert.deepEqual(next.value, planOf(sql));
  }
});

test('a repeated expression answers what it answers alone', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(5_000, (at) => `{"n": ${at}, "s": "a${at % 9}"}`));
  const asked = async (sql: string) =>
    JSON.parse(await runSql(contextOf(snapshot, new FakeClock()), { sql })).rows;
  const x = "CASE WHEN n - 5 > 4990 THEN s WHEN s = 'a3' THEN 'three' ELSE COALESCE(s, 'none') END";
  assert.deepEqual(
    await asked(
      `SELECT ${x} AS x, LENGTH(${x}) + LENGTH(${x}), ${x} = ${x} FROM docs WHERE ${x} <> 'a1' AND ${x} <> 'a2' ORDER BY x DESC, n LIMIT 2`,
    ),
    [
      ['three', 10, 1],
      ['three', 10, 1],
    ],
  );
});

test('others have their turn within a heavy statement, after a few thousand steps of it', async () => {
  const rowCount = 6_000;
  const { snapshot } = await snapshotOfRows(rowsOf(rowCount, (at) => `{"n": ${at}, "s": "a${at}"}`));
  const ors = many(1_300, (at) => `n = ${at * 10}`, ' OR ');
  const cases = `CASE ${many(900, (at) => `WHEN n = ${at} THEN 'x${at}'`, ' ')} END`;
  for (const [sql, weightMin] of [
    [`SELECT COUNT(*) FROM docs WHERE ${ors}`, 2_600],
    [`SELECT MAX(${cases}) FROM docs`, 2_700],
    [`SELECT ${cases} AS x, COUNT(*) FROM docs GROUP BY x`, 2_700],
    [`SELECT ${many(500, (at) => `n + ${at}`, ', ')} FROM docs ORDER BY n DESC LIMIT 3`, 500],
  ] as const) {
    const context = contextOf(snapshot, new FakeClock());
    const counted = alwaysDue(context);
    await runSql(context, { sql });
    const turnsMin = Math.floor((rowCount * weightMin) / 524_288 / 2);
    assert.ok(counted.turns >= turnsMin, `${counted.turns} turns, of ${turnsMin}: ${sql.slice(0, 60)}`);
  }
});

test('others have their turn between two of many expressions of a frame, which changes no answer', async () => {
  const metaOf = (at: number) => `{"n": ${at}, "s": "a${at % 9}"${at % 5 === 0 ? '' : `, "f": ${at / 4}`}}`;
  const { snapshot } = await snapshotOfRows(rowsOf(700, metaOf));
  const sums = (of: string) => many(120, (at) => `${of} + ${at}`, ' - ');
  const lengths = many(120, (at) => `LENGTH(s) + ${at}`, ' + ');
  for (const sql of [
    `SELECT ${sums('n')} AS x, ${sums('f')} AS y, COUNT(*), MAX(${sums('n')}), SUM(${lengths}) FROM docs GROUP BY x, y ORDER BY x DESC, y LIMIT 50`,
    `SELECT s, ${lengths} AS x, AVG(${sums('f')}) FROM docs GROUP BY s, x HAVING SUM(n) + ${sums('COUNT(*)')} > 0 ORDER BY s`,
    `SELECT n, ${sums('n')} AS x, s FROM docs WHERE s = 'a3' AND ${sums('f')} > 0 AND ${lengths} > 7 ORDER BY x + n DESC LIMIT 40`,
    `SELECT CASE WHEN ${sums('n')} > 99999 THEN s ELSE 'none' END AS x, ${sums('f')}, ${sums('LENGTH(s)')} FROM docs LIMIT 300`,
    `SELECT COUNT(*) FROM docs WHERE n <> 3 AND (${many(300, (at) => `n = ${at * 2}`, ' OR ')})`,
  ]) {
    const whole = contextOf(snapshot, new FakeClock());
    const interrupted = contextOf(snapshot, new FakeClock());
    const counted = alwaysDue(interrupted);

    const answer = JSON.parse(await runSql(interrupted, { sql }));

    assert.deepEqual(answer.rows, JSON.parse(await runSql(whole, { sql })).rows, sql.slice(0, 90));
    assert.ok(answer.rows.length > 0);
    assert.ok(counted.turns > 250, `${counted.turns} turns: ${sql.slice(0, 90)}`);
  }
});

test('a neighbour on the thread is answered while a heavy statement runs', async () => {
  const heavy = await snapshotOfRows(rowsOf(20_000, (at) => `{"n": ${at}, "s": "a${at}"}`));
  const light = await snapshotOfRows(rowsOf(10, (at) => `{"n": ${at}}`));
  const cases = `CASE ${many(400, (at) => `WHEN n = ${at} THEN 'x${at}'`, ' ')} END`;
  const sql = `SELECT ${cases} AS x, COUNT(*) FROM docs WHERE ${many(400, (at) => `n <> -${at}`, ' AND ')} GROUP BY x`;
  const attacker = contextOf(heavy.snapshot, new FakeClock());
  attacker.slice.due = () => true;
  let isOver = false;
  const attack = runSql(attacker, { sql }).finally(() => {
    isOver = true;
  });
  let answered = 0;
  while (!isOver) {
    await runSql(contextOf(light.snapshot, new FakeClock()), { sql: 'SELECT COUNT(*) FROM docs' });
    if (!isOver) answered++;
    await nextTurn();
  }
  await attack;
  assert.ok(answered >= 20, `${answered}`);
});

test('a constant that is replaced in turns is replaced once, and a new one again', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(100, (at) => `{"s": "a${at % 9}"}`));
  const inner = "REGEXP_REPLACE('abcabc', '(b)', '<\\1>')";
  const context = contextOf(snapshot, new FakeClock(), 60_000);
  // Nothing is replaced within a turn: each text interrupts.
  context.slice.due = () => true;
  let turns = 0;
  const { giveWay } = context.slice;
  context.slice.giveWay = async () => {
    if (++turns > 5_000) throw new Error('it goes on without end');
    await giveWay.call(context.slice);
  };
  const sql = `SELECT REGEXP_REPLACE(${inner}, 'c', 'd') AS r, COUNT(*) FROM docs WHERE REGEXP_REPLACE(${inner}, 'a', '') <> s GROUP BY r`;
  assert.deepEqual(JSON.parse(await runSql(context, { sql })).rows, [['a<b>da<b>d', 100]]);
});

test('sorting rows that OFFSET leaves out gives way too, and equal rows keep their order', () => {
  const items = Array.from({ length: 30_000 }, (_, at) => ({ key: (at * 7_919) % 101, at }));
  let steps = 0;
  const sorting = sortedInSteps([...items], (a, b) => a.key - b.key);
  let next = sorting.next();
  for (; !next.done; next = sorting.next()) steps++;
  assert.ok(steps > 50, `${steps}`);
  assert.deepEqual(
    next.value,
    items.toSorted((a, b) => a.key - b.key),
  );
});

test('an owner holds a quarter of the free memory, an owner alone half of all, and others always get some', () => {
  const budget = new MemoryBudget(800 * 2 ** 20);
  const memory = new SqlMemory(budget, new FakeClock());
  const total = 400;
  const grown = (holding: { grow(bytes: number): boolean }) => {
    let megabytes = 0;
    while (holding.grow(2 ** 20)) megabytes++;
    return megabytes;
  };
  // Twenty tenants of one person, two queries each.
  const attackers = Array.from({ length: 40 }, () => memory.holding(1));
  const held = attackers.map(grown).reduce((sum, megabytes) => sum + megabytes, 0);
  assert.ok(held <= total / 2, `${held}`);
  assert.equal(budget.line('queries'), held * 2 ** 20);
  const neighbour = memory.holding(2);
  const left = grown(neighbour);
  assert.ok(left >= (total - held) / 5, `${left}`);
  for (const holding of attackers) holding.release();
  neighbour.release();
  neighbour.release();
  assert.equal(memory.held, 0);
  assert.equal(budget.line('queries'), 0);
  assert.equal(grown(memory.holding(3)), total / 2);
});

test('no query holds more than the limit, however much is free', () => {
  const holding = new SqlMemory(new MemoryBudget(2 ** 40), new FakeClock()).holding(1);
  assert.ok(holding.grow(limits.sqlMemoryBytesMax));
  assert.equal(holding.grow(1), false);
});

test('what a query may not hold is refused before it is allocated', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(70_000, (at) => `{"n": ${at}}`));
  for (const sql of [
    `SELECT n, ${many(600, (at) => `AVG(n + ${at})`, ', ')} FROM docs GROUP BY n`,
    'SELECT n, COUNT(DISTINCT n) FROM docs GROUP BY n ORDER BY n LIMIT 1',
    'SELECT n FROM docs ORDER BY n LIMIT 10000 OFFSET 1000000',
  ]) {
    let heldMax = 0;
    const holding = holdingOf(1_500_000);
    const context = {
      ...contextOf(snapshot, new FakeClock()),
      buffers: null,
      sqlHolding: {
        grow: (bytes: number) => {
          const may = holding.grow(bytes);
          if (may) heldMax += bytes;
          return may;
        },
      },
    };
    const error = await runSql(context, { sql }).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ApiError, `${sql.slice(0, 60)}: ${String(error)}`);
    assert.equal(error.status, 422);
    assert.match(error.fields?.sql ?? '', /take more than the \S+ MB that it may have now/);
    assert.ok(heldMax <= 1_500_000);
  }
});

test('room ahead of need is not taken where it would leave none', () => {
  const room = new Room(4_000_000, null, holdingOf(3_000_000));
  const small = room.grown(new Int32Array(0), 60_000);
  const larger = room.grown(small, 70_000);
  assert.ok(larger.length >= 70_000 && larger.length < 100_000, `${larger.length}`);
});

test('one row of an answer is bounded', async () => {
  const long = 'x'.repeat(15_000);
  const { snapshot } = await snapshotOfRows(rowsOf(2, () => `{"s": "${long}"}`));
  const sql = `SELECT ${many(1_000, () => 's', ', ')} FROM docs`;
  await assert.rejects(
    runSql(contextOf(snapshot, new FakeClock()), { sql }),
    /a row of the answer takes more than 8 MB/,
  );
});

test('a long list of strings of one length is looked up, not compared', async () => {
  const { snapshot } = await snapshotOfRows(
    rowsOf(20_000, (at) => `{"s": "${String(at).padStart(6, '0')}"}`),
  );
  const list = many(6_000, (at) => `'${String(at * 3).padStart(6, '0')}'`, ',');
  const answer = await runSql(contextOf(snapshot, new FakeClock()), {
    sql: `SELECT COUNT(*) FROM docs WHERE s IN (${list})`,
  });
  assert.deepEqual(JSON.parse(answer).rows, [[6_000]]);
});

test('strings that lie far apart in a dictionary are judged for the rows that have them', async () => {
  const { snapshot } = await snapshotOfRows(rowsOf(120_000, (at) => `{"n": ${at}, "s": "value ${at}"}`));
  const sql =
    "SELECT COUNT(*) FROM docs WHERE n >= 50000 AND n < 59000 AND (s LIKE '%7' OR s = 'value 58000')";
  // The second time its columns are kept, with one dictionary for the segment.
  for (let time = 0; time < 3; time++) {
    const answer = await runSql(contextOf(snapshot, new FakeClock()), { sql });
    assert.deepEqual(JSON.parse(answer).rows, [[901]]);
  }
});

test('what REGEXP_REPLACE makes of many rows or groups is bounded some of them at a time', async () => {
  const long = 'x'.repeat(15_000);
  const { snapshot } = await snapshotOfRows(rowsOf(1_600, (at) => `{"n": ${at}, "s": "${at}${long}"}`));
  const tripled = (of: string) => `LENGTH(REGEXP_REPLACE(${of}, '^(.*)$', '\\1\\1\\1'))`;
  for (const sql of [
    `SELECT ${tripled('s')} AS x FROM docs WHERE n >= 1598 ORDER BY n`,
    `SELECT ${tripled('MAX(s)')} AS x FROM docs GROUP BY n ORDER BY n LIMIT 2 OFFSET 1598`,
    `SELECT ${tripled('s')} AS x FROM docs WHERE ${tripled('s')} > 0 AND n + 0 >= 1598 ORDER BY n`,
  ]) {
    const { rows } = JSON.parse(await runSql(contextOf(snapshot, new FakeClock()), { sql }));

    assert.deepEqual(rows, [[45_012], [45_012]], sql.slice(0, 60));
  }
});
