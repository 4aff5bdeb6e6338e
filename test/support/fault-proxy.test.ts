import assert from 'node:assert/strict';
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { eventually } from './eventually.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

/** The other tests believe what this proxy counts, so it is held against a server that counts for itself. */
describe('the fault proxy', () => {
  const seen: string[] = [];
  let server: Server;
  let proxy: FaultProxy;
  const agent = new Agent({ keepAlive: true });

  before(async () => {
    server = createServer((incoming, answer) => {
      let bytes = 0;
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      incoming.once('end', () => {
        seen.push(`${incoming.method} ${incoming.url} ${bytes}`);
        answer.end('x'.repeat(100_000));
      });
      // A request that is cut off never ends.
      incoming.once('error', () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    proxy = await startFaultProxy({ targetPort: (server.address() as AddressInfo).port });
  });
  afterEach(async () => {
    await proxy.set({});
    seen.length = 0;
  });
  after(async () => {
    agent.destroy();
    await proxy.close();
    server.closeAllConnections();
    server.close();
  });

  const send = (method: string, path: string, body = '') =>
    new Promise<{ status: number; bytes: number }>((resolve, reject) => {
      const headers = { 'content-length': Buffer.byteLength(body) };
      const call = request({ port: proxy.port, agent, method, path, headers }, (incoming) => {
        let bytes = 0;
        incoming.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
        });
        incoming.once('end', () => resolve({ status: incoming.statusCode ?? 0, bytes }));
        incoming.once('error', reject);
      });
      call.once('error', reject);
      call.end(body);
    });
  const failed = (code: string) => (error: NodeJS.ErrnoException) => error.code === code;

  it('passes requests and answers whole, several on one connection', async () => {
    const before = proxy.counters.connections;
    const body = 'y'.repeat(3_000_000);
    assert.deepEqual(await send('PUT', '/a?x', body), { status: 200, bytes: 100_000 });
    assert.deepEqual(await send('GET', '/b'), { status: 200, bytes: 100_000 });
    assert.deepEqual(seen, ['PUT /a?x 3000000', 'GET /b 0']);
    assert.equal(proxy.counters.connections, before + 1);
  });

  it('adds latency each way', async () => {
    await proxy.set({ latencyMs: 40 });
    const began = performance.now();
    await send('PUT', '/a', 'y'.repeat(1_000_000));
    assert.ok(performance.now() - began >= 79);
  });

  it('refuses as the system does, and listens again on the same port', async () => {
    await send('GET', '/a');
    const kept = () => Object.values(agent.freeSockets).some((sockets) => (sockets ?? []).length > 0);
    await eventually(() => kept(), 'the agent keeps the connection');
    await proxy.set({ mode: 'refuse' });
    // The reset of the idle connection has to be heard before the agent uses it again.
    await eventually(() => !kept(), 'the agent has heard of the reset');
    await assert.rejects(send('GET', '/b'), failed('ECONNREFUSED'));
    await proxy.set({});
    assert.equal((await send('GET', '/c')).status, 200);
    assert.deepEqual(seen, ['GET /a 0', 'GET /c 0']);
  });

  it('holds everything while it hangs, and lets it go on afterwards', async () => {
    await proxy.set({ mode: 'hang' });
    const answer = send('PUT', '/a', 'abc');
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(seen, []);
    await proxy.set({});
    assert.equal((await answer).status, 200);
  });

  it('holds answers alone where one direction is cut', async () => {
    await proxy.set({ mode: 'oneWay' });
    let answered = false;
    const answer = send('PUT', '/a', 'abc').then(() => {
      answered = true;
    });
    while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(answered, false);
    await proxy.set({});
    await answer;
  });

  it('throws away the answers of chosen requests, so many times', async () => {
    const matches = ({ method, path }: { method: string; path: string }) =>
      method === 'PUT' && path.startsWith('/log/');
    await proxy.set({ mode: 'dropResponse', matches, times: 1 });
    assert.equal((await send('GET', '/log/1')).status, 200);
    await assert.rejects(send('PUT', '/log/1', 'abc'), failed('ECONNRESET'));
    assert.equal((await send('PUT', '/log/1', 'abc')).status, 200);
    assert.deepEqual(seen, ['GET /log/1 0', 'PUT /log/1 3', 'PUT /log/1 3']);
    assert.equal(proxy.counters.dropped, 1);
  });

  it('answers SlowDown itself, and goes on with the connection', async () => {
    await proxy.set({ mode: 'throttle', times: 1 });
    const before = proxy.counters.connections;
    assert.equal((await send('PUT', '/a', 'y'.repeat(1_000_000))).status, 503);
    assert.equal((await send('PUT', '/b', 'abc')).status, 200);
    assert.deepEqual(seen, ['PUT /b 3']);
    assert.ok(proxy.counters.connections <= before + 1);
  });

  it('cuts a request off in its middle', async () => {
    await proxy.set({ mode: 'cut', times: 1, cutAfterBytes: 500 });
    await assert.rejects(send('PUT', '/a', 'y'.repeat(1_000_000)), failed('ECONNRESET'));
    assert.equal((await send('PUT', '/b', 'abc')).status, 200);
    assert.deepEqual(seen, ['PUT /b 3']);
  });
});
