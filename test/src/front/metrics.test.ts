import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CannotListen } from '../../../src/front/door.ts';
import { openMetrics } from '../../../src/front/metrics.ts';

const host = '127.0.0.1';
const active = () => 'active' as const;

describe('metrics', () => {
  it('are told as text, on a port of their own', async () => {
    const metrics = await openMetrics({ host, port: 0 }, async () => 'up 1\n', active);
    const answer = await fetch(`${metrics.url}/metrics`);
    const text = await answer.text();
    const elsewhere = await fetch(`${metrics.url}/v1`);
    await elsewhere.text();
    metrics.close();

    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.equal(text, 'up 1\n');
    assert.equal(elsewhere.status, 404);
  });

  it('stand beside whether the server is ready, which it is while it is active', async () => {
    let state: 'joining' | 'active' | 'leaving' = 'joining';
    const metrics = await openMetrics(
      { host, port: 0 },
      async () => '',
      () => state,
    );
    const told: string[] = [];
    for (state of ['joining', 'active', 'leaving'] as const) {
      const answer = await fetch(`${metrics.url}/readyz`);
      told.push(`${answer.status} ${await answer.text()}`);
    }
    metrics.close();

    assert.deepEqual(told, ['503 joining\n', '200 active\n', '503 leaving\n']);
  });

  it('say which setting to change where the port is taken', async () => {
    const first = await openMetrics({ host, port: 0 }, async () => '', active);
    const port = Number(new URL(first.url).port);

    await assert.rejects(
      openMetrics({ host, port }, async () => '', active),
      (error) => error instanceof CannotListen && /TIDEBASE_METRICS_PORT/.test(error.message),
    );
    first.close();
  });
});
