import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { FairQueue } from '../../../src/base/fair-queue.ts';
import type { Share } from '../../../src/base/share.ts';

let queue: FairQueue<string>;
beforeEach(() => {
  queue = new FairQueue({ tenantMax: 1_000, max: 10_000 });
});

const share = (owner: number, tenant = owner, weight = 1): Share => ({ owner, tenant, weight });

/** Serves `count` items, each of its cost, and answers whose they were. */
function served(count: number, cost: (item: string) => number = () => 1): string[] {
  const order: string[] = [];
  for (let i = 0; i < count; i++) {
    const taken = queue.shift();
    if (taken === null) break;
    order.push(taken.item);
    queue.charge(taken.share, cost(taken.item));
  }
  return order;
}

test('owners take turns however many items one of them has', () => {
  for (let i = 0; i < 100; i++) queue.push(share(1), 'a');
  served(3);
  for (let i = 0; i < 3; i++) queue.push(share(2), 'b');

  assert.equal(served(6).filter((item) => item === 'b').length, 3);
});

test('an owner with many tenants gets no more than one with one, and its tenants share it', () => {
  for (let i = 0; i < 100; i++) {
    for (let tenant = 0; tenant < 20; tenant++) queue.push(share(1, 100 + tenant), `a${tenant}`);
    queue.push(share(2), 'b');
  }

  const order = served(80);

  assert.equal(order.filter((item) => item === 'b').length, 40);
  assert.equal(new Set(order).size, 21, 'each of the twenty was served');
});

test('weights divide what there is', () => {
  for (let i = 0; i < 200; i++) {
    queue.push(share(1, 1, 8), 'a');
    queue.push(share(2, 2, 4), 'b');
    queue.push(share(3, 3, 1), 'c');
  }

  const order = served(130);

  const count = (wanted: string) => order.filter((item) => item === wanted).length;
  assert.ok(
    Math.abs(count('a') - 80) <= 2 && Math.abs(count('b') - 40) <= 2 && Math.abs(count('c') - 10) <= 2,
    order.join(''),
  );
});

test('who is expensive is served less often', () => {
  for (let i = 0; i < 100; i++) {
    queue.push(share(1), 'dear');
    queue.push(share(2), 'cheap');
  }

  const order = served(44, (item) => (item === 'dear' ? 10 : 1));

  assert.ok(order.filter((item) => item === 'dear').length <= 5, order.join(' '));
});

test('nobody pays for what it used while nobody else wanted it', () => {
  queue.charge(share(1), 1_000_000);
  for (let i = 0; i < 10; i++) {
    queue.push(share(1), 'a');
    queue.push(share(2), 'b');
  }

  assert.equal(served(10).filter((item) => item === 'a').length, 5);
});

test('nobody saves up what it did not use', () => {
  for (let i = 0; i < 100; i++) queue.push(share(1), 'a');
  served(50);
  for (let i = 0; i < 100; i++) queue.push(share(2), 'b');

  assert.equal(served(20).filter((item) => item === 'b').length, 10);
});

test('who was away has its burst before those who never are, and no more than that', () => {
  queue = new FairQueue({ tenantMax: 1_000, max: 10_000, burst: 5 });
  for (let i = 0; i < 100; i++) for (const owner of [1, 2, 3]) queue.push(share(owner), 'busy');
  served(60);
  assert.equal(queue.hasBurst(1), false);
  assert.equal(queue.hasBurst(9), true);
  for (let i = 0; i < 20; i++) queue.push(share(9), 'light');

  const order = served(30);

  assert.deepEqual(order.slice(0, 5), Array(5).fill('light'));
  assert.equal(queue.hasBurst(9), false);
  assert.ok(order.slice(6).filter((item) => item === 'light').length <= 7, order.join(' '));
});

test('it is told whether somebody with a burst waits', () => {
  queue = new FairQueue({ tenantMax: 1_000, max: 10_000, burst: 5 });
  for (let i = 0; i < 100; i++) for (const owner of [1, 2, 3]) queue.push(share(owner), 'busy');
  served(60);
  assert.equal(queue.burstWaits, false);

  for (let i = 0; i < 6; i++) queue.push(share(9), 'light');

  assert.equal(queue.burstWaits, true);
  served(5);
  assert.equal(queue.burstWaits, false);
});

test('a burst is as many times as much as the weight says', () => {
  queue = new FairQueue({ tenantMax: 1_000, max: 10_000, burst: 5 });
  for (let i = 0; i < 100; i++) for (const owner of [1, 2, 3]) queue.push(share(owner), 'busy');
  served(60);
  for (let i = 0; i < 40; i++) queue.push(share(9, 9, 4), 'light');

  assert.deepEqual(served(20), Array(20).fill('light'));
});

test('a burst that was used comes back as the others use theirs', () => {
  queue = new FairQueue({ tenantMax: 1_000, max: 10_000, burst: 5 });
  for (let i = 0; i < 300; i++) for (const owner of [1, 2]) queue.push(share(owner), 'busy');
  const bursts = Array.from({ length: 4 }, () => {
    served(10);
    for (let i = 0; i < 5; i++) queue.push(share(9), 'light');
    return served(5).filter((item) => item === 'light').length;
  });

  assert.deepEqual(bursts, [5, 5, 5, 5]);
});

test('an estimate is paid when an item is taken, and the difference when it has ended', () => {
  for (let i = 0; i < 4; i++) {
    queue.push(share(1), 'a');
    queue.push(share(2), 'b');
  }

  const first = queue.shift(100);
  const second = queue.shift(100);
  assert.deepEqual([first?.item, second?.item], ['a', 'b']);
  assert.ok(first !== null);
  queue.charge(first.share, -99);

  assert.deepEqual(served(3), ['a', 'a', 'a']);
});

test('owners that may not have one now are passed over, and keep their place', () => {
  queue.push(share(1), 'a');
  queue.push(share(2), 'b');

  assert.equal(queue.shift(0, (owner) => owner !== 1)?.item, 'b');
  assert.equal(
    queue.shift(0, () => false),
    null,
  );
  assert.equal(queue.shift()?.item, 'a');
});

test('what each tenant, and all, may have waiting is bounded', () => {
  const small = new FairQueue<string>({ tenantMax: 2, max: 3 });

  assert.deepEqual(
    [small.push(share(1), 'a'), small.push(share(1), 'b'), small.push(share(1), 'c')],
    [true, true, false],
  );
  assert.equal(small.push(share(2), 'd'), true);
  assert.equal(small.push(share(3), 'e'), false);
  small.shift();
  assert.equal(small.push(share(3), 'e'), true);
});

test('where it is full, the newest item of who has most waiting makes room for who has less', () => {
  for (const item of ['a1', 'a2', 'a3']) queue.push(share(1), item);
  queue.push(share(2), 'b1');

  assert.equal(queue.dropLongest(share(3)), 'a3');
  assert.equal(queue.dropLongest(share(2)), null, 'it would then have more than the other');
  assert.equal(queue.size, 3);
  assert.deepEqual(served(5).sort(), ['a1', 'a2', 'b1']);
});

test('everything that was pushed is taken once, in the order of its tenant', () => {
  const step = fc.record({
    owner: fc.integer({ min: 1, max: 4 }),
    tenant: fc.integer({ min: 1, max: 3 }),
    take: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const tried = new FairQueue<number>({ tenantMax: 1_000, max: 10_000 });
      const last = new Map<string, number>();
      let [pushed, taken] = [0, 0];
      const take = () => {
        const next = tried.shift(1);
        if (next === null) return false;
        taken++;
        const key = `${next.share.owner}/${next.share.tenant}`;
        assert.ok(next.item > (last.get(key) ?? -1));
        last.set(key, next.item);
        return true;
      };
      for (const { owner, tenant, take: takes } of steps) {
        if (takes) take();
        else if (tried.push(share(owner, owner * 10 + tenant), pushed)) pushed++;
      }
      while (take());
      assert.equal(taken, pushed);
      assert.equal(tried.size, 0);
    }),
  );
});
