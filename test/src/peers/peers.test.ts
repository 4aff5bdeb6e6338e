/** The channel between servers, over real sockets on loopback with TLS. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, test } from 'node:test';
import tls from 'node:tls';
import { limits } from '../../../protocol/limits.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { PeerCallError, type PeerHandler, type ServedCall } from '../../../src/peers/call.ts';
import { tlsTransport } from '../../../src/peers/node-tls.ts';
import { apiErrorOfPeer } from '../../../src/peers/peers.ts';
import { tryKey } from '../../../src/peers/try-key.ts';
import { certificate, certificateKey } from '../../support/test-certificate.ts';
import {
  ask,
  startTestServer,
  type TestServer,
  type TestServerOptions,
  until,
  wholeBody,
} from './servers.ts';

const started: TestServer[] = [];
after(() => {
  for (const { peers } of started) peers.close();
});

async function start(options: TestServerOptions): Promise<TestServer> {
  const server = await startTestServer(options);
  started.push(server);
  return server;
}

async function twoServers(handler?: PeerHandler): Promise<readonly [TestServer, TestServer]> {
  const [one, other] = await Promise.all([
    start({ name: 'one' }),
    start(handler === undefined ? { name: 'other' } : { name: 'other', handler }),
  ]);
  one.peers.use([other.member]);
  return [one, other];
}

const keyOf = (byte: number) => new Uint8Array(32).fill(byte);
const outcomeOf = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => assert.fail('it was answered'),
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof PeerCallError);
  return error.outcome;
};

test('heads and bodies come as they were sent, none, empty, small and large', async () => {
  const [one, other] = await twoServers();
  const head = ['getDocument', 7, 'ns', null, { a: [1.5, true] }, 2 ** 52];

  for (const length of [0, 1, 1_000, 65_000, 65_536, 65_537, 300_000, 5_000_000]) {
    const body = Buffer.alloc(length, length % 251);
    const answer = await ask(one, other, { head, body: body.slice() });

    assert.deepEqual(answer.head, head);
    assert.ok(body.equals((await wholeBody(answer.body)) ?? Buffer.from('none')), `${length} bytes`);
  }
  assert.equal((await ask(one, other, { head, body: null })).body, null);
});

test('a head as long as any query string and all patterns of a key crosses whole, and a longer one is not sent', async () => {
  const [one, other] = await twoServers();
  const head = 'x'.repeat(limits.peerHeadBytesMax - 100);

  assert.equal((await ask(one, other, { head, body: Buffer.from('b') })).head, head);
  assert.equal(await outcomeOf(ask(one, other, { head: 'x'.repeat(limits.peerHeadBytesMax) })), 'not-sent');
  assert.equal((await ask(one, other, { head: 'y' })).head, 'y');
});

test('whoever is asked learns who asks, by which placement, and how long it may take', async () => {
  const calls: ServedCall[] = [];
  const [one, other] = await twoServers({
    call: (call, respond) => {
      calls.push(call);
      respond(null);
    },
  });

  await ask(one, other, { placement: 12, deadlineMs: 3_000 });
  await ask(one, other, { placement: 13, deadlineMs: 3_000 });

  const [first, second] = calls;
  assert.deepEqual(first?.from, { serverId: 'server-one', logId: 'log-one' });
  assert.deepEqual([first?.placement, second?.placement], [12, 13]);
  assert.deepEqual([first?.name.origin, second?.name.origin], ['log-one', 'log-one']);
  assert.ok((first?.name.sequence ?? 0) < (second?.name.sequence ?? 0));
  const deadlineMs = first?.deadlineMs ?? 0;
  assert.ok(deadlineMs > 0 && deadlineMs <= 3_000);
});

test('a wrong key is one clear line on both sides, and no call leaves', async () => {
  const one = await start({ name: 'one' });
  const other = await start({
    name: 'other',
    transport: tlsTransport({ present: keyOf(2), previous: null }, systemClock),
  });

  one.peers.use([other.member]);
  assert.equal(await outcomeOf(ask(one, other, {})), 'not-sent');
  await until(() => other.lines.length > 0, 'a line of who was dialled');
  await until(() => /dials_failed_total [3-9]/.test(familyText(one)), 'more tries');

  const wrong = /wrong cluster key/;
  assert.deepEqual(
    one.lines.map(({ level, fields }) => [level, wrong.test(String(fields.reason))]),
    [['error', true]],
  );
  assert.deepEqual(
    other.lines.map(({ level, message }) => [level, wrong.test(message)]),
    [['error', true]],
  );
});

test('a key is tried before anything is begun with it, and one server that knows it is enough', async () => {
  const one = await start({ name: 'one' });
  const other = await start({
    name: 'other',
    transport: tlsTransport({ present: keyOf(2), previous: null }, systemClock),
  });
  const transport = tlsTransport({ present: keyOf(2), previous: null }, systemClock);
  const nobody = { host: '127.0.0.1', port: 1 };
  const [known, unknown] = [other.member.address, one.member.address];

  assert.equal(await tryKey(transport, []), 'unreachable');
  assert.equal(await tryKey(transport, [nobody]), 'unreachable');
  assert.equal(await tryKey(transport, [nobody, unknown]), 'wrong-key');
  assert.equal(await tryKey(transport, [nobody, unknown, known]), 'known');
  await until(() => one.lines.length > 0, 'a line of who was dialled');
  assert.match(one.lines[0]?.message ?? '', /wrong cluster key/);
  assert.deepEqual(other.lines, []);
});

function familyText({ peers }: TestServer): string {
  return peers
    .families()
    .flatMap(({ name, samples }) =>
      samples.map(({ value, labels }) => `${name}${JSON.stringify(labels ?? '')} ${value}`),
    )
    .join('\n')
    .replaceAll('""', '');
}

test('while keys are rotated servers with the old, both and the new one reach each other', async () => {
  const [old, next] = [keyOf(1), keyOf(2)];
  const rings = {
    before: { present: old, previous: null },
    between: { present: next, previous: old },
    after: { present: next, previous: null },
  };
  const [before, between, afterwards] = await Promise.all(
    Object.entries(rings).map(([name, ring]) => start({ name, transport: tlsTransport(ring, systemClock) })),
  );
  if (before === undefined || between === undefined || afterwards === undefined) return assert.fail();
  before.peers.use([between.member]);
  between.peers.use([before.member, afterwards.member]);
  afterwards.peers.use([between.member]);

  for (const [from, to] of [
    [before, between],
    [between, before],
    [between, afterwards],
    [afterwards, between],
  ] as const)
    assert.equal((await ask(from, to, { head: 'hi' })).head, 'hi');
});

test('another process at the same address is refused by its log', async () => {
  const [one, other] = await Promise.all([start({ name: 'one' }), start({ name: 'other' })]);

  one.peers.use([{ ...other.member, logId: 'log-before' }]);
  const error = await ask(one, { ...other, member: { ...other.member, logId: 'log-before' } }, {}).catch(
    (e) => e,
  );

  assert.ok(error instanceof PeerCallError);
  assert.equal(error.outcome, 'not-sent');
  assert.match(error.message, /another process/);
  assert.equal(one.peers.reachability('log-before')?.hasAnswered, false);
});

test('a port on which nothing listens is known as refused, since when', async () => {
  const [one, other] = await twoServers();
  await ask(one, other, {});
  assert.deepEqual(one.peers.reachability('log-other'), {
    hasAnswered: true,
    isConnected: true,
    refusedSinceMs: null,
    comesBack: false,
    isSilent: false,
  });

  other.peers.close();
  await until(() => one.peers.reachability('log-other')?.refusedSinceMs !== null, 'it is refused');
  const since = one.peers.reachability('log-other')?.refusedSinceMs;
  await until(() => /dials_failed_total [3-9]/.test(familyText(one)), 'more tries');

  assert.equal(one.peers.reachability('log-other')?.refusedSinceMs, since);
  assert.equal(await outcomeOf(ask(one, other, {})), 'not-sent');
});

test('a server comes back where its host has refused connections and its next process answers at its port, until that ends too', async () => {
  const [one, other] = await twoServers();
  await ask(one, other, {});
  const { serverId, address } = other.member;
  const comesBack = () => one.peers.reachability('log-other')?.comesBack;
  other.peers.close();
  await until(() => one.peers.reachability('log-other')?.refusedSinceMs !== null, 'it is refused');
  const since = one.peers.reachability('log-other')?.refusedSinceMs;
  assert.equal(comesBack(), false);

  const next = await start({ name: 'next', serverId, port: address.port });
  await until(() => comesBack() === true, 'the next process answers');
  assert.equal(one.peers.reachability('log-other')?.refusedSinceMs, since);
  next.peers.close();
  await until(() => comesBack() === false, 'that one has ended, too');

  assert.equal(one.peers.reachability('log-other')?.refusedSinceMs, since);
});

test('a server does not come back where another server answers at its port', async () => {
  const [one, other] = await twoServers();
  await ask(one, other, {});
  const seen = new Set<boolean | undefined>();
  other.peers.close();
  await until(() => one.peers.reachability('log-other')?.refusedSinceMs !== null, 'it is refused');
  const stranger = await start({ name: 'stranger', port: other.member.address.port });
  const refusals = () => stranger.lines.filter(({ message }) => message === 'another server was refused');

  await until(() => {
    seen.add(one.peers.reachability('log-other')?.comesBack);
    return refusals().length >= 3;
  }, 'the other server has refused some tries');

  assert.deepEqual([...seen], [false]);
  assert.match(String(refusals()[0]?.fields.reason), /another process/);
});

test('a server that is back at its port is asked again', async () => {
  const [one, other] = await twoServers();
  await ask(one, other, {});
  other.peers.close();
  await until(() => one.peers.reachability('log-other')?.isConnected === false, 'it is gone');

  const again = await startTestServer({ name: 'again' });
  started.push(again);
  one.peers.use([again.member]);

  assert.equal((await ask(one, again, { head: 1 })).head, 1);
});

test('garbage, silence and too many strangers neither get in nor keep others out', async () => {
  const [one, other] = await twoServers();
  const { port } = other.member.address;
  const ended: Promise<unknown>[] = [];
  const stranger = (first: string | null) => {
    const socket = net.connect(port, '127.0.0.1', () => first !== null && socket.write(first));
    socket.on('error', () => {}).resume();
    ended.push(new Promise((resolve) => socket.once('close', resolve)));
  };

  for (let n = 0; n < 20; n++) stranger('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  for (let n = 0; n < 20; n++) stranger(String.fromCharCode(22, 3, 1, 255, 255).repeat(100));
  await Promise.all(ended);
  for (let n = 0; n < 2 * limits.peerHandshakesAtOnceMax; n++) stranger(null);
  await until(
    () => /strangers_total (1[0-9][0-9]|[5-9][0-9])/.test(familyText(other)),
    'strangers were counted',
  );
  const tooMany = other.lines.length;

  assert.equal((await ask(one, other, { head: 1 })).head, 1);
  assert.equal(tooMany, 1, 'one line a minute');
  await Promise.all(ended);
  const late = await start({ name: 'late' });
  late.peers.use([other.member]);
  assert.equal((await ask(late, other, { head: 2 })).head, 2);
});

test('who has the cluster’s address and a certificate, but not its key, is told nothing', async () => {
  let heard = 0;
  const impostor = tls.createServer({ key: certificateKey, cert: certificate }, (socket) =>
    socket.on('data', (bytes) => (heard += bytes.byteLength)),
  );
  await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
  const address = impostor.address();
  if (address === null || typeof address === 'string') return assert.fail();
  const one = await start({ name: 'one' });

  const member = { serverId: 'x', logId: 'log-x', address: { host: '127.0.0.1', port: address.port } };
  one.peers.use([member]);
  const outcome = await outcomeOf(ask(one, { ...one, member }, { body: Buffer.from('secret') }));
  impostor.close();

  assert.equal(outcome, 'not-sent');
  assert.equal(heard, 0);
});

test('a stopping server answers what runs and takes nothing more', async () => {
  const responds: (() => void)[] = [];
  const [one, other] = await twoServers({ call: (_, respond) => void responds.push(() => respond('done')) });
  const running = ask(one, other, {});
  await until(() => responds.length === 1, 'the call came');

  other.peers.stopServing();
  await until(() => one.peers.reachability('log-other')?.isConnected === false, 'it said so');
  assert.equal(await outcomeOf(ask(one, other, {})), 'not-sent');
  assert.equal(other.peers.serving, 1);
  responds[0]?.();

  assert.equal((await running).head, 'done');
});

test('a client hears write_unknown only where a write may have been done', () => {
  const codes = (outcome: 'not-sent' | 'refused' | 'lost') =>
    (['unavailable', 'write_unknown'] as const).map((lost) => {
      const { code, retryAfter } = apiErrorOfPeer(new PeerCallError(outcome, 'x'), lost);
      assert.equal(retryAfter, 1);
      return code;
    });

  assert.deepEqual(codes('not-sent'), ['unavailable', 'unavailable']);
  assert.deepEqual(codes('refused'), ['unavailable', 'unavailable']);
  assert.deepEqual(codes('lost'), ['unavailable', 'write_unknown']);
});
