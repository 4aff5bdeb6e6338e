import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeApiKey } from '../../src/accounts/api-keys.ts';
import { systemRandom } from '../../src/base/random.ts';
import { ApiClient } from '../support/api-client.ts';
import { connectRaw, type RawConnection } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const megabyte = 1e6;

/** What one account can make the server hold: an attacker and a neighbour, on a server of 256 MB. */
describe('memory that clients hold', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;
  let attacker: ApiClient;
  let neighbour: ApiClient;
  const connections: RawConnection[] = [];

  before(async () => {
    const env = { TIDEBASE_COMMIT_MS: '20', TIDEBASE_MEMORY_BYTES: String(256 * 2 ** 20) };
    server = await startServer({ folder: temporaryFolder(), env });
    anyone = new ApiClient(server.url);
    attacker = anyone.as((await anyone.signup('attacker@example.com')).key);
    neighbour = anyone.as((await anyone.signup('neighbour@example.com')).key);
    await neighbour.put('notes', [{ id: 'a', text: 'low water' }]);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  async function leave(): Promise<void> {
    for (const { socket } of connections.splice(0)) socket.destroy();
    await sleep(300);
  }

  /** Sends heads that declare a large body, and only the begin of it. */
  async function stall(path: string, bytes: number, times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      const connection = await connectRaw(server.port);
      connections.push(connection);
      connection.send(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacker.key}\r\nContent-Length: ${bytes}\r\n\r\n`,
      );
      connection.send(Buffer.alloc(300_000, 0x20));
    }
    await sleep(300);
  }

  const largeWrite = () =>
    Array.from({ length: 20 }, (_, i) => ({ id: `large-${i}`, text: `tide ${'x'.repeat(1.9 * megabyte)}` }));

  it('by bodies that stall is bounded, and a neighbour writes as much as it likes beside them', async () => {
    const before = server.residentBytes();
    await stall('/v1/namespaces/x/docs', 66 * megabyte, 48);

    const written = await neighbour.put('notes', largeWrite());
    assert.equal(written.written, 20);
    const grown = server.residentBytes() - before;
    assert.ok(grown < 600 * megabyte, `${Math.round(grown / megabyte)} MB more are resident`);
    await leave();
  });

  it('is not what comes of a body after its refusal', async () => {
    const nobodysKey = makeApiKey(systemRandom);
    const before = server.residentBytes();
    const piece = Buffer.alloc(megabyte, 0x20);
    for (let i = 0; i < 24; i++) {
      const connection = await connectRaw(server.port);
      connections.push(connection);
      connection.send(
        `POST /v1/namespaces/x/docs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${nobodysKey.key}\r\n` +
          `Content-Length: ${66 * megabyte}\r\n\r\n`,
      );
      for (let sent = 0; sent < 40; sent++) connection.send(piece);
    }
    let most = 0;
    for (let i = 0; i < 20; i++) {
      await sleep(100);
      most = Math.max(most, server.residentBytes() - before);
    }

    for (const connection of connections) assert.equal(connection.answers()[0]?.status, 401);
    assert.ok(most < 200 * megabyte, `${Math.round(most / megabyte)} MB more are resident`);
    await leave();
  });

  it('by files that stall leaves places for those of a neighbour', async () => {
    await stall('/v1/namespaces/x/import?format=csv', 1_900 * megabyte, 40);

    const options = { body: 'a\n1\n', headers: { 'content-type': 'application/octet-stream' } };
    for (const name of ['one', 'two', 'three']) {
      const answer = await neighbour.request('POST', `/v1/namespaces/${name}/import?format=csv`, options);
      assert.equal(answer.status, 200, answer.body.toString());
    }
    await leave();
  });

  it('by answers that are not read is bounded, and stays in flight', async () => {
    for (let i = 0; i < 2; i++)
      await attacker.put(
        'texts',
        largeWrite().map((doc) => ({ ...doc, id: `${i}-${doc.id}` })),
      );
    const before = server.residentBytes();
    const body = JSON.stringify({ q: 'tide', limit: 40, include: ['text'] });
    for (let i = 0; i < 24; i++) {
      const connection = await connectRaw(server.port);
      connections.push(connection);
      connection.socket.pause();
      connection.send(
        `POST /v1/namespaces/texts/search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacker.key}\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`,
      );
    }
    await sleep(3_000);

    const found = await neighbour.search('notes', { q: 'tide', limit: 2, include: ['text'] });
    assert.equal(found.hits.length, 2);
    const grown = server.residentBytes() - before;
    assert.ok(grown < 900 * megabyte, `${Math.round(grown / megabyte)} MB more are resident`);
    await leave();
  });
});
