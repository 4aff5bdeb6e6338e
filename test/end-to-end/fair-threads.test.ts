import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiClient } from '../support/api-client.ts';
import { connectRaw, type RawConnection } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** What one account can make the threads do: an attacker with two tenants, and a neighbour. */
describe('threads that many share', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;
  let attacker: ApiClient;
  let neighbour: ApiClient;

  before(async () => {
    const env = { TIDEBASE_COMMIT_MS: '20', TIDEBASE_METRICS_PORT: '0', TIDEBASE_ACTOR_THREADS: '1' };
    server = await startServer({ folder: temporaryFolder(), env });
    anyone = new ApiClient(server.url);
    attacker = anyone.as((await anyone.signup('attacker@example.com')).key);
    neighbour = anyone.as((await anyone.signup('neighbour@example.com')).key);
    await neighbour.put(
      'notes',
      Array.from({ length: 500 }, (_, i) => ({ id: `n${i}`, text: `low water ${i}` })),
    );
    const text = 'ab'.repeat(900_000);
    for (let i = 0; i < 15; i++) await attacker.put('texts', [{ id: `t${i}`, text: `${text}${i}` }]);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  /** Sends a request and reads nothing; answers its connection. */
  async function begun(path: string, body: string): Promise<RawConnection> {
    const connection = await connectRaw(server.port);
    connection.send(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacker.key}\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return connection;
  }

  /** The slowest of some searches of the neighbour, in milliseconds, while the attack is under way. */
  async function slowestSearch(times: number): Promise<number> {
    let slowest = 0;
    for (let i = 0; i < times; i++) {
      const beganMs = performance.now();
      const found = await neighbour.search('notes', { q: `water ${i}`, limit: 1 });
      assert.equal(found.hits.length, 1);
      slowest = Math.max(slowest, performance.now() - beganMs);
    }
    return slowest;
  }

  it('are not the attacker’s by costly patterns, and the neighbour’s own costly one has its turn', async () => {
    const body = JSON.stringify({ q: '[ab]{4}c[ab]*d|(a|b|ab)*c{3}', regex: true });
    const attacks = await Promise.all(
      Array.from({ length: 15 }, () => begun('/v1/namespaces/texts/count', body)),
    );
    await sleep(200);

    const slowestMs = await slowestSearch(50);
    const own = await neighbour.count('notes', { q: 'w[a-z]{1,200}r 4', regex: true });

    assert.equal(own.count, 111);
    // A call that nobody can interrupt lasts some milliseconds; a queue of all the attacker's would last seconds.
    assert.ok(slowestMs < 2_000, `a search took ${slowestMs} ms`);
    for (const { socket } of attacks) socket.destroy();
  });

  it('are not the attacker’s by large bodies that mean nothing', async () => {
    const body = `{"filter":${'['.repeat(20)}${'{},'.repeat(300_000)}{}${']'.repeat(20)}}`;
    const connections = await Promise.all(
      Array.from({ length: 16 }, () => begun('/v1/namespaces/texts/search', body)),
    );

    const slowestMs = await slowestSearch(50);

    assert.ok(slowestMs < 2_000, `a search took ${slowestMs} ms`);
    for (const connection of connections) {
      const [answer] = await connection.waitForAnswers(1);
      assert.equal(answer?.status, 400);
      connection.socket.destroy();
    }
  });

  it('end a query whose client has gone away', async () => {
    const words = Array.from({ length: 40 }, (_, i) => ({
      id: `w${i}`,
      text: Array.from({ length: 60_000 }, (_, word) => `word${(word * 7_919 + i) % 99_991}`).join(' '),
      meta: { i },
    }));
    for (let at = 0; at < words.length; at += 10) await attacker.put('words', words.slice(at, at + 10));
    const body = JSON.stringify({ q: 'word\\d*[02468]{4}x', regex: true, scan: true });
    const whole = performance.now();
    await attacker.count('words', { q: 'word\\d*[02468]{4}x', regex: true, scan: true });
    const wholeMs = performance.now() - whole;

    for (let round = 0; round < 40; round++) {
      const connection = await begun('/v1/namespaces/words/count', body);
      await sleep(5);
      connection.socket.destroy();
    }
    const beganMs = performance.now();
    await neighbour.search('notes', { q: 'water', limit: 1 });
    await attacker.count('words', { q: 'word1', regex: false });
    const restMs = performance.now() - beganMs;

    // Forty whole counts would still be under way.
    assert.ok(restMs < Math.max(2_000, 20 * wholeMs), `${restMs} ms, one count takes ${wholeMs} ms`);
  });
});
