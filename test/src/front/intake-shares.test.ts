import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { IntakeShares } from '../../../src/front/intake-shares.ts';
import { RecentOwners } from '../../../src/router/recent-owners.ts';

const chunkBytes = 512 * 1024;
const free = { owner: 1, weight: 4 };
const unverified = { owner: 2, weight: 1 };
const alone = { hasOthersThan: () => false };

/** A clock that stands, and says how long somebody was to sleep. */
function standingClock() {
  const slept: number[] = [];
  const clock = {
    nowMs: 0,
    monotonic: () => clock.nowMs,
    async sleep(ms: number) {
      slept.push(ms);
    },
  };
  return { clock, slept };
}

/** Has senders send chunks whenever they may, and answers the bytes that each has sent after so many milliseconds. */
function sentIn(
  ms: number,
  senders: readonly { readonly owner: number; readonly weight: number }[],
  recentOwners = alone,
): number[] {
  const { clock, slept } = standingClock();
  const shares = new IntakeShares(clock, recentOwners);
  const sent = senders.map(() => 0);
  const heldUntilMs = senders.map(() => 0);
  for (; clock.nowMs < ms; clock.nowMs++) {
    for (const [at, sender] of senders.entries()) {
      // The line brings a chunk a millisecond: half a gigabyte a second.
      if ((heldUntilMs[at] ?? 0) > clock.nowMs) continue;
      sent[at] = (sent[at] ?? 0) + chunkBytes;
      if (shares.came(sender, chunkBytes) !== undefined) heldUntilMs[at] = clock.nowMs + (slept.at(-1) ?? 0);
    }
  }
  return sent;
}

test('who is alone is not held up', () => {
  assert.deepEqual(sentIn(1_000, [unverified]), [1_000 * chunkBytes]);
});

test('who sends alone while others ask for something else has the rate, and all of it', () => {
  const [sent = 0] = sentIn(2_000, [unverified], { hasOthersThan: () => true });

  const rate = sent / 2_000;
  assert.ok(rate > 0.9 * limits.intakeBytesPerMs && rate < 1.15 * limits.intakeBytesPerMs, `${rate} a ms`);
});

test('somebody else is who has asked for something within the last two seconds, and not who sends', () => {
  const { clock } = standingClock();
  const recentOwners = new RecentOwners(clock);
  const shares = new IntakeShares(clock, recentOwners);
  const isHeldUp = () => shares.came(unverified, 100 * chunkBytes) !== undefined;

  recentOwners.note(unverified.owner);
  assert.equal(isHeldUp(), false);
  recentOwners.note(free.owner);
  assert.equal(isHeldUp(), true);
  for (let second = 0; second < 2; second++) {
    clock.nowMs += 1_000;
    shares.came(unverified, 1);
  }
  assert.equal(isHeldUp(), false);
});

test('several senders have the rate together, each by its weight', () => {
  const [ofFree = 0, ofUnverified = 0] = sentIn(2_000, [free, unverified]);

  const rate = (ofFree + ofUnverified) / 2_000;
  assert.ok(rate > 0.9 * limits.intakeBytesPerMs && rate < 1.15 * limits.intakeBytesPerMs, `${rate} a ms`);
  assert.ok(ofFree / ofUnverified > 3.4 && ofFree / ofUnverified < 4.4, `${ofFree} and ${ofUnverified}`);
});

test('a body of a megabyte is not held up beside twenty who send as much as they can', () => {
  const { clock } = standingClock();
  const shares = new IntakeShares(clock, alone);
  for (; clock.nowMs < 1_000; clock.nowMs++)
    for (let owner = 10; owner < 30; owner++) shares.came({ owner, weight: 1 }, chunkBytes);

  assert.equal(shares.came(free, chunkBytes), undefined);
  assert.equal(shares.came(free, chunkBytes), undefined);
});

test('who sent much while it was alone is held up for a while at most, and forgotten when it has stopped', () => {
  const { clock, slept } = standingClock();
  const shares = new IntakeShares(clock, alone);
  for (let i = 0; i < 10_000; i++) shares.came(unverified, chunkBytes);
  shares.came(free, chunkBytes);

  assert.notEqual(shares.came(unverified, chunkBytes), undefined);
  assert.ok((slept.at(-1) ?? Number.NaN) <= limits.intakeHeldUpMsMax);
  clock.nowMs += limits.intakeHeldUpMsMax + 1;
  assert.equal(shares.came(free, 100 * chunkBytes), undefined);
});
