/** Calls between servers, over links in memory that can be cut, held up and refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import { limits } from '../../../protocol/limits.ts';
import {
  type ActorCall,
  actorAnswerFromWire,
  actorCallToWire,
  movedToWire,
} from '../../../protocol/messages.ts';
import type { Message } from '../../../src/base/port-channel.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { gate } from '../../support/faulty-object-store.ts';
import { type LinkRules, MemoryTransport } from '../../support/peer-links.ts';
import {
  callOf,
  done,
  logOf,
  membersOf,
  nameWhere,
  type RoutedServer,
  startServers,
  tenantId,
} from '../../support/routed-servers.ts';

const two = ['a', 'b'] as const;
const three = ['a', 'b', 'c'] as const;

interface World {
  readonly clock: FakeClock;
  readonly transport: MemoryTransport;
  readonly a: RoutedServer;
  readonly b: RoutedServer;
  /** The third; in a world of two it is `b` again. */
  readonly c: RoutedServer;
  close(): void;
}

async function start(
  ids: readonly string[],
  {
    rules,
    cut,
    gateBytes,
  }: {
    readonly rules?: () => readonly [LinkRules, LinkRules];
    readonly cut?: readonly (readonly [string, string])[];
    readonly gateBytes?: number;
  } = {},
): Promise<World> {
  const clock = new FakeClock();
  const transport = new MemoryTransport(rules);
  const options = { clock, transport, ...(gateBytes === undefined ? {} : { gateBytes }) };
  const servers = await startServers(ids, options, cut);
  await clock.advance(20);
  const [a, b] = servers;
  if (a === undefined || b === undefined) return assert.fail();
  const c = servers[2] ?? b;
  const close = () => {
    for (const server of servers) server.close();
  };
  return { clock, transport, a, b, c, close };
}

/** The answer's status and body, or the code of the error. */
async function outcomeOf(clock: FakeClock, asked: Promise<Message>): Promise<string> {
  const told = asked.then(
    ({ head, body }) => `${actorAnswerFromWire(head).status} ${body === null ? '' : Buffer.from(body)}`,
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  );
  return clock.run(told);
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const put = (server: RoutedServer, namespace: string, body = 'new') =>
  server.router.call(callOf('putDocuments', namespace), bytes(body));
const get = (server: RoutedServer, namespace: string) =>
  server.router.call(callOf('getDocument', namespace), null);
/** The tenant that something is cached of. */
const cached = { of: 'tenant', id: tenantId } as const;
const names = (calls: readonly ActorCall[]) => calls.map(({ operation }) => operation);

test('a call goes to the server that owns its name, with whom to charge, and its answer comes back whole', async () => {
  const { clock, a, b, close } = await start(two);
  const [own, other] = [nameWhere([two, 'a']), nameWhere([two, 'b'])];
  const call = callOf('putDocuments', other, { argument: 'x', query: 'y=1', idempotencyKey: 'k' });

  const ofOwn = await clock.run(put(a, own));
  const answer = await clock.run(a.router.call(call, bytes('body')));

  assert.deepEqual(ofOwn.head, done);
  assert.deepEqual([a.got.length, b.got.length], [1, 1]);
  assert.deepEqual(b.got[0], call);
  assert.deepEqual(answer.head, done);
  assert.equal(Buffer.from(answer.body ?? []).toString(), 'body');
  assert.equal(a.metric('tidebase_forwards_total{outcome="answered"}'), 1);
  assert.equal(b.metric('tidebase_forwards_served_total{outcome="delivered"}'), 1);
  close();
});

test('bodies and answers of many frames come whole, and their room is free again', async () => {
  const { clock, a, b, close } = await start(two);
  const large = new Uint8Array(3_000_000).map((_, at) => at % 251);

  const answer = await clock.run(
    a.router.call(callOf('search', nameWhere([two, 'b'])), large.slice()),
    600_000,
  );
  await clock.settle();

  assert.equal(Buffer.compare(answer.body ?? bytes(''), large), 0);
  for (const { gates } of [a, b]) assert.deepEqual([gates.answers.held, gates.bodies.held], [0, 0]);
  close();
});

test('a body for which there is no room is refused by the other server, and nothing is done', async () => {
  const { clock, a, b, close } = await start(two, { gateBytes: 1_000_000 });

  const asked = a.router.call(callOf('putDocuments', nameWhere([two, 'b'])), new Uint8Array(3_000_000));

  assert.equal(await outcomeOf(clock, asked), 'rate_limited');
  assert.equal(b.got.length, 0);
  assert.equal(b.gates.bodies.held, 0);
  close();
});

test('an answer for which there is no room is refused by whoever has none', async () => {
  const { clock, a, b, close } = await start(two);
  b.act = (_, __, respond) => respond(done, new Uint8Array(3_000_000));
  const all = (server: RoutedServer, gate: 'answers' | 'bodies') =>
    server.gates[gate].reserve(1, 64_000_000 - 1_000);
  const name = nameWhere([two, 'b']);

  const atOther = all(b, 'bodies');
  assert.equal(await outcomeOf(clock, get(a, name)), 'rate_limited');
  atOther?.release();
  const here = all(a, 'answers');
  assert.equal(await outcomeOf(clock, get(a, name)), 'rate_limited');
  here?.release();

  assert.match(await outcomeOf(clock, get(a, name)), /^200/);
  close();
});

test('who sends by an older placement is refused, waits for the newer one, and finds the owner by it', async () => {
  const { clock, a, b, c, close } = await start(three);
  const name = nameWhere([three, 'b'], [['a', 'c'], 'c']);
  for (const server of [b, c]) server.members.use(membersOf(server.id, 2, three, ['a', 'c']));

  const asked = put(a, name);
  await clock.advance(500);
  assert.deepEqual([b.got.length, c.got.length], [0, 0]);
  a.members.use(membersOf('a', 2, three, ['a', 'c']));

  assert.equal(await outcomeOf(clock, asked), '200 new');
  assert.deepEqual([b.got.length, c.got.length], [0, 1]);
  assert.equal(a.metric('tidebase_forwards_repeated_total{why="moved"}'), 1);
  assert.equal(c.got[0]?.deadlineMs, 9_500);
  close();
});

test('a call whose data moves a second time while it is tried is refused, with nothing done', async () => {
  const { clock, a, b, c, close } = await start(three);
  const name = nameWhere([three, 'b'], [['a', 'c'], 'c'], [['a', 'b'], 'b']);
  b.members.use(membersOf('b', 2, three, ['a', 'c']));
  c.members.use(membersOf('c', 3, three, ['a', 'b']));

  const asked = put(a, name);
  asked.catch(() => {});
  await clock.advance(100);
  a.members.use(membersOf('a', 2, three, ['a', 'c']));
  await clock.advance(100);
  a.members.use(membersOf('a', 3, three, ['a', 'b']));
  b.members.use(membersOf('b', 3, three, ['a', 'b']));

  assert.equal(await outcomeOf(clock, asked), 'unavailable');
  assert.deepEqual([b.got.length, c.got.length], [0, 0]);
  close();
});

test('who becomes the owner while it waits does it itself', async () => {
  const { clock, a, b, close } = await start(two);
  b.members.use(membersOf('b', 2, two, ['a']));

  const asked = put(a, nameWhere([two, 'b']));
  await clock.advance(100);
  a.members.use(membersOf('a', 2, two, ['a']));

  assert.equal(await outcomeOf(clock, asked), '200 new');
  assert.deepEqual([a.got.length, b.got.length], [1, 0]);
  close();
});

test('an older placement is refused even where the owner is still the same', async () => {
  const { clock, a, b, close } = await start(two);
  b.members.use(membersOf('b', 2, two));

  const asked = put(a, nameWhere([two, 'b']));

  assert.equal(await outcomeOf(clock, asked), 'unavailable');
  assert.equal(b.got.length, 0);
  assert.equal(clock.monotonic() >= limits.handoverWaitMs, true);
  assert.equal(b.metric('tidebase_forwards_served_total{outcome="moved"}'), 1);
  close();
});

test('an owner that has not heard of the placement waits until it has', async () => {
  const { clock, a, b, close } = await start(two);
  a.members.use(membersOf('a', 2, two));
  const name = nameWhere([two, 'b']);

  const asked = put(a, name);
  await clock.advance(700);
  assert.equal(b.got.length, 0);
  assert.equal(b.timesBehind, 1);
  b.members.use(membersOf('b', 2, two));
  assert.equal(await outcomeOf(clock, asked), '200 new');

  a.members.use(membersOf('a', 3, two));
  assert.equal(await outcomeOf(clock, put(a, name)), 'unavailable');
  assert.equal(b.got.length, 1);
  close();
});

test('a process that the owner does not know as a member waits until it does: it would not hear of revocations', async () => {
  const { clock, a, b, close } = await start(two);
  b.members.use(membersOf('b', 1, ['b'], two));

  const asked = get(a, nameWhere([two, 'b']));
  await clock.advance(300);
  assert.equal(b.got.length, 0);
  b.members.use(membersOf('b', 1, two));

  assert.match(await outcomeOf(clock, asked), /^200/);
  close();
});

test('a write of which nobody says what became of it may have been done, and is not done again', async () => {
  const { clock, transport, a, b, close } = await start(two);
  b.act = () => cutAll(transport);

  assert.equal(await outcomeOf(clock, put(a, nameWhere([two, 'b']))), 'write_unknown');
  await clock.advance(5_000);

  assert.deepEqual(names(b.got), ['putDocuments']);
  assert.equal(a.metric('tidebase_forwards_total{outcome="unknown"}'), 1);
  close();
});

test('a read whose answer is lost is tried again once', async () => {
  const { clock, transport, a, b, close } = await start(two);
  const name = nameWhere([two, 'b']);
  let lost = 0;
  b.act = (_, __, respond) => (lost++ === 0 ? cutAll(transport) : respond(done));
  assert.match(await outcomeOf(clock, get(a, name)), /^200/);
  assert.equal(b.got.length, 2);

  b.act = () => cutAll(transport);
  assert.equal(await outcomeOf(clock, get(a, name)), 'unavailable');
  assert.equal(b.got.length, 4);
  close();
});

test('what is repeatable is not sent again either, but its caller may', async () => {
  const { clock, transport, a, b, close } = await start(two);
  b.act = () => cutAll(transport);

  const call = callOf(internalCalls.dropNamespace, nameWhere([two, 'b']));
  const outcome = await outcomeOf(clock, a.router.call(call));

  assert.equal(outcome, 'unavailable');
  assert.equal(b.got.length, 1);
  close();
});

test('who is not reached is reached through a third server', async () => {
  const { clock, a, b, c, close } = await start(three, { cut: [['a', 'b']] });

  const outcome = await outcomeOf(clock, put(a, nameWhere([three, 'b'])));

  assert.equal(outcome, '200 new');
  assert.deepEqual([b.got.length, c.got.length], [1, 0]);
  assert.equal(a.metric('tidebase_forwards_repeated_total{why="third"}'), 1);
  close();
});

test('a call waits for whoever takes over from a server that is gone', async () => {
  const { clock, a, b, c, close } = await start(three);
  const name = nameWhere([three, 'b'], [['a', 'c'], 'c']);
  b.close();
  await clock.advance(100);

  const asked = put(a, name);
  await clock.advance(1_200);
  assert.equal(c.got.length, 0);
  for (const server of [a, c]) server.members.use(membersOf(server.id, 2, ['a', 'c']));

  assert.equal(await outcomeOf(clock, asked), '200 new');
  assert.equal(c.got.length, 1);
  close();
});

test('where nobody takes over in time, nothing was done', async () => {
  const { clock, a, b, close } = await start(two);
  b.close();
  await clock.advance(100);
  const beganMs = clock.monotonic();

  const outcome = await outcomeOf(clock, put(a, nameWhere([two, 'b'])));

  assert.equal(outcome, 'unavailable');
  const waitedMs = clock.monotonic() - beganMs;
  assert.ok(waitedMs >= limits.handoverWaitMs && waitedMs < limits.handoverWaitMs + 200, `${waitedMs} ms`);
  close();
});

test('a server that leaves refuses, and the call waits for the new owner', async () => {
  const { clock, a, b, close } = await start(two);
  b.peers.stopServing();

  const asked = put(a, nameWhere([two, 'b']));
  await clock.advance(800);
  a.members.use(membersOf('a', 2, two, ['a']));

  assert.equal(await outcomeOf(clock, asked), '200 new');
  assert.deepEqual([a.got.length, b.got.length], [1, 0]);
  close();
});

test('a call waits no longer than it may take', async () => {
  const { clock, a, b, close } = await start(two);
  b.close();
  await clock.advance(100);
  const beganMs = clock.monotonic();

  const call = callOf('search', nameWhere([two, 'b']), { deadlineMs: 300 });
  const outcome = await outcomeOf(clock, a.router.call(call));

  assert.equal(outcome, 'unavailable');
  assert.ok(clock.monotonic() - beganMs <= 400);
  close();
});

test('a call whose data has moved waits no longer than it may take', async () => {
  const { clock, a, b, close } = await start(two);
  b.members.use(membersOf('b', 2, two));
  const beganMs = clock.monotonic();

  const call = callOf('search', nameWhere([two, 'b']), { deadlineMs: 300 });
  const outcome = await outcomeOf(clock, a.router.call(call));

  assert.equal(outcome, 'unavailable');
  assert.ok(clock.monotonic() - beganMs <= 400);
  close();
});

test('a write that was held up on its way past a change of owners is not done by the owner before', async () => {
  const { clock, transport, a, b, c, close } = await start(three);
  const name = nameWhere([three, 'b'], [['a', 'c'], 'c']);
  // Nothing that was sent arrives.
  for (const link of transport.links.flat()) link.pause();

  const asked = put(a, name, 'delayed');
  await clock.advance(1_000);
  for (const server of [a, b, c]) server.members.use(membersOf(server.id, 2, three, ['a', 'c']));
  for (const link of transport.links.flat()) link.resume();

  assert.equal(await outcomeOf(clock, asked), '200 delayed');
  assert.deepEqual([b.got.length, c.got.length], [0, 1]);
  close();
});

test('a body that takes its time is not done by an owner that it outlasts', async () => {
  const { clock, transport, a, b, c, close } = await start(three);
  const name = nameWhere([three, 'b'], [['a', 'c'], 'c']);
  const asked = a.router.call(callOf('putDocuments', name), new Uint8Array(1_000_000));
  // Its head and some of it have come.
  for (let turn = 0; turn < 12 && b.gates.bodies.held === 0; turn++) await clock.settle();
  assert.equal(b.gates.bodies.held, 2_000_000);
  for (const link of transport.links.flat()) link.pause();
  await clock.advance(500);

  for (const server of [a, b, c]) server.members.use(membersOf(server.id, 2, three, ['a', 'c']));
  for (const link of transport.links.flat()) link.resume();

  assert.match(await outcomeOf(clock, asked), /^200/);
  assert.deepEqual([b.got.length, c.got.length], [0, 1]);
  assert.equal(b.gates.bodies.held, 0);
  close();
});

test('a write is done once, and its client hears so, wherever connections are cut', async () => {
  const seen = new Set<string>();
  for (let at = 5; at < 420; at += 5)
    for (const direction of [0, 1] as const) {
      let cuts = 0;
      const rules = (): readonly [LinkRules, LinkRules] => {
        const cut = { cutAfterBytes: at + 200 * (cuts === 0 ? 0 : 1) };
        if (cuts++ > 1) return [{}, {}];
        return direction === 0 ? [cut, {}] : [{}, cut];
      };
      const { clock, a, b, close } = await start(two, { rules });

      const outcome = await outcomeOf(clock, put(a, nameWhere([two, 'b'])));
      await clock.advance(3_000);
      close();

      assert.equal(b.got.length, 1, `begun ${b.got.length} times, cut at ${at}`);
      seen.add(outcome);
    }
  // Its answer is kept, and a copy of it finds that on the next connection.
  assert.deepEqual([...seen], ['200 new']);
});

test('that nobody waits any more is told to the actor, wherever it lives', async () => {
  const { clock, a, b, close } = await start(two);
  let cancelled = 0;
  b.act = (call, _, respond, channel) => {
    channel.onCancel(b.got.indexOf(call) + 1, () => {
      cancelled++;
      respond(done);
    });
  };
  const heads: unknown[] = [];
  const delivery = a.router.deliver(
    callOf('search', nameWhere([two, 'b'])),
    null,
    ({ head }) => heads.push(head),
    (error) => heads.push(error.code),
  );
  await clock.settle();
  await clock.settle();

  if (delivery !== null) a.router.cancel(delivery);
  await clock.advance(50);

  assert.deepEqual([cancelled, heads], [1, [done]]);
  close();
});

test('a call that waits for an owner ends at once when nobody waits for it', async () => {
  const { clock, a, b, close } = await start(two);
  b.close();
  await clock.advance(100);
  const ends: string[] = [];
  const delivery = a.router.deliver(
    callOf('putDocuments', nameWhere([two, 'b'])),
    null,
    () => ends.push('answered'),
    ({ code }) => ends.push(code),
  );
  await clock.advance(150);

  if (delivery !== null) a.router.cancel(delivery);
  await clock.settle();

  assert.deepEqual(ends, ['unavailable']);
  await clock.advance(3_000);
  assert.deepEqual(ends, ['unavailable']);
  close();
});

test('a thread that dies on the other server is told as it is here', async () => {
  for (const [operation, code] of [
    ['putDocuments', 'write_unknown'],
    ['search', 'unavailable'],
  ] as const) {
    const { clock, a, b, close } = await start(two);
    b.act = () => b.actors.close();

    assert.equal(await outcomeOf(clock, a.router.call(callOf(operation, nameWhere([two, 'b'])))), code);
    close();
  }
});

test('clients fill their own places, and what actors ask of each other has others', async () => {
  const { clock, a, b, close } = await start(two);
  const name = nameWhere([two, 'b']);
  const held: (() => void)[] = [];
  b.act = ({ operation }, _, respond) =>
    operation === 'search' ? void held.push(() => respond(done)) : respond(done);
  const flood = Array.from({ length: limits.forwardsToPeerMax }, () => a.router.call(callOf('search', name)));
  await clock.settle();
  await clock.settle();

  assert.equal(await outcomeOf(clock, get(a, name)), 'rate_limited');
  for (const operation of [internalCalls.dropNamespace, internalCalls.collectNamespace])
    assert.match(await outcomeOf(clock, a.router.call(callOf(operation, name))), /^200/);
  assert.equal(a.metric('tidebase_forwards_total{outcome="full"}'), 1);
  for (const respond of held.splice(0)) respond();
  await clock.run(Promise.all(flood));

  assert.match(await outcomeOf(clock, get(a, name)), /^200/);
  assert.equal(a.metric('tidebase_forwards_in_flight'), 0);
  close();
});

test('bodies of clients that wait for one server are bounded', async () => {
  const { clock, a, b, close } = await start(two);
  const name = nameWhere([two, 'b']);
  const held: (() => void)[] = [];
  b.act = (_, __, respond) => void held.push(() => respond(done));
  const body = () => new Uint8Array(limits.peerFrameBytesMax / 2);
  const count = limits.forwardBytesToPeerMax / body().byteLength;
  const flood = Array.from({ length: count }, () => a.router.call(callOf('putDocuments', name), body()));

  assert.equal(await outcomeOf(clock, a.router.call(callOf('putDocuments', name), body())), 'rate_limited');
  while (held.length < count) await clock.advance(1);
  for (const respond of held) respond();
  await clock.run(Promise.all(flood));
  close();
});

test('what an actor asks of an actor elsewhere goes there', async () => {
  const { clock, a, b, close } = await start(two);
  const name = nameWhere([two, 'b']);
  const asked = a.actors.call(actorCallToWire(callOf(internalCalls.dropNamespace, name)), null);

  const answer = await clock.run(asked);

  assert.equal(actorAnswerFromWire(answer.head).status, 200);
  assert.deepEqual(names(b.got), [internalCalls.dropNamespace]);
  close();
});

test('a file that was received here is not passed on as if its path were a file', async () => {
  const { clock, a, b, close } = await start(two);

  const asked = a.router.call(callOf('importDocuments', nameWhere([two, 'b'])), bytes('a path'));

  assert.equal(await outcomeOf(clock, asked), 'unavailable');
  assert.equal(b.got.length, 0);
  close();
});

test('a revocation is answered when every server has forgotten the tenant', async () => {
  const { clock, a, b, c, close } = await start(three);
  let forgotten = false;

  await clock.run(
    a.others.forget(cached).then(() => {
      forgotten = true;
    }),
  );

  assert.ok(forgotten);
  assert.deepEqual([b.forgotten, c.forgotten], [[cached], [cached]]);
  assert.equal(a.metric('tidebase_revocations_unconfirmed_total'), 0);
  close();
});

test('a person whose logins end is forgotten by every server, too', async () => {
  const { clock, a, b, c, close } = await start(three);
  const ada = { of: 'person', id: 5 } as const;

  await clock.run(a.router.forget(ada));

  assert.deepEqual([a.forgotten, b.forgotten, c.forgotten], [[ada], [ada], [ada]]);
  close();
});

test('a revocation waits two seconds for a server that is away, and asks again meanwhile', async () => {
  const { clock, a, b, c, close } = await start(three);
  c.close();
  await clock.advance(100);
  const beganMs = clock.monotonic();

  await clock.run(a.others.forget(cached));

  assert.equal(clock.monotonic() - beganMs, limits.revocationWaitMs);
  assert.deepEqual(b.forgotten, [cached]);
  assert.equal(a.metric('tidebase_revocations_unconfirmed_total'), 1);
  assert.ok(a.lines.some((line) => /did not confirm/.test(line)));
  close();
});

test('a revocation reaches a server whose connection is made again meanwhile', async () => {
  const { clock, transport, a, b, close } = await start(two);
  cutAll(transport);
  await clock.settle();

  await clock.run(a.others.forget(cached));

  assert.deepEqual(b.forgotten, [cached]);
  assert.equal(a.metric('tidebase_revocations_unconfirmed_total'), 0);
  close();
});

test('an actor that revokes is answered when all servers know', async () => {
  const { clock, a, b, close } = await start(two);

  const wire = actorCallToWire(callOf(internalCalls.forgetTenant, ''));
  const answer = await clock.run(a.actors.call(wire, null));

  assert.equal(actorAnswerFromWire(answer.head).status, 200);
  assert.deepEqual([a.forgotten, b.forgotten], [[cached], [cached]]);
  close();
});

test('a view is told to all others, whatever its size', async () => {
  const { clock, a, b, c, close } = await start(three);

  a.others.pushView(bytes('view 2'));
  a.others.pushView(bytes('v'.repeat(200_000)));
  await clock.advance(50);

  for (const { views } of [b, c])
    assert.deepEqual(
      views.map(({ length }) => length).toSorted((x, y) => x - y),
      [6, 200_000],
    );
  assert.deepEqual(a.views, []);
  close();
});

test('who joins waits until all others have flushed what it will own', async () => {
  const { clock, a, b, c, close } = await start(three);
  const flushed = gate();
  c.flushing = flushed.opened;
  let isPrepared = false;
  const preparing = a.others.prepare().then(() => {
    isPrepared = true;
  });

  await clock.advance(100);
  assert.deepEqual([b.prepared, c.prepared, isPrepared], [[logOf('a')], [logOf('a')], false]);
  flushed.open();
  await clock.run(preparing);

  close();
});

test('who joins waits no longer than it may for one that is away or does not end', async () => {
  const { clock, a, b, c, close } = await start(three);
  b.flushing = new Promise(() => {});
  c.close();
  await clock.advance(100);
  const beganMs = clock.monotonic();

  await clock.run(a.others.prepare());

  const tookMs = clock.monotonic() - beganMs;
  assert.ok(tookMs >= limits.joinFlushMs && tookMs < limits.joinFlushMs + 1_000, `${tookMs} ms`);
  close();
});

function cutAll(transport: MemoryTransport): void {
  for (const [link] of transport.links) link.destroy();
}

test('an actor that finds that its data has moved gives the call back, which is done where it is now', async () => {
  const { clock, a, b, close } = await start(two);
  const name = nameWhere([two, 'a'], [['b'], 'b']);
  a.act = (_, body, respond) => respond(movedToWire(2), body);

  const asked = outcomeOf(clock, put(a, name, 'kept'));
  await clock.advance(50);
  assert.deepEqual(b.got, [], 'this router has not heard of it yet');
  for (const server of [a, b]) server.members.use(membersOf(server.id, 2, two, ['b']));

  assert.equal(await asked, '200 kept');
  assert.deepEqual(names(b.got), ['putDocuments']);
  close();
});

test('one that another server has sent goes back to it, and from there to where the data is', async () => {
  const { clock, a, b, close } = await start(two);
  const name = nameWhere([two, 'b'], [['a'], 'a']);
  b.act = (_, body, respond) => respond(movedToWire(2), body);

  const asked = outcomeOf(clock, put(a, name, 'kept'));
  await clock.advance(50);
  for (const server of [a, b]) server.members.use(membersOf(server.id, 2, two, ['a']));

  assert.equal(await asked, '200 kept');
  assert.deepEqual([names(b.got), names(a.got)], [['putDocuments'], ['putDocuments']]);
  close();
});

test('where nobody hears of the placement by which it has moved, the client hears that nothing was done', async () => {
  const { clock, a, close } = await start(two);
  a.act = (_, body, respond) => respond(movedToWire(2), body);

  assert.equal(await outcomeOf(clock, put(a, nameWhere([two, 'a']))), 'unavailable');
  close();
});
