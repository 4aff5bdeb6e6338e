import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  addStored,
  addToDay,
  daysUntil,
  gbMonths,
  noUsage,
  periodOf,
  type UsageDays,
  usageOf,
} from '../../../src/accounts/usage.ts';

const at = (text: string) => Date.parse(text);
const hours = 3_600_000;

describe('a period', () => {
  it('is a calendar month in UTC', () => {
    const { start, end, month } = periodOf(at('2024-12-31T23:59:59.999Z'));

    assert.deepEqual([start, end, month], ['2024-12-01', '2025-01-01', '2024-12']);
  });

  it('sums its own days alone', () => {
    const days: UsageDays = new Map();
    addToDay(days, '2024-01-31', { queries: 1 });
    addToDay(days, '2024-02-01', { queries: 2, cpuMs: 0.5 });
    addToDay(days, '2024-02-29', { queries: 4, cpuMs: 0.25 });
    addToDay(days, '2024-03-01', { queries: 8 });

    const sum = usageOf(days, periodOf(at('2024-02-10T00:00:00Z')));

    assert.deepEqual(sum, { ...noUsage, queries: 6, cpuMs: 0.75 });
  });
});

describe('what is stored', () => {
  it('counts by the hour, on the day that it lay there', () => {
    const days: UsageDays = new Map();

    addStored(days, at('2024-02-01T22:00:00Z'), at('2024-02-03T06:00:00Z'), 2e9);

    assert.deepEqual(
      [...days].map(([day, { gbHours, storedBytes }]) => [day, gbHours, storedBytes]),
      [
        ['2024-02-01', 4, 2e9],
        ['2024-02-02', 48, 2e9],
        ['2024-02-03', 12, 2e9],
      ],
    );
  });

  it('makes a gigabyte-month of a gigabyte that lies there all month, however long that is', () => {
    for (const month of ['2024-02', '2024-03', '2023-02']) {
      const period = periodOf(at(`${month}-01T00:00:00Z`));
      const days: UsageDays = new Map();
      addStored(days, period.startMs, period.endMs, 1e9);

      assert.ok(Math.abs(gbMonths(usageOf(days, period), period) - 1) < 1e-9, month);
    }
  });

  it('leaves no days where nothing is', () => {
    const days: UsageDays = new Map();

    addStored(days, at('2024-02-01T00:00:00Z'), at('2024-02-20T00:00:00Z'), 0);

    assert.equal(days.size, 0);
  });
});

describe('the days of a period', () => {
  it('are all of them until today, and what is stored stays from one to the next', () => {
    const days: UsageDays = new Map();
    addStored(days, at('2024-01-30T00:00:00Z'), at('2024-01-30T00:00:00Z') + hours, 5e8);
    addToDay(days, '2024-02-02', { queries: 3 });
    days.set('2024-02-02', { ...noUsage, queries: 3, storedBytes: 7e8 });

    const now = at('2024-02-04T12:00:00Z');
    const shown = daysUntil(days, periodOf(now), now);

    assert.deepEqual(
      shown.map(({ day, usage }) => [day, usage.queries, usage.storedBytes]),
      [
        ['2024-02-01', 0, 5e8],
        ['2024-02-02', 3, 7e8],
        ['2024-02-03', 0, 7e8],
        ['2024-02-04', 0, 7e8],
      ],
    );
  });
});
