import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { ByteGate, type Hold, type Slow } from '../../../src/base/byte-gate.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const max = 1_000;
let clock: FakeClock;
let gate: ByteGate;

beforeEach(() => {
  clock = new FakeClock();
  gate = new ByteGate({ max, clock, waitersMax: 3 });
});

const held = (hold: Hold | null): Hold => {
  assert.ok(hold !== null, 'nothing was held');
  return hold;
};

/** Lets go as soon as it is asked to. */
function slowOne(secondsLeft: number): Slow & { hold: Hold | null } {
  return {
    hold: null,
    secondsLeft: () => secondsLeft,
    evict() {
      this.hold?.release();
    },
  };
}

test('one owner alone gets much, many get little, and something is always left for the next', () => {
  const perOwner: number[] = [];
  for (let owner = 1; owner <= 20; owner++) {
    while (gate.reserve(owner, 1) !== null);
    perOwner.push(gate.heldBy(owner));
  }

  assert.equal(perOwner[0], 200);
  assert.ok((perOwner[19] as number) >= 1);
  assert.ok(gate.reserve(21, 5) !== null, `${gate.held} of ${max} are held`);
});

test('who holds nothing may hold anything that fits', () => {
  assert.equal(gate.reserve(1, max + 1), null);
  const all = held(gate.reserve(1, max));
  assert.equal(gate.reserve(2, 1), null);

  all.release();
  all.release();

  assert.equal(gate.held, 0);
  assert.ok(gate.reserve(2, 1) !== null);
});

test('who waits gets what becomes free, and an owner at its own bound lets others pass', async () => {
  const first = held(gate.reserve(1, 900));
  const more = gate.reserveWithin(5_000, { owner: 1, amount: 200 });
  const other = gate.reserveWithin(5_000, { owner: 2, amount: 150 });
  const fits = gate.reserve(3, 50);

  assert.ok(fits !== null);
  first.release();

  assert.equal((await other)?.amount, 150);
  assert.equal((await more)?.amount, 200);
});

test('who asks again and again is behind who asks once', async () => {
  const first = held(gate.reserve(1, 900));
  const again = gate.reserveWithin(60_000, { owner: 1, amount: 900 });
  await clock.advance(100);
  const other = gate.reserveWithin(60_000, { owner: 2, amount: 900 });

  first.release();

  const got = held(await other);
  assert.equal(gate.heldBy(1), 0);
  got.release();
  assert.equal((await again)?.amount, 900);
});

test('waiting ends with nothing when its time is over, and more may not wait than may', async () => {
  gate.reserve(1, max);
  const waiting = [1, 2, 3].map((owner) => gate.reserveWithin(1_000, { owner: owner + 1, amount: 10 }));

  assert.equal(await gate.reserveWithin(1_000, { owner: 9, amount: 10 }), null);
  await clock.advance(1_001);

  assert.deepEqual(await Promise.all(waiting), [null, null, null]);
  assert.equal(gate.waiting, 0);
});

test('small ones do not pass a large one for ever', async () => {
  const first = held(gate.reserve(1, 600));
  const large = gate.reserveWithin(60_000, { owner: 2, amount: 700 });
  assert.ok(gate.reserve(3, 100) !== null, 'while it has hardly waited, others pass');

  await clock.advance(1_500);
  assert.equal(gate.reserve(4, 100), null, 'what it waits for is kept');
  first.release();

  assert.equal((await large)?.amount, 700);
});

test('the slowest holders of others let go for who needs the room, and fast ones stay', () => {
  const [fast, slow, stalled] = [slowOne(1), slowOne(60), slowOne(Number.POSITIVE_INFINITY)];
  for (const [owner, one] of [fast, slow, stalled].entries()) one.hold = gate.reserve(owner + 1, 300, one);

  assert.ok(gate.reserve(9, 350) !== null);

  assert.equal(gate.heldBy(3), 0, 'the stalled one was ended');
  assert.equal(gate.heldBy(2), 300, 'which was enough');
  assert.ok(gate.reserve(10, 300) !== null);
  assert.equal(gate.heldBy(2), 0);
  assert.equal(gate.reserve(11, 350), null, 'the fast one is let be');
  assert.equal(gate.heldBy(1), 300);
});

test('an owner at its own bound has only its own holders ended', () => {
  const [own, others] = [slowOne(60), slowOne(Number.POSITIVE_INFINITY)];
  own.hold = gate.reserve(1, 150, own);
  others.hold = gate.reserve(2, 100, others);

  assert.ok(gate.reserve(1, 150) !== null);

  assert.equal(gate.heldBy(1), 150);
  assert.equal(gate.heldBy(2), 100);
});

test('one that becomes slow while others wait lets go then', async () => {
  let secondsLeft = 0;
  const turning: Slow & { hold: Hold | null } = { ...slowOne(0), secondsLeft: () => secondsLeft };
  turning.hold = gate.reserve(1, 900, turning);
  const waiting = gate.reserveWithin(10_000, { owner: 2, amount: 500 });

  await clock.advance(1_000);
  secondsLeft = 30;
  await clock.advance(1_000);

  assert.equal((await waiting)?.amount, 500);
});

test('what is settled is not ended', () => {
  const settled = slowOne(Number.POSITIVE_INFINITY);
  settled.hold = gate.reserve(1, 900, settled);
  held(settled.hold).settle();

  assert.equal(gate.reserve(2, 500), null);
});

test('a hold that grows has its bounds, and a single one may have half of all', () => {
  const one = held(gate.reserve(1, 10));
  while (one.grow(10));
  assert.equal(one.amount, 500);

  assert.equal(gate.reserve(1, 1), null);
  assert.equal(held(gate.reserve(2, 1)).grow(120), true);
});

test('whatever is done, the sums are those of the holds', () => {
  const step = fc.record({
    owner: fc.integer({ min: 1, max: 5 }),
    amount: fc.integer({ min: 0, max: 400 }),
    end: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const tried = new ByteGate({ max, clock, waitersMax: 0 });
      const holds: Hold[] = [];
      for (const { owner, amount, end } of steps) {
        if (end) holds.shift()?.release();
        else {
          const hold = tried.reserve(owner, amount);
          if (hold !== null) holds.push(hold);
        }
        assert.equal(
          tried.held,
          holds.reduce((sum, hold) => sum + hold.amount, 0),
        );
        assert.ok(tried.held <= max);
      }
      for (const hold of holds) hold.release();
      assert.equal(tried.held, 0);
    }),
  );
});
