/** Calls between three servers, of which two hear each other in one direction only, or not any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { actorAnswerFromWire } from '../../../protocol/messages.ts';
import type { Message } from '../../../src/base/port-channel.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type MemoryLink, MemoryTransport } from '../../support/peer-links.ts';
import { callOf, done, nameWhere, type RoutedServer, startServers } from '../../support/routed-servers.ts';

const three = ['a', 'b', 'c'] as const;
/** From a cut to an answer by another way, in milliseconds: a ping asked for, and not answered between some looks. */
const noticedMs = (limits.peerSilentLooksMax + 2) * limits.peerLookMs;
const ofB = nameWhere([three, 'b']);
const directions = ['what is asked', 'what is answered'] as const;

async function start() {
  const clock = new FakeClock();
  const transport = new MemoryTransport();
  const servers = await startServers(three, { clock, transport });
  await clock.advance(20);
  const [a, b, c] = servers as [RoutedServer, RoutedServer, RoutedServer];
  // Of the two connections to the port of b, a has made the first.
  const line = transport.links[transport.ports.indexOf(b.port)] ?? assert.fail('no connection');
  const cut = (direction: (typeof directions)[number]): MemoryLink => {
    const end = line[direction === 'what is asked' ? 0 : 1];
    end.isDead = true;
    return end;
  };
  const close = () => {
    for (const server of servers) server.close();
  };
  /** The outcome of a request to `a`, and after how many milliseconds it was there. */
  const ask = async (operation: string, body: string | null = null): Promise<readonly [string, number]> => {
    const beganMs = clock.monotonic();
    const bytes = body === null ? null : new Uint8Array(Buffer.from(body));
    const told = a.router.call(callOf(operation, ofB), bytes).then(textOf, (error: unknown) => {
      return error instanceof ApiError ? error.code : String(error);
    });
    const outcome = await clock.run(told);
    return [outcome, clock.monotonic() - beganMs];
  };
  return { clock, a, b, c, cut, ask, close };
}

function textOf({ head, body }: Message): string {
  return `${actorAnswerFromWire(head).status} ${body === null ? '' : Buffer.from(body)}`;
}

for (const direction of directions) {
  test(`a write is done once, and answered through a third within moments, where ${direction} is cut`, async () => {
    const { clock, a, b, cut, ask, close } = await start();
    const end = cut(direction);

    const [outcome, tookMs] = await ask('putDocuments', 'new');

    assert.equal(outcome, '200 new');
    assert.ok(tookMs <= noticedMs, `${tookMs} ms`);
    assert.equal(b.got.length, 1);
    assert.equal(a.metric('tidebase_forwards_repeated_total{why="silent"}'), 1);
    end.isDead = false;
    end.deliver();
    await clock.advance(5_000);
    assert.equal(b.got.length, 1, 'what comes late is not done');
    close();
  });

  test(`a write that is under way is not begun again, where ${direction} is cut`, async () => {
    const { clock, b, cut, ask, close } = await start();
    b.act = (_, body, respond) => void clock.after(1_500, () => respond(done, body));
    cut(direction);

    const [outcome, tookMs] = await ask('putDocuments', 'new');

    assert.equal(outcome, '200 new');
    assert.ok(tookMs <= 1_500 + noticedMs, `${tookMs} ms`);
    assert.equal(b.got.length, 1);
    close();
  });

  test(`a read is answered through a third within moments, where ${direction} is cut`, async () => {
    const { cut, ask, close } = await start();
    cut(direction);

    const [outcome, tookMs] = await ask('getDocument');

    assert.match(outcome, /^200/);
    assert.ok(tookMs <= noticedMs, `${tookMs} ms`);
    close();
  });

  test(`later calls go through the third at once, until the line answers again, where ${direction} is cut`, async () => {
    const { clock, a, cut, ask, close } = await start();
    const end = cut(direction);
    await ask('getDocument');

    for (const operation of ['getDocument', 'putDocuments']) {
      const [outcome, tookMs] = await ask(operation, 'again');
      assert.match(outcome, /^200/);
      assert.ok(tookMs <= limits.peerLookMs, `${tookMs} ms`);
    }
    end.isDead = false;
    end.deliver();
    await clock.advance(50);

    assert.equal(a.peers.reachability('log-b')?.isSilent, false);
    assert.match((await ask('putDocuments', 'direct'))[0], /^200/);
    close();
  });
}

test('a slow server is no silent line: what it takes its time for is asked once', async () => {
  const { clock, a, b, ask, close } = await start();
  b.act = (_, body, respond) => void clock.after(4_000, () => respond(done, body));

  const [outcome, tookMs] = await ask('getDocument');

  assert.match(outcome, /^200/);
  assert.ok(tookMs >= 4_000);
  assert.equal(b.got.length, 1);
  assert.equal(a.metric('tidebase_forwards_repeated_total{why="silent"}'), 0);
  close();
});
