import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { readExposition, sampleValue } from '../support/exposition.ts';
import { promtool, promtoolMissing } from '../support/promtool.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** What a running server tells of itself: metrics, and a line a request at `debug`. */
describe('a server that is watched', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;
  let api: ApiClient;
  let tenantId: number;

  before(async () => {
    const env = { TIDEBASE_METRICS_PORT: '0', TIDEBASE_LOG_LEVEL: 'debug', TIDEBASE_COMMIT_MS: '20' };
    server = await startServer({ folder: temporaryFolder(), env });
    anyone = new ApiClient(server.url);
    const made = await anyone.signup('watched@example.com');
    api = anyone.as(made.key);
    tenantId = made.tenant_id;
  });
  after(() => anyone.close());

  const metrics = async () => {
    const [, url] = /^tidebase tells metrics on (\S+)$/m.exec(server.output) ?? [];
    const text = await (await fetch(`${url}/metrics`)).text();
    return { text, read: readExposition(text) };
  };
  /** The last may not have come as a whole. */
  const lines = () =>
    server.errors
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));

  it('tells all of its metrics in the format, before anything was asked of it', async () => {
    const { read } = await metrics();

    const names = [
      'tidebase_build_info',
      'tidebase_front_turn_delay_seconds',
      'tidebase_memory_limit_bytes',
      'tidebase_cache_bytes',
      'tidebase_requests_total',
      'tidebase_requests_refused_total',
      'tidebase_requests_in_flight',
      'tidebase_thread_up',
      'tidebase_thread_busy_seconds_total',
      'tidebase_open_namespaces',
      'tidebase_open_tenants',
      'tidebase_resident_bytes',
      'tidebase_blocks_read_total',
      'tidebase_vectors_indexed',
      'tidebase_log_records_total',
      'tidebase_log_groups_total',
      'tidebase_log_waiting_bytes',
      'tidebase_lane_waiting_tasks',
      'tidebase_store_puts_total',
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
    ];
    assert.deepEqual(
      names.filter((name) => !read.has(name)),
      [],
    );
  });

  it('counts what is asked, refused and written', async () => {
    const before = (await metrics()).read;
    await api.put('watched', [{ id: 'a', text: 'the tide' }]);
    for (let at = 0; at < 3; at++) await api.search('watched', { q: 'tide' });
    await anyone.refused({ status: 401, code: 'unauthorized' }, 'GET', '/v1/me');
    await api.refused({ status: 404, code: 'not_found' }, 'GET', '/v2/nothing');
    const twoHosts = await connectRaw(server.port);
    twoHosts.send('GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n');
    await twoHosts.waitForAnswers(1);
    twoHosts.destroy();

    const { read, text } = await metrics();

    const rise = (name: string, labels: Readonly<Record<string, string>> = {}) =>
      (sampleValue(read, name, labels) ?? 0) - (sampleValue(before, name, labels) ?? 0);
    assert.equal(rise('tidebase_requests_total', { operation: 'search', status: '2xx' }), 3);
    assert.equal(rise('tidebase_request_duration_seconds_count', { operation: 'search' }), 3);
    assert.equal(rise('tidebase_requests_total', { operation: 'me', status: '4xx' }), 1);
    assert.equal(rise('tidebase_requests_total', { operation: 'none', status: '4xx' }), 1);
    assert.equal(rise('tidebase_requests_refused_total', { reason: 'unauthorized' }), 1);
    assert.equal(rise('tidebase_door_answers_total', { status: '4xx' }), 1);
    assert.ok(rise('tidebase_request_body_bytes_total', { operation: 'putDocuments' }) > 0);
    assert.ok(rise('tidebase_response_body_bytes_total', { operation: 'search' }) > 100);
    assert.ok(rise('tidebase_log_records_total') >= 1);
    assert.ok(rise('tidebase_log_groups_total') >= 1);
    const open = read.get('tidebase_open_namespaces')?.samples.reduce((sum, { value }) => sum + value, 0);
    assert.equal(open, 1);
    assert.equal(sampleValue(read, 'tidebase_requests_in_flight'), 0);
    assert.ok(!text.includes(String(tenantId)) && !text.includes('watched'), 'labels are bounded');
  });

  it('has names and types that promtool finds nothing wrong with', { skip: promtoolMissing }, async () => {
    const { text } = await metrics();

    const told = promtool(['check', 'metrics'], text);
    const refused = promtool(['check', 'metrics'], '# TYPE seconds counter\nseconds 1\n');

    assert.deepEqual(told, { status: 0, said: '' });
    assert.notEqual(refused.status, 0);
  });

  it("tells where namespaces were found, and what the disk's cache holds", async () => {
    const before = (await metrics()).read;
    await api.search('watched', { q: 'tide' });

    const { read } = await metrics();

    const found = (families: typeof read) =>
      sampleValue(families, 'tidebase_namespaces_found_total', { temperature: 'warm' }) ?? 0;
    assert.equal(found(read) - found(before), 1);
    for (const { value } of read.get('tidebase_cache_up')?.samples ?? []) assert.equal(value, 1);
    assert.ok((sampleValue(read, 'tidebase_cache_limit_bytes') ?? 0) >= 64 * 2 ** 20);
    assert.ok((sampleValue(read, 'process_max_fds') ?? 0) >= (sampleValue(read, 'process_open_fds') ?? 1));
  });

  it('logs a line a request at debug, by id and operation, without what was asked', async () => {
    const answer = await api.request('POST', '/v1/namespaces/watched/search', { body: { q: 'sesame' } });
    const id = answer.headers['x-request-id'];
    const refused = await anyone.request('GET', '/v1/namespaces/other-name');

    const lineOf = (requestId: unknown) => lines().find((line) => line.requestId === requestId);
    await server.until(() => lineOf(refused.headers['x-request-id']) !== undefined, 'logging the request');
    const { level, thread, message, ms, time, ...fields } = lineOf(id);
    assert.deepEqual({ level, thread, message }, { level: 'debug', thread: 'front', message: 'answered' });
    assert.deepEqual(fields, { requestId: id, operation: 'search', status: 200, tenantId });
    assert.ok(ms > 0 && !Number.isNaN(Date.parse(time)));
    assert.equal(lineOf(refused.headers['x-request-id']).operation, 'getNamespace');
    for (const word of ['sesame', 'other-name', 'watched@']) assert.ok(!server.errors.includes(word), word);
  });

  it('ends in order', async () => {
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    for (const line of lines()) assert.ok(['info', 'debug'].includes(line.level));
  });
});
