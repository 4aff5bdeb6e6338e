import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ReadEvidence } from '../../../actors/actor/read-evidence.ts';
import { limits } from '../../../protocol/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let looks: number;
let tookMs: number;
let ageMs: number | null;
let evidence: ReadEvidence;

beforeEach(() => {
  clock = new FakeClock();
  [looks, tookMs, ageMs] = [0, 10, 0];
  evidence = new ReadEvidence(clock, {
    seenOpen: async () => {
      looks++;
      await clock.sleep(tookMs);
      return ageMs;
    },
  });
});

test('a read without evidence waits for a look, and those of the next second do not', async () => {
  assert.equal(evidence.isFresh(), false);
  await clock.run(evidence.confirm());
  await clock.advance(limits.readEvidenceRenewMs - tookMs);

  assert.equal(evidence.isFresh(), true);
  assert.equal(looks, 1);
});

test('while there are reads the next look begins before the last one is old', async () => {
  await clock.run(evidence.confirm());
  await clock.advance(limits.readEvidenceRenewMs);
  assert.equal(evidence.isFresh(), true);
  await clock.advance(limits.readEvidenceMsMax - 1);

  assert.equal(looks, 2);
  assert.equal(evidence.isFresh(), true);
});

test('evidence ends with time, whether anybody ran meanwhile or not', async () => {
  await clock.run(evidence.confirm());
  clock.jump(limits.readEvidenceMsMax + 1);

  assert.equal(evidence.isFresh(), false);
});

test('a look that takes long tells of a moment after the read', async () => {
  tookMs = 20_000;

  await clock.run(evidence.confirm());

  assert.equal(looks, 1);
});

/** A clock whose machine may have slept, which its monotonic clock does not count, and whose wall clock may have been set. */
const settable = {
  sleptMs: 0,
  setByMs: 0,
  now: () => clock.now() + settable.setByMs,
  monotonic: () => clock.monotonic() - settable.sleptMs,
  sleep: (ms: number) => clock.sleep(ms),
  after: (ms: number, run: () => void) => clock.after(ms, run),
  yieldTurn: () => clock.yieldTurn(),
  hasBurst: () => clock.hasBurst(),
};

/** Evidence by that clock; `duringLook` sets it while somebody looks. */
function settableEvidence(duringLook = () => {}): ReadEvidence {
  [settable.sleptMs, settable.setByMs] = [0, 0];
  return new ReadEvidence(settable, {
    seenOpen: async () => {
      looks++;
      await clock.sleep(tookMs);
      duringLook();
      return ageMs;
    },
  });
}

for (const [way, setByMs] of [
  ['back', -3_600_000],
  ['forward', 3_600_000],
] as const) {
  test(`a read ends in time though the wall clock is set ${way} an hour meanwhile`, async () => {
    evidence = settableEvidence(() => {
      settable.setByMs = setByMs;
    });
    await clock.run(evidence.confirm());
    assert.ok(looks <= 3, `${looks} looks`);

    await clock.run(evidence.confirm());
    assert.equal(evidence.isFresh(), true);
  });
}

test('evidence ends while the machine sleeps, also where its wall clock is set back meanwhile', async () => {
  evidence = settableEvidence();
  await clock.run(evidence.confirm());
  assert.equal(evidence.isFresh(), true);
  clock.jump(36_000);
  [settable.sleptMs, settable.setByMs] = [36_000, -3_600_000];

  assert.equal(evidence.isFresh(), false);
  await clock.run(evidence.confirm());
  assert.equal(evidence.isFresh(), true);
});

test('a process whose log is sealed answers no read', async () => {
  ageMs = null;

  await assert.rejects(clock.run(evidence.confirm()), { code: 'unavailable' });
});
