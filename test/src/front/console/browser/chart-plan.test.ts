import assert from 'node:assert/strict';
import { it } from 'node:test';
import { planChart, scaleOf } from '../../../../../src/front/console/browser/chart-plan.ts';

const plan = (columns: string, ...rows: unknown[][]) => {
  const named = columns.split(' ').map((column) => column.split(':'));
  return planChart({
    columns: named.map(([name]) => name ?? ''),
    types: named.map(([, type]) => type ?? ''),
    rows,
  });
};

it('texts against a number are bars, in the order of the answer', () => {
  const bars = plan('kind:text n:int', ['buoy', 3], [null, 5], ['beacon', 1]);

  assert.equal(bars?.kind, 'bars');
  assert.deepEqual(bars?.points, [
    { label: 'buoy', value: 3 },
    { label: 'NULL', value: 5 },
    { label: 'beacon', value: 1 },
  ]);
});

it('days and times are a line in their order, and so are numbers that ascend', () => {
  const days = plan('day:date n:int', ['2026-02-01', 2], ['2026-01-01', 1]);
  assert.deepEqual([days?.kind, days?.points[0]?.label], ['line', '2026-01-01']);
  assert.equal(plan('year:int level:float', [2025, 1.5], [2026, 2.5])?.kind, 'line');
  assert.equal(plan('year:int level:float', [2026, 1.5], [2025, 2.5])?.kind, 'bars');
});

it('the number may stand before its name, and may have 64 bits', () => {
  const found = plan('n:int kind:text', [435090932899640449n, 'buoy'], [2, 'beacon']);

  assert.deepEqual([found?.labelName, found?.valueName], ['kind', 'n']);
  assert.equal(found?.points[0]?.value, Number(435090932899640449n));
});

it('what has no two columns to compare, or no two rows, is not drawn', () => {
  assert.equal(plan('kind:text', ['a'], ['b']), null);
  assert.equal(plan('n:int', [1], [2]), null);
  assert.equal(plan('kind:text n:int', ['a', 1]), null);
  assert.equal(plan('kind:text n:int', ['a', null], ['b', 1]), null);
});

it('of many bars the first are drawn, and the rest are counted', () => {
  const many = plan('kind:text n:int', ...Array.from({ length: 30 }, (_, n) => [`k${n}`, n]));

  assert.deepEqual([many?.points.length, many?.omitted], [24, 6]);
});

it('a scale has round numbers, zero among them', () => {
  assert.deepEqual(scaleOf([3, 8]), { low: 0, high: 8, ticks: [0, 2, 4, 6, 8] });
  assert.deepEqual(scaleOf([-4, 9]).ticks, [-5, 0, 5, 10]);
  assert.deepEqual(scaleOf([0, 0]).low, 0);
  for (const most of [1, 7, 99, 12_345, 0.003, 1e15]) {
    const { high, ticks } = scaleOf([most]);
    assert.ok(high >= most && high <= most * 2.5 && ticks.length <= 7, `${most}: ${ticks}`);
  }
});
