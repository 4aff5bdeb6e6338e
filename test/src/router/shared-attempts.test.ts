/** Attempts that several servers count together, over links in memory that can be cut. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import type { AttemptSaid } from '../../../src/identity/attempt-counts.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type LinkRules, MemoryTransport } from '../../support/peer-links.ts';
import { type RoutedServer, startServers } from '../../support/routed-servers.ts';

const ids = ['a', 'b', 'c'] as const;
const keys = Array.from({ length: 12 }, (_, at) => `account-${at}`);
const welcome: AttemptSaid = { waitMs: 0, areTooMany: false };

async function started(rules?: () => readonly [LinkRules, LinkRules]) {
  const clock = new FakeClock();
  const servers = await startServers(ids, { clock, transport: new MemoryTransport(rules) });
  await clock.advance(20);
  /** The answer, whichever server gives it. */
  const ask = async (server: RoutedServer, step: 'look' | 'note' | 'spend', key: string) => {
    let said: AttemptSaid | null = null;
    void Promise.resolve(server.countAttempt({ of: 'resets-by-account', step, key })).then((each) => {
      said = each;
    });
    for (let ms = 0; said === null && ms <= limits.attemptAskMs + 500; ms += 10) await clock.advance(10);
    return said as AttemptSaid | null;
  };
  const close = () => {
    for (const server of servers) server.close();
  };
  return { servers, ask, close };
}

test('three servers give nobody more tries than one does: each key is counted in one place', async () => {
  const { servers, ask, close } = await started();
  for (const key of keys) {
    // Three an hour are free, whichever server is asked.
    for (const server of servers) assert.deepEqual(await ask(server, 'spend', key), welcome);
    for (const server of servers) {
      const said = await ask(server, 'spend', key);
      assert.ok(
        said !== null && said.waitMs > 0 && said.areTooMany,
        `${key} may try once more through ${server.id}`,
      );
    }
  }
  for (const { attempts, id } of servers) {
    const counted = keys.filter(
      (key) => attempts.take({ of: 'resets-by-account', step: 'look', key }).areTooMany,
    );
    assert.ok(counted.length > 0 && counted.length < keys.length, `${id} counts ${counted.length} keys`);
  }
  close();
});

test('where the server that counts a key gives no answer, the own count is good enough', async () => {
  const { servers, ask, close } = await started();
  const [a, b, c] = servers;
  if (a === undefined || b === undefined || c === undefined) return assert.fail();
  b.close();
  c.close();
  for (const key of keys) {
    for (let n = 0; n < 3; n++) assert.deepEqual(await ask(a, 'spend', key), welcome);
    assert.equal((await ask(a, 'spend', key))?.areTooMany, true);
  }
  close();
});
