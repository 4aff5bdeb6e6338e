import assert from 'node:assert/strict';
import { it } from 'node:test';
import * as format from '../../../../../src/front/console/browser/format.ts';

it('bytes have the unit that reads best', () => {
  const shown = [0, 1, 999, 1_000, 1_500, 999_500, 10_000_000, 1e9, 1.25e12].map(format.formatBytes);

  assert.deepEqual(shown, [
    '0 bytes',
    '1 byte',
    '999 bytes',
    '1 kB',
    '1.5 kB',
    '1 MB',
    '10 MB',
    '1 GB',
    '1.3 TB',
  ]);
});

it('times are in UTC and say so', () => {
  assert.equal(format.formatTime('2026-11-22T23:59:00.000Z'), '22 Nov 2026, 23:59 UTC');
  assert.equal(format.formatDay('2026-11-01'), '1 Nov');
});

it('one is not many', () => {
  assert.deepEqual(
    [1, 2, 1_000].map((count) => format.plural(count, 'row')),
    ['1 row', '2 rows', '1,000 rows'],
  );
});
