import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { loadUws } from '../../src/front/http-uws-load.ts';
import { ApiClient } from '../support/api-client.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const path = '/v1/namespaces/large/import?format=ndjson';
const declared = [
  1_000_000_000, 1_073_741_824, 1_200_000_000, 2_000_000_000, 4_294_967_296, 9_999_999_999_999,
];

interface Outcome {
  readonly status: number;
  readonly code: string;
  readonly sent: number;
}

/** A client that sends as fast as it can and reads what comes meanwhile, as most do. */
function upload(port: number, key: string, bytes: number): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': key, 'content-length': bytes };
    const request = httpRequest({ port, method: 'POST', path, headers });
    const piece = Buffer.alloc(1024 * 1024, '\n');
    let sent = 0;
    let answered = false;
    const write = () => {
      if (answered || request.destroyed) return;
      sent += piece.byteLength;
      if (request.write(piece)) setImmediate(write);
      else request.once('drain', write);
    };
    request.once('response', (answer) => {
      answered = true;
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () => {
        const { code } = JSON.parse(Buffer.concat(parts).toString()) as { code: string };
        resolve({ status: answer.statusCode ?? 0, code, sent });
        request.destroy();
      });
    });
    request.on('error', (error) => {
      if (!answered) reject(error);
    });
    write();
  });
}

const noUws = !('uws' in loadUws()) && 'node:http serves here, which takes a length of any digits';

describe('a body that declares a length of ten digits', { concurrency: 1, skip: noUws }, () => {
  let server: ServerProcess;
  let api: ApiClient;

  before(async () => {
    // The default installation's HTTP server.
    server = await startServer({ folder: temporaryFolder() });
    const anyone = new ApiClient(server.url);
    api = anyone.as((await anyone.signup('oversize@example.com')).key);
    await api.put('kept', [{ id: 'a', text: 'kept' }]);
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  it('is answered 413 while the client sends, whatever the length', { timeout: 60_000 }, async () => {
    for (const bytes of declared) {
      const { status, code, sent } = await upload(server.port, String(api.key), bytes);

      assert.deepEqual([status, code], [413, 'too_large'], `${bytes} bytes declared`);
      assert.ok(sent < 200e6, `${sent} bytes were sent before the answer`);
    }
  });

  it('is answered whole to a client that waits, and nothing behind the head is taken for a request', async () => {
    const connection = await connectRaw(server.port);
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api.key}\r\nContent-Length: 1200000000\r\n\r\n`;

    connection.send(`${head}DELETE /v1/namespaces/kept HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api.key}\r\n\r\n`);
    const [answer] = await connection.waitForAnswers(1);
    await connection.waitForClose(10_000);

    assert.equal(answer?.status, 413);
    assert.equal(answer?.headers.get('connection'), 'close');
    assert.match(String(answer?.headers.get('x-request-id')), /^[\w.-]{4,}$/);
    const received = connection.received().toString('latin1');
    assert.match(received, /\{"error":"[^{}]*in chunks[^{}]*"code":"too_large"\}\r\n0\r\n/);
    assert.equal(received.match(/HTTP\/1\.1 /g)?.length, 1);
    assert.equal((await api.count('kept')).count, 1);
  });

  it('holds up nobody else, and its connection ends by itself', async () => {
    const open = await Promise.all(Array.from({ length: 100 }, () => connectRaw(server.port)));
    for (const connection of open)
      connection.send(
        `POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1200000000\r\n\r\n${'x'.repeat(10_000)}`,
      );

    const neighbours = await Promise.all(Array.from({ length: 20 }, () => api.get('kept', 'a')));
    await Promise.all(open.map((connection) => connection.waitForClose(10_000)));

    assert.deepEqual(new Set(neighbours.map(({ text }) => text)), new Set(['kept']));
    for (const connection of open) assert.match(connection.received().toString('latin1'), /^HTTP\/1\.1 413 /);
  });

  it('leaves upgrades of other clients what they were: requests like any other', async () => {
    const connection = await connectRaw(server.port);
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';

    connection.send(
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    const [answer] = await connection.waitForAnswers(1);
    connection.destroy();

    assert.deepEqual([answer?.status, answer?.body.toString()], [200, 'ok']);
  });
});
