import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SingleFlight } from '../../../src/base/single-flight.ts';

test('callers at the same time share one run, later ones start another', async () => {
  const flights = new SingleFlight<string, number>();
  let runs = 0;
  const start = async () => ++runs;

  const together = await Promise.all([flights.run('a', start), flights.run('a', start)]);
  const later = await flights.run('a', start);

  assert.deepEqual(together, [1, 1]);
  assert.equal(later, 2);
  assert.equal(flights.size, 0);
});

test('a failure reaches everyone who joined and is not kept', async () => {
  const flights = new SingleFlight<string, number>();
  const fail = async () => {
    throw new Error('no');
  };

  const both = await Promise.allSettled([flights.run('a', fail), flights.run('a', fail)]);

  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(await flights.run('a', async () => 1), 1);
});
