import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { runRequestLoop, type StreamResult } from '../../load-tests/request-loop.ts';

/** Answers each path first with 503, then not at all, then with success. */
function reluctantServer(): Server {
  const asked = new Map<string, number>();
  return createServer((request, response) => {
    const path = request.url ?? '';
    const times = (asked.get(path) ?? 0) + 1;
    asked.set(path, times);
    if (times === 2) request.socket.destroy();
    else response.writeHead(times === 1 ? 503 : 200).end(times === 1 ? '{"code":"unavailable"}' : '{}');
  });
}

describe('a request loop', () => {
  let server: Server;

  before(async () => {
    server = reluctantServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => server.close());

  async function loop(name: string, triesMax: number): Promise<StreamResult | undefined> {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const requests = [1, 2].map((n) => ({ client: 0, method: 'GET', path: `/${name}/${n}` }));
    const streams = [{ kind: 'read', ratePerSecond: 20, requests }];
    const [result] = await runRequestLoop({
      url,
      clients: [''],
      connections: 4,
      streams,
      seconds: 0.1,
      triesMax,
    });
    return result;
  }

  it('asks again after 503 and after no answer, and counts how often', async () => {
    const result = await loop('patient', 3);
    assert.deepEqual([result?.sent, result?.askedAgain, result?.failures], [2, 4, {}]);
    assert.ok(
      result?.latenciesMs.every((ms) => ms >= 200),
      'from the first time on',
    );
  });

  it('counts as failed what fails as often as it may be asked', async () => {
    const result = await loop('hasty', 1);
    assert.deepEqual([result?.askedAgain, result?.failures], [0, { '503 unavailable': 2 }]);
    const second = await loop('hasty', 1);
    assert.deepEqual(second?.failures, { 'no answer: ECONNRESET': 2 });
  });
});
