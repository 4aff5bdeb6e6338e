/** Three servers, of which two can't reach each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { PeerCallError, type PeerHandler } from '../../../src/peers/call.ts';
import type { PeerMember } from '../../../src/peers/dialled-peer.ts';
import { MemoryTransport } from '../../support/peer-links.ts';
import { ask, echo, startTestServer, type TestServer, until, wholeBody } from './servers.ts';

const nowhere = (member: PeerMember): PeerMember => ({ ...member, address: { host: 'nowhere', port: 99 } });

/** `one` reaches `third`, which reaches `other`; `one` does not reach `other`. */
async function threeServers(handler: PeerHandler = echo) {
  const transport = new MemoryTransport();
  const [one, other, third] = await Promise.all([
    startTestServer({ name: 'one', transport }),
    startTestServer({ name: 'other', transport, handler }),
    startTestServer({ name: 'third', transport }),
  ]);
  one.peers.use([nowhere(other.member), third.member]);
  third.peers.use([other.member, one.member]);
  await until(() => isConnected(one, third) && isConnected(third, other), 'they are connected');
  await until(
    () => typeof one.peers.reachability('log-other')?.refusedSinceMs === 'number',
    'one was refused',
  );
  return { one, other, third, via: third.member.logId };
}

const isConnected = (from: TestServer, to: TestServer) =>
  from.peers.reachability(to.member.logId)?.isConnected === true;

function close(...servers: TestServer[]): void {
  for (const { peers } of servers) peers.close();
}

const errorOf = (call: Promise<unknown>): Promise<PeerCallError> =>
  call.then(
    () => assert.fail('it was answered'),
    (error: unknown) => (error instanceof PeerCallError ? error : assert.fail(String(error))),
  );

test('a server that is not reached is reached through a third, with bodies of any size', async () => {
  const { one, other, third, via } = await threeServers();
  const large = new Uint8Array(3_000_000).fill(7);

  assert.equal((await errorOf(ask(one, other, { head: 1 }))).outcome, 'not-sent');
  assert.equal(one.peers.thirdBeside('log-other'), via);
  const [none, small, streamed] = await Promise.all([
    ask(one, other, { head: 1, via }),
    ask(one, other, { head: 2, via, body: Buffer.from('body') }),
    ask(one, other, { head: 3, via, body: large }),
  ]);

  assert.deepEqual([none.head, await wholeBody(none.body)], [1, null]);
  assert.deepEqual([small.head, await wholeBody(small.body)], [2, Buffer.from('body')]);
  assert.equal(Buffer.compare((await wholeBody(streamed.body)) ?? Buffer.alloc(0), large), 0);
  close(one, other, third);
});

test('what is passed on keeps its name, placement and first sender', async () => {
  const seen: unknown[] = [];
  const { one, other, third, via } = await threeServers({
    call: ({ name, placement, from }, respond) => {
      seen.push([name.origin, placement, from.logId]);
      respond(null);
    },
  });

  await ask(one, other, { via, placement: 5 });

  assert.deepEqual(seen, [['log-one', 5, 'log-third']]);
  close(one, other, third);
});

test('nothing is passed on twice: who is not connected to the other refuses, and nothing was sent', async () => {
  const { one, other, third, via } = await threeServers();
  third.peers.use([one.member]);
  third.peers.use([nowhere(other.member), one.member]);
  await until(
    () => typeof third.peers.reachability('log-other')?.refusedSinceMs === 'number',
    'it is refused',
  );

  const error = await errorOf(ask(one, other, { via, body: new Uint8Array(500_000) }));

  assert.equal(error.outcome, 'refused');
  assert.match(error.message, /unreachable/);
  assert.equal(third.peers.serving, 0);
  close(one, other, third);
});

test('what was lost behind the third is lost to who asked', async () => {
  let begun = () => {};
  const came = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const { one, other, third, via } = await threeServers({ call: () => begun() });

  const call = errorOf(ask(one, other, { via }));
  await came;
  other.peers.close();

  assert.equal((await call).outcome, 'lost');
  close(one, third);
});

test('a third passes on a bounded number of calls, and takes more when those have ended', async () => {
  const held: (() => void)[] = [];
  const { one, other, third, via } = await threeServers({
    call: (_, respond) => void held.push(() => respond(null)),
  });
  const calls = Array.from({ length: limits.peerPassedOnMax }, () => ask(one, other, { via }));
  await until(() => held.length === limits.peerPassedOnMax, 'all came');

  const refused = await errorOf(ask(one, other, { via }));

  assert.deepEqual([refused.outcome, refused.why], ['refused', 'full']);
  for (const respond of held.splice(0)) respond();
  await Promise.all(calls);
  const again = ask(one, other, { via });
  await until(() => held.length === 1, 'it came');
  held[0]?.();
  await again;
  close(one, other, third);
});

test('that nobody waits any more is passed on too', async () => {
  const { one, other, third, via } = await threeServers({
    call: ({ onCancel }, respond) => onCancel(() => respond('ended early')),
  });
  const answered = new Promise((resolve, reject) => {
    const call = { head: null, body: null, deadlineMs: 9_000, placement: 1, via };
    const delivery = one.peers.call(other.member.logId, call, ({ head }) => resolve(head), reject);
    setTimeout(() => delivery !== null && one.peers.cancel(delivery), 20);
  });

  assert.equal(await answered, 'ended early');
  close(one, other, third);
});
