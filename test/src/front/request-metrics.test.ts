import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { operationNames } from '../../../protocol/operations.ts';
import { exposition } from '../../../src/base/exposition.ts';
import { RequestMetrics } from '../../../src/front/request-metrics.ts';
import { readExposition, sampleValue } from '../../support/exposition.ts';

const took = { seconds: 0.02, receivedBytes: 10, sentBytes: 100, isTenants: true };

describe('metrics of requests', () => {
  it('count by operation and class of status, with durations and bytes', () => {
    const metrics = new RequestMetrics(operationNames);
    metrics.answered({ ...took, operation: 'search', status: 200 });
    metrics.answered({ ...took, operation: 'search', status: 201, seconds: 0.001 });
    metrics.answered({ ...took, operation: 'search', status: 404, seconds: 31 });
    metrics.gone('search');
    metrics.answered({ ...took, operation: null, status: 404 });

    const read = readExposition(exposition(metrics.families()));

    const operation = 'search';
    const requests = (status: string) => sampleValue(read, 'tidebase_requests_total', { operation, status });
    const within = (le: string) =>
      sampleValue(read, 'tidebase_request_duration_seconds_bucket', { operation, le });
    assert.deepEqual([requests('2xx'), requests('4xx'), requests('5xx'), requests('gone')], [2, 1, 0, 1]);
    assert.deepEqual(
      [within('0.0005'), within('0.001'), within('0.025'), within('30'), within('+Inf')],
      [0, 1, 2, 2, 3],
    );
    assert.equal(sampleValue(read, 'tidebase_request_duration_seconds_sum', { operation }), 31.021);
    assert.equal(sampleValue(read, 'tidebase_request_body_bytes_total', { operation }), 30);
    assert.equal(sampleValue(read, 'tidebase_response_body_bytes_total', { operation }), 300);
    assert.equal(sampleValue(read, 'tidebase_requests_total', { operation: 'none', status: '4xx' }), 1);
  });

  it('count refusals by their reason', () => {
    const metrics = new RequestMetrics(operationNames);
    for (const status of [401, 402, 403, 429, 429, 404])
      metrics.answered({ ...took, operation: 'search', status });

    const read = readExposition(exposition(metrics.families()));

    const refused = (reason: string) => sampleValue(read, 'tidebase_requests_refused_total', { reason });
    assert.deepEqual(
      ['unauthorized', 'payment_required', 'forbidden', 'rate_limited', 'too_large'].map(refused),
      [1, 1, 1, 2, 0],
    );
  });

  it('have labels of bounded number, whatever is asked', () => {
    const metrics = new RequestMetrics(operationNames);
    const names = (families: ReturnType<RequestMetrics['families']>) =>
      families.reduce((sum, { samples }) => sum + samples.length, 0);
    for (const operation of [...operationNames, null])
      for (let status = 100; status < 600; status++) metrics.answered({ ...took, operation, status });

    assert.ok(names(metrics.families()) < 1_500, String(names(metrics.families())));
  });
});
