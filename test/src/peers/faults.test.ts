/** Over links in memory, which can be cut anywhere. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { limits } from '../../../protocol/limits.ts';
import { peerVersions } from '../../../protocol/version.ts';
import { packMessage } from '../../../src/base/msgpack.ts';
import { PeerCallError, type PeerHandler } from '../../../src/peers/call.ts';
import {
  type FrameKind,
  type FramePlace,
  frameKinds,
  noPlace,
  writeFrameHeader,
} from '../../../src/peers/frame.ts';
import { encodeHello, type Hello } from '../../../src/peers/hello.ts';
import type { StreamedBody } from '../../../src/peers/message.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type LinkRules, type MemoryLink, MemoryTransport } from '../../support/peer-links.ts';
import { ask, echo, startTestServer, type TestServer, until, wholeBody } from './servers.ts';

async function twoServers(
  rules: () => readonly [LinkRules, LinkRules],
  { handler = echo, clock }: { readonly handler?: PeerHandler; readonly clock?: FakeClock } = {},
): Promise<{ readonly one: TestServer; readonly other: TestServer; readonly transport: MemoryTransport }> {
  const transport = new MemoryTransport(rules);
  const at = clock === undefined ? {} : { clock };
  const one = await startTestServer({ name: 'one', transport, ...at });
  const other = await startTestServer({ name: 'other', transport, handler, ...at });
  one.peers.use([other.member]);
  return { one, other, transport };
}

const outcomeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => (error instanceof PeerCallError ? error.outcome : assert.fail(String(error))),
  );

function close(...servers: TestServer[]): void {
  for (const { peers } of servers) peers.close();
}

test('answers are those of a twin that calls a function, however bytes are cut', async () => {
  // By their lengths, so that a failure prints a line; -1 is none.
  const body = fc.oneof(fc.integer({ min: -1, max: 200 }), fc.constantFrom(65_000, 70_000, 300_000));
  const asked = fc.record({ body, pieces: fc.nat(3) }, { noNullPrototype: true });
  const piece = fc.constantFrom(1, 7, 100, 1_000, 20_000, 200_000);
  await fc.assert(
    fc.asyncProperty(
      fc.array(asked, { maxLength: 8 }),
      fc.array(piece, { minLength: 1 }),
      async (drawn, lengths) => {
        const calls = drawn.map(({ body: length, pieces }) => ({
          body: length < 0 ? null : new Uint8Array(length).fill(length % 251),
          pieces,
        }));
        let next = 0;
        // Single bytes of a large body would take a turn each.
        const isLarge = calls.some((call) => (call.body?.byteLength ?? 0) > 1_000);
        const pieceBytes = () => Math.max(isLarge ? 5_000 : 1, lengths[next++ % lengths.length] ?? 1);
        const { one, other } = await twoServers(() => [{ pieceBytes }, { pieceBytes }]);

        const answers = await Promise.all(
          calls.map(async (call, head) => {
            const sent = call.body !== null && call.pieces > 0 ? streamOf(call.body, call.pieces) : call.body;
            const answer = await ask(one, other, {
              head,
              body: sent instanceof Uint8Array ? sent.slice() : sent,
            });
            return [answer.head, await wholeBody(answer.body)];
          }),
        );
        close(one, other);

        const twin = calls.map((call, head) => [head, call.body === null ? null : Buffer.from(call.body)]);
        assert.deepEqual(answers, twin);
      },
    ),
    { numRuns: 40 },
  );
});

function streamOf(bytes: Uint8Array, pieces: number): StreamedBody {
  const length = Math.ceil(bytes.byteLength / pieces);
  async function* chunks() {
    for (let at = 0; at < bytes.byteLength; at += length) yield bytes.slice(at, at + length);
  }
  return { bytes: pieces === 1 ? bytes.byteLength : null, chunks: chunks() };
}

/** Numbers of calls by what came of them, and how often each was begun on the other side. */
async function cutAfter(cutThere: number, cutBack: number): Promise<string> {
  const begun: unknown[] = [];
  let cut = true;
  const rules = (): readonly [LinkRules, LinkRules] => {
    const now = cut
      ? ([{ cutAfterBytes: cutThere }, { cutAfterBytes: cutBack }] as const)
      : ([{}, {}] as const);
    cut = false;
    return now;
  };
  const { one, other } = await twoServers(rules, {
    handler: {
      call: ({ head }, respond) => {
        begun.push(head);
        respond(head);
      },
    },
  });
  const outcome = await outcomeOf(ask(one, other, { head: 'write', body: Buffer.from('body') }));
  close(one, other);

  assert.ok(begun.length <= 1, 'it was begun twice');
  if (outcome === 'not-sent')
    assert.equal(begun.length, 0, `not sent, and begun; cut at ${cutThere}, ${cutBack}`);
  if (outcome === 'answered') assert.equal(begun.length, 1);
  return `${outcome} ${begun.length}`;
}

test('a connection that is cut at any byte never makes a call begin twice, and never calls begun what was not sent', async () => {
  const seen = new Set<string>();
  const far = Number.POSITIVE_INFINITY;

  for (let bytes = 1; bytes < 260; bytes++) seen.add(await cutAfter(bytes, far));
  for (let bytes = 1; bytes < 200; bytes++) seen.add(await cutAfter(far, bytes));

  assert.deepEqual([...seen].toSorted(), ['answered 1', 'lost 0', 'lost 1', 'not-sent 0']);
});

test('all calls of a lost connection end, each once, and the next connection takes new ones', async () => {
  const held: (() => void)[] = [];
  const { one, other, transport } = await twoServers(() => [{}, {}], {
    handler: { call: ({ head }, respond) => (head === 'hold' ? held.push(() => respond(1)) : respond(2)) },
  });
  const calls = Array.from({ length: 100 }, () => outcomeOf(ask(one, other, { head: 'hold' })));
  await until(() => held.length === 100, 'all came');

  transport.links[0]?.[0].destroy();

  assert.deepEqual(new Set(await Promise.all(calls)), new Set(['lost']));
  for (const respond of held) respond();
  await until(() => one.peers.reachability('log-other')?.isConnected === true, 'it is connected again');
  assert.equal((await ask(one, other, { head: 'now' })).head, 2);
  close(one, other);
});

test('a call ends at its deadline: lost where it has left, not sent where it waits for a connection', async () => {
  const clock = new FakeClock();
  const cancelled: unknown[] = [];
  const { one, other } = await twoServers(() => [{}, {}], {
    clock,
    handler: { call: ({ head, onCancel }) => onCancel(() => cancelled.push(head)) },
  });
  await clock.settle();

  const sent = outcomeOf(ask(one, other, { head: 'sent', deadlineMs: 1_000 }));
  await clock.advance(2_000);

  assert.equal(await sent, 'lost');
  assert.deepEqual(cancelled, ['sent']);
  assert.equal(
    await outcomeOf(ask(one, { ...other, member: { ...other.member, logId: 'x' } }, {})),
    'not-sent',
  );
  close(one, other);
});

test('a cancelled call is told to the other side, and its answer comes all the same', async () => {
  const { one, other } = await twoServers(() => [{}, {}], {
    handler: { call: ({ onCancel }, respond) => onCancel(() => respond('ended early')) },
  });
  await until(() => one.peers.reachability('log-other')?.isConnected === true, 'it is connected');
  const heads: unknown[] = [];
  const call = { head: 1, body: null, deadlineMs: 5_000, placement: 1 };

  const delivery = one.peers.call(
    'log-other',
    call,
    ({ head }) => heads.push(head),
    (error) => heads.push(error.outcome),
  );
  await new Promise((resolve) => setTimeout(resolve, 20));
  if (delivery !== null) one.peers.cancel(delivery);
  await until(() => heads.length === 1, 'it was answered');
  const unsent = one.peers.call(
    'log-other',
    call,
    ({ head }) => heads.push(head),
    (error) => heads.push(error.outcome),
  );
  if (unsent !== null) one.peers.cancel(unsent);

  assert.deepEqual(heads, ['ended early', 'not-sent']);
  close(one, other);
});

test('a connection whose other end is gone without a word is given up after some pings', async () => {
  const clock = new FakeClock();
  const { one, other, transport } = await twoServers(() => [{}, {}], { clock, handler: { call() {} } });
  await clock.settle();
  const call = outcomeOf(ask(one, other, { deadlineMs: 60_000 }));
  await clock.advance(30_000);
  assert.equal(other.peers.serving, 1, 'a connection that is alive stays');

  for (const link of transport.links.flat()) link.isDead = true;
  await clock.advance(limits.peerPingMs * (limits.peerSilentPingsMax + 1));

  assert.equal(await call, 'lost');
  assert.equal(other.peers.serving, 0);
  close(one, other);
});

/** The frames of somebody who has the key and does not keep to the protocol. */
class BadPeer {
  readonly #link: MemoryLink;
  isClosed = false;

  constructor(link: MemoryLink) {
    this.#link = link;
    link.listen({ received() {}, drained() {}, closed: () => (this.isClosed = true) });
  }

  send(kind: FrameKind, id: number, content: Uint8Array, place: FramePlace = noPlace): void {
    const frame = Buffer.alloc(12 + content.byteLength);
    frame.set(content, writeFrameHeader(frame, 0, { kind, place, id, bytes: content.byteLength }));
    this.#link.write(frame);
  }
}

const hello: Hello = {
  tidebase: 'peer',
  least: peerVersions.least,
  greatest: peerVersions.greatest,
  serverId: 'server-bad',
  logId: 'log-bad',
  wants: 'log-other',
  use: 'calls',
};

/** Who takes the bad one's connection. */
async function badPeerTo(
  first: Uint8Array,
  handler: PeerHandler = echo,
): Promise<readonly [BadPeer, TestServer]> {
  const transport = new MemoryTransport();
  const other = await startTestServer({ name: 'other', transport, handler });
  const link = await new Promise<MemoryLink>((resolve) => {
    transport.dial(other.member.address, {
      secured: () => resolve(transport.links[0]?.[0] as MemoryLink),
      failed: assert.fail,
    });
  });
  const bad = new BadPeer(link);
  bad.send(frameKinds.hello, 0, first);
  return [bad, other];
}

const first = { first: true, last: false };
const middle = { first: false, last: false };
const credit = (bytes: number) => {
  const content = Buffer.alloc(4);
  content.writeUInt32LE(bytes);
  return content;
};
/** A request's envelope, with its own length before it. */
const bodyHead = (bodyBytes: number, sequence = 1) => {
  const envelope = packMessage([bodyBytes, ['log-bad', sequence, 1_000, 1, '', null]]);
  const bytes = Buffer.alloc(4 + envelope.byteLength);
  bytes.writeUInt32LE(envelope.byteLength);
  bytes.set(envelope, 4);
  return bytes;
};

test('who has the key and does not keep to the protocol is cut off, and says why in a line', async () => {
  const full = new Uint8Array(limits.peerFrameBytesMax);
  const breaches: readonly [string, RegExp, (bad: BadPeer) => void][] = [
    [
      'bytes without credit',
      /without credit/,
      (bad) => {
        bad.send(frameKinds.message, 1, bodyHead(10_000_000), first);
        for (let n = 0; n < 5; n++) bad.send(frameKinds.message, 1, full, middle);
      },
    ],
    [
      'more than the head said',
      /another length/,
      (bad) => {
        bad.send(frameKinds.message, 1, bodyHead(5), first);
        bad.send(frameKinds.message, 1, new Uint8Array(6), middle);
      },
    ],
    [
      'messages without end',
      /too many messages/,
      (bad) => {
        for (let id = 1; id <= limits.peerStreamsMax + 1; id++)
          bad.send(frameKinds.message, id, bodyHead(10, id), first);
      },
    ],
    [
      'a message that begins twice',
      /begins twice/,
      (bad) => {
        for (let n = 0; n < 2; n++) bad.send(frameKinds.message, 1, bodyHead(10), first);
      },
    ],
    [
      'a call whose number is too large to be one',
      /too large/,
      (bad) => bad.send(frameKinds.message, 2 ** 53, bodyHead(0), { first: true, last: true }),
    ],
    [
      'a head that is none',
      /head/,
      (bad) => bad.send(frameKinds.message, 1, full, { first: true, last: true }),
    ],
    ['a head without end', /head/, (bad) => bad.send(frameKinds.message, 1, Buffer.alloc(100, 255), first)],
  ];
  for (const [name, sentence, commit] of breaches) {
    // Nobody reads: what is unread must be bounded by what was agreed.
    const [bad, other] = await badPeerTo(encodeHello(hello), { call() {} });

    commit(bad);
    await until(() => bad.isClosed, name);

    assert.match(String(other.lines[0]?.fields.reason), sentence, name);
    assert.equal(other.peers.serving, 0, name);
    close(other);
  }
});

test('credit without end is refused: it would be memory without end', async () => {
  const [bad, other] = await badPeerTo(encodeHello(hello), {
    call: (_, respond) => respond('large', new Uint8Array(10_000_000)),
  });
  bad.send(frameKinds.message, 1, bodyHead(-1), { first: true, last: true });

  for (let n = 0; n < 20; n++) bad.send(frameKinds.credit, 1, credit(2 ** 32 - 1));
  await until(() => bad.isClosed, 'it was cut off');

  assert.match(String(other.lines[0]?.fields.reason), /credit for more than was sent/);
  close(other);
});

test('servers whose versions do not meet refuse each other by name, and a newer one that speaks ours is taken', async () => {
  const hellos = [
    [
      { ...hello, least: 7, greatest: 9 },
      /server-other speaks versions 1 to 2 .* server server-bad speaks versions 7 to 9/,
    ],
    [{ ...hello, greatest: 9, aFieldOfLater: 1 }, null],
    [{ ...hello, wants: 'log-before' }, /another process/],
    [{ ...hello, tidebase: 'else' } as unknown as Hello, /no hello/],
  ] as const;
  for (const [said, refusal] of hellos) {
    const [bad, other] = await badPeerTo(encodeHello(said));

    if (refusal === null)
      await until(() => /connections/.test(other.peers.families().join()) || true, 'it was taken');
    else {
      await until(() => bad.isClosed, 'it was refused');
      assert.match(String(other.lines[0]?.fields.reason), refusal);
    }
    assert.equal(bad.isClosed, refusal !== null);
    close(other);
  }
});

test('a second copy of a request is refused, on whichever connection it comes, and counts as maybe done', async () => {
  const begun: number[] = [];
  const count: PeerHandler = {
    call: ({ name }, respond) => {
      begun.push(name.sequence);
      respond(null);
    },
  };
  const [bad, other] = await badPeerTo(encodeHello(hello), count);

  for (let id = 1; id <= 3; id++) bad.send(frameKinds.message, id, bodyHead(-1), { first: true, last: true });
  await until(() => begun.length > 0, 'the first was begun');
  await new Promise((resolve) => setTimeout(resolve, 30));

  assert.deepEqual(begun, [1]);
  assert.ok(!bad.isClosed);
  close(other);
});
