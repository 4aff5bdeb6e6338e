import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { Suspicion } from '../../../src/cluster/suspicion.ts';

const renewMs = 1_000;
const {
  suspectAfterMs,
  suspectRefusedAfterMs,
  suspectReturningAfterMs,
  evictionEveryMs,
  evictionWindowMs,
  leaseLateMsMax,
} = limits;

let nowMs: number;
let suspicion: Suspicion;
let beats: number;

beforeEach(() => {
  nowMs = 1_000_000;
  suspicion = new Suspicion(nowMs);
  beats = 0;
});

/** Time passes: the own lease is renewed each second, and of the others those that live change theirs. */
function pass(
  ms: number,
  leases: { readonly dead: readonly string[]; readonly alive: readonly string[] },
): void {
  for (let passed = 0; passed < ms; passed += renewMs) {
    nowMs += renewMs;
    beats++;
    suspicion.ownLease(true, nowMs);
    for (const logId of leases.dead) suspicion.lease(logId, 'the last beat', nowMs);
    for (const logId of leases.alive) suspicion.lease(logId, `beat ${beats}`, nowMs);
  }
}

/** A process; its server has the name of its log unless another is given. */
const of = (logId: string, serverId = logId) => ({ logId, serverId });
const whom = (...others: string[]) =>
  suspicion.whom(
    others.map((logId) => of(logId)),
    nowMs,
  )?.logId ?? null;

test('who changes its lease is never suspected, and who does not is after ten seconds', () => {
  pass(60_000, { dead: [], alive: ['b', 'c'] });
  assert.equal(whom('b', 'c'), null);

  pass(suspectAfterMs, { dead: ['b'], alive: ['c'] });
  assert.equal(whom('b', 'c'), null, 'seen for the first time a second after the last change');
  pass(renewMs, { dead: ['b'], alive: ['c'] });
  assert.equal(whom('b', 'c'), 'b');
});

test('a lease that was never written counts from the first look, and one that was never looked at does not count', () => {
  suspicion.lease('b', null, nowMs);
  for (let passed = 0; passed < suspectAfterMs; passed += renewMs) {
    nowMs += renewMs;
    suspicion.ownLease(true, nowMs);
  }

  assert.equal(whom('b', 'c'), 'b');
  assert.equal(suspicion.stillMs('c', nowMs), 0);
});

test('who could not renew its own lease suspects nobody until it has renewed it for ten seconds', () => {
  pass(20_000, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), 'b');

  nowMs += renewMs;
  suspicion.ownLease(false, nowMs);
  assert.equal(whom('b'), null);
  pass(suspectAfterMs - renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), null);
  pass(renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), 'b');
});

test('a process that stood still suspects nobody, before its next renewal and after it', () => {
  pass(5_000, { dead: [], alive: ['b'] });
  nowMs += 30_000;
  assert.equal(suspicion.stillMs('b', nowMs), 30_000);
  assert.equal(whom('b'), null);

  pass(renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), null);
  assert.ok(30_000 > leaseLateMsMax);
});

test('a refused connection counts after two seconds where the lease stands still, and not where it changes', () => {
  pass(20_000, { dead: [], alive: ['b', 'c'] });
  suspicion.refused('b', nowMs);
  suspicion.refused('c', nowMs);
  pass(suspectRefusedAfterMs, { dead: ['b'], alive: ['c'] });
  assert.equal(whom('b', 'c'), null);
  pass(renewMs, { dead: ['b'], alive: ['c'] });

  assert.equal(whom('b', 'c'), 'b');
  suspicion.answered('b');
  assert.equal(whom('b', 'c'), null);
});

test('a refused process whose server comes back is suspected after four seconds, and after two where its next process ends too', () => {
  pass(20_000, { dead: [], alive: ['b'] });
  pass(renewMs, { dead: ['b'], alive: [] });
  suspicion.refused('b', nowMs, true);
  pass(suspectRefusedAfterMs - renewMs, { dead: ['b'], alive: [] });
  suspicion.refused('b', nowMs);
  assert.equal(whom('b'), null, 'it has refused for less than two seconds');
  pass(renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), 'b');

  suspicion.refused('b', nowMs, true);
  assert.equal(whom('b'), null);
  pass(suspectReturningAfterMs - suspectRefusedAfterMs - renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), null);
  pass(renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), 'b');
});

test('a server whose process ends again and again, and comes back each time, is evicted each time, also within a minute', () => {
  pass(suspectAfterMs + renewMs, { dead: [], alive: ['b', 'c'] });
  for (const life of ['b', 'b-2', 'b-3', 'b-4']) {
    pass(renewMs, { dead: [], alive: [life, 'c'] });
    suspicion.refused(life, nowMs);
    pass(suspectRefusedAfterMs + renewMs, { dead: [life], alive: ['c'] });
    const suspect = suspicion.whom([of(life, 'b'), of('c')], nowMs);
    assert.deepEqual(suspect, of(life, 'b'));
    suspicion.evicted(of(life, 'b'), nowMs);
    pass(evictionEveryMs, { dead: [], alive: ['c'] });
  }
  // With b away, the end of c would leave one of three.
  suspicion.refused('c', nowMs);
  pass(suspectRefusedAfterMs + renewMs, { dead: ['c'], alive: [] });
  assert.equal(whom('c'), null);
});

for (const [members, evictionsMax] of [
  [2, 1],
  [3, 2],
] as const)
  test(`a server that is evicted for its lease alone and comes back counts as missing: of ${members} members there are ${evictionsMax} such evictions a minute`, () => {
    const others = members === 2 ? [] : [of('c')];
    pass(suspectAfterMs + renewMs, { dead: [], alive: ['b', 'c'] });
    let evictions = 0;
    for (const life of ['b', 'b-2', 'b-3', 'b-4']) {
      pass(suspectAfterMs + renewMs, { dead: [life], alive: ['c'] });
      const suspect = suspicion.whom([of(life, 'b'), ...others], nowMs);
      if (suspect === null) continue;
      evictions++;
      suspicion.evicted(suspect, nowMs);
    }
    assert.equal(evictions, evictionsMax);
  });

test('an evicted process that the view still names counts as missing, and may be evicted once more', () => {
  pass(suspectAfterMs + renewMs, { dead: [], alive: ['b', 'c'] });
  suspicion.refused('b', nowMs);
  pass(suspectRefusedAfterMs + renewMs, { dead: ['b'], alive: ['c'] });
  suspicion.evicted(of('b'), nowMs);
  suspicion.refused('b', nowMs);
  pass(evictionEveryMs, { dead: ['b'], alive: ['c'] });
  assert.equal(whom('b', 'c'), 'b');

  suspicion.answered('b');
  suspicion.refused('c', nowMs);
  pass(suspectRefusedAfterMs + renewMs, { dead: ['c'], alive: ['b'] });
  assert.equal(whom('b', 'c'), null, 'one of three would be left');
});

test('one eviction in five seconds, and at most half of the members in a minute', () => {
  const dead = ['b', 'c', 'd'];
  pass(suspectAfterMs + renewMs, { dead, alive: [] });
  const first = whom(...dead) ?? '';
  suspicion.evicted(of(first), nowMs);
  const others = dead.filter((logId) => logId !== first);
  assert.equal(whom(...others), null, 'too soon');
  pass(evictionEveryMs, { dead: others, alive: [] });
  const second = whom(...others) ?? '';
  assert.ok(others.includes(second), 'half of four');
  suspicion.evicted(of(second), nowMs);
  const last = others.filter((logId) => logId !== second);
  pass(evictionEveryMs, { dead: last, alive: [] });
  assert.deepEqual([whom(...last), last.length], [null, 1], 'more than half');

  pass(evictionWindowMs, { dead: last, alive: [] });
  assert.equal(whom(...last), last[0]);
});

test('of two members one may evict the other, and whose lease stood still for a minute counts whatever was evicted', () => {
  pass(suspectAfterMs + renewMs, { dead: ['b'], alive: [] });
  assert.equal(whom('b'), 'b');

  pass(evictionWindowMs, { dead: ['b', 'c'], alive: [] });
  suspicion.evicted(of('b'), nowMs);
  pass(evictionEveryMs, { dead: ['c'], alive: [] });
  assert.equal(whom('c'), 'c');
});

test('who has gone is forgotten: the same name would be a new one', () => {
  pass(20_000, { dead: ['b'], alive: [] });
  suspicion.refused('b', nowMs);
  suspicion.members(['a']);

  assert.equal(whom('b'), null);
  assert.equal(suspicion.stillMs('b', nowMs), 0);
  assert.equal(suspicion.refusesAny, false);
});
