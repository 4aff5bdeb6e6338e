import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CannotListen } from '../../../src/front/door.ts';
import { openMetrics } from '../../../src/front/metrics.ts';

const host = '127.0.0.1';

describe('metrics', () => {
  it('are told as text, on a port of their own', async () => {
    const metrics = await openMetrics({ host, port: 0 }, async () => 'up 1\n');
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

  it('say which setting to change where the port is taken', async () => {
    const first = await openMetrics({ host, port: 0 }, async () => '');
    const port = Number(new URL(first.url).port);

    await assert.rejects(
      openMetrics({ host, port }, async () => ''),
      (error) => error instanceof CannotListen && /TIDEBASE_METRICS_PORT/.test(error.message),
    );
    first.close();
  });
});
