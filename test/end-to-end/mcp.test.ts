/** `/mcp` as clients of both eras meet it, wrong ones above all. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NewKey, SignupAnswer, Usage } from '../../protocol/account.ts';
import { limits } from '../../protocol/limits.ts';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { McpCaller, type McpRequest, modernRequest } from '../support/mcp-calls.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const readTools = ['list_namespaces', 'search', 'count', 'get_document', 'sql_query', 'warm_namespace'];
const writeTools = [
  'create_namespace',
  'update_namespace',
  'delete_namespace',
  'write_documents',
  'delete_documents',
];

describe('/mcp', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let api: ApiClient;
  let mcp: McpCaller;

  before(async () => {
    server = await startServer({
      folder: temporaryFolder(),
      env: { TIDEBASE_COMMIT_MS: '5', TIDEBASE_METRICS_PORT: '0' },
    });
    const anyone = new ApiClient(server.url);
    const made = await anyone.call<SignupAnswer>('POST', '/v1/signup', {
      email: 'mcp@example.com',
      name: 'M',
      password: 'correct horse battery',
    });
    api = anyone.as(made.key);
    mcp = new McpCaller(server.url, made.key);
    await api.call('POST', '/v1/namespaces/notes/docs', { docs: [{ id: 'a', text: 'low tide\nat dusk' }] });
    await api.call('POST', '/v1/namespaces/other/docs', { docs: [{ id: 'b', text: 'high tide' }] });
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  async function keyOf(request: object): Promise<string> {
    return (await api.call<NewKey>('POST', '/v1/keys', request)).key;
  }

  async function toolsSeen(caller: McpCaller, query = ''): Promise<string[]> {
    const { body } = await caller.send({ query, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } });
    return body.result.tools.map(({ name }: { name: string }) => name);
  }

  describe('of the legacy era', () => {
    it('answers the version that is asked for, or the newest of the era', async () => {
      for (const [asked, answered] of [
        ['2025-11-25', '2025-11-25'],
        ['2025-06-18', '2025-06-18'],
        ['2025-03-26', '2025-03-26'],
        ['2024-11-05', '2025-11-25'],
        ['2026-07-28', '2025-11-25'],
      ]) {
        const params = { protocolVersion: asked, capabilities: {}, clientInfo: { name: 't', version: '1' } };
        const { body, headers } = await mcp.send({
          body: { jsonrpc: '2.0', id: 1, method: 'initialize', params },
        });
        assert.equal(body.result.protocolVersion, answered);
        assert.equal(headers['mcp-session-id'], undefined);
        assert.match(body.result.instructions, /list_namespaces/);
      }
    });

    it('takes requests without a version header, whatever they accept, and ids as they are written', async () => {
      for (const headers of [
        {},
        { accept: '*/*' },
        { accept: 'application/json' },
        { 'mcp-session-id': 'x' },
        { 'last-event-id': '7' },
      ]) {
        const { status, text } = await mcp.send({
          headers: headers as Record<string, string>,
          body: '{"jsonrpc":"2.0","id":435090932899640449,"method":"ping"}',
        });
        assert.deepEqual([status, text], [200, '{"jsonrpc":"2.0","id":435090932899640449,"result":{}}']);
      }
    });

    it('answers notifications with 202 and nothing', async () => {
      for (const method of ['notifications/initialized', 'notifications/cancelled', 'whatever']) {
        const { status, text } = await mcp.send({ body: { jsonrpc: '2.0', method } });
        assert.deepEqual([status, text], [202, '']);
      }
    });

    it('does the messages of a batch one after the other', async () => {
      const call = { name: 'count', arguments: { namespace: 'notes' } };
      const { body, status } = await mcp.send({
        body: [
          { jsonrpc: '2.0', id: 1, method: 'ping' },
          { jsonrpc: '2.0', method: 'notifications/initialized' },
          { jsonrpc: '2.0', id: 2, method: 'tools/call', params: call },
          { jsonrpc: '2.0', id: 3, method: 'nothing' },
          { jsonrpc: '1.0', id: 4, method: 'ping' },
        ],
      });

      assert.equal(status, 200);
      assert.deepEqual(
        body.map(({ id, error, result }: { id: unknown; error?: { code: number }; result?: object }) => [
          id,
          error?.code ?? Object.keys(result ?? {}).length,
        ]),
        [
          [1, 0],
          [2, 2],
          [3, -32601],
          [null, -32600],
        ],
      );
      const silent = await mcp.send({ body: [{ jsonrpc: '2.0', method: 'notifications/initialized' }] });
      assert.deepEqual([silent.status, silent.text], [202, '']);
    });

    it('does no more of a batch whose client has gone, and nothing of it stays in flight', async () => {
      await api.call('POST', '/v1/namespaces/slow/docs', {
        docs: [{ id: 'a', text: `abc ${'ab'.repeat(500_000)}` }],
      });
      const sumOf = async (pattern: RegExp) => {
        const metrics = await (await fetch(metricsUrlOf(server.output))).text();
        return [...metrics.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);
      };
      const counted = () => sumOf(/^tidebase_mcp_messages_total\{name="count",.*\} (\d+)$/gm);
      const before = await counted();
      const call = { name: 'count', arguments: { namespace: 'slow', query: 'a[ab]{900}c', regex: true } };
      const calls = 40;
      const body = JSON.stringify(
        Array.from({ length: calls }, (_, id) => ({
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: call,
        })),
      );
      const connection = await connectRaw(server.port);
      connection.send(
        `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${api.key}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      const inFlight = () => sumOf(/^tidebase_requests_in_flight (\d+)$/gm);
      await eventually(async () => (await inFlight()) > 0, 'the calls are begun');
      await sleep(200);
      connection.destroy();

      await eventually(async () => (await inFlight()) === 0, 'nothing is in flight any more');
      const done = (await counted()) - before;
      assert.ok(done > 0 && done < calls / 2, `${done} of ${calls} calls were begun`);
    });
  });

  describe('of the modern era', () => {
    it('tells its versions, and that what it tells is the caller’s own', async () => {
      const { status, body } = await mcp.send(modernRequest('server/discover'));

      assert.equal(status, 200);
      assert.deepEqual(body.result.supportedVersions, ['2026-07-28']);
      assert.deepEqual([body.result.resultType, body.result.cacheScope], ['complete', 'private']);
      assert.ok(body.result.ttlMs >= 0);
      assert.deepEqual(body.result.capabilities, { tools: {} }, 'no changes are told of');
      assert.equal(body.result._meta['io.modelcontextprotocol/serverInfo'].name, 'tidebase');
    });

    it('lists and calls tools', async () => {
      const listed = await mcp.send(modernRequest('tools/list', { cursor: '' }));
      const called = await mcp.send(
        modernRequest('tools/call', { name: 'search', arguments: { namespace: 'notes', query: 'tide' } }),
      );

      assert.deepEqual(
        listed.body.result.tools.map(({ name }: { name: string }) => name).toSorted(),
        [...readTools, ...writeTools].toSorted(),
      );
      assert.deepEqual(
        [listed.body.result.resultType, listed.body.result.cacheScope],
        ['complete', 'private'],
      );
      assert.equal(called.body.result.resultType, 'complete');
      assert.deepEqual(called.body.result.structuredContent.hits[0].after, ['at dusk']);
    });

    it('answers a notification with 202, whatever its headers say', async () => {
      const { body } = modernRequest('notifications/cancelled');
      const { id: _id, ...notification } = body as { readonly id: number };
      for (const headers of [{}, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'x' }])
        assert.deepEqual(
          await mcp
            .send({ headers: headers as Record<string, string>, body: notification })
            .then(({ status, text }) => [status, text]),
          [202, ''],
        );
    });

    it('is told apart in what it answers: older clients get none of it', async () => {
      const ask = { name: 'count', arguments: { namespace: 'notes' } };
      const older = async (method: string, params?: object) =>
        (await mcp.send({ body: { jsonrpc: '2.0', id: 1, method, params } })).body.result;
      for (const result of [
        await older('tools/list'),
        await older('tools/call', ask),
        await older('initialize', {}),
      ])
        for (const name of ['resultType', 'ttlMs', 'cacheScope', '_meta']) assert.ok(!(name in result), name);
    });

    it('reads a name in base64', async () => {
      const encoded = `=?base64?${Buffer.from('count').toString('base64')}?=`;
      const params = { name: 'count', arguments: { namespace: 'notes' } };
      const answer = await mcp.send(
        modernRequest('tools/call', params, { headers: { 'mcp-name': ` ${encoded} ` } }),
      );

      assert.equal(answer.body.result.structuredContent.count, 1);
    });
  });

  describe('refuses', () => {
    const call = { name: 'count', arguments: { namespace: 'notes' } };
    const version = 'io.modelcontextprotocol/protocolVersion';
    const capabilities = 'io.modelcontextprotocol/clientCapabilities';
    const legacyCall = (id: unknown, method: string, params?: object) => ({
      jsonrpc: '2.0',
      id,
      method,
      params,
    });
    const wrong: readonly (readonly [what: string, request: McpRequest, status: number, code: number])[] = [
      ['GET', { method: 'GET' }, 405, -32600],
      ['GET for a stream', { method: 'GET', headers: { accept: 'text/event-stream' } }, 405, -32600],
      ['DELETE', { method: 'DELETE' }, 405, -32600],
      [
        'a foreign origin',
        { headers: { origin: 'https://evil.example' }, body: legacyCall(1, 'ping') },
        403,
        -32600,
      ],
      ['an origin that hides', { headers: { origin: 'null' }, body: legacyCall(1, 'ping') }, 403, -32600],
      [
        'a name that somebody else gave this address',
        { headers: { host: 'evil.example', origin: 'http://evil.example' }, body: legacyCall(1, 'ping') },
        403,
        -32600,
      ],
      ['an empty body', {}, 400, -32700],
      ['what is not JSON', { body: '{"jsonrpc":' }, 400, -32700],
      ['what is not UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }, 400, -32700],
      ['a packed body', { headers: { 'content-encoding': 'gzip' }, body: '{}' }, 415, -32600],
      ['a body of 5 MB', { body: `{"a":"${'x'.repeat(5_000_000)}"}` }, 413, -32600],
      ['deep JSON', { body: `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}` }, 400, -32600],
      ['too many values', { body: `{"a":[${'1,'.repeat(60_000)}1]}` }, 400, -32600],
      ['what is no message', { body: '5' }, 400, -32600],
      ['an empty batch', { body: [] }, 400, -32600],
      ['a batch that is too long', { body: Array(101).fill(legacyCall(1, 'ping')) }, 400, -32600],
      ['another JSON-RPC', { body: { jsonrpc: '1.0', id: 1, method: 'ping' } }, 400, -32600],
      ['a null id', { body: legacyCall(null, 'ping') }, 400, -32600],
      ['an id that is an object', { body: legacyCall({}, 'ping') }, 400, -32600],
      ['a response', { body: { jsonrpc: '2.0', id: 1, result: {} } }, 400, -32600],
      [
        'params that are a list',
        { body: { jsonrpc: '2.0', id: 1, method: 'ping', params: [] } },
        400,
        -32600,
      ],
      ['an unknown method', { body: legacyCall(1, 'resources/list') }, 200, -32601],
      ['an unknown tool', { body: legacyCall(1, 'tools/call', { name: 'grep' }) }, 200, -32602],
      ['a tool without a name', { body: legacyCall(1, 'tools/call', {}) }, 200, -32602],
      [
        'arguments that are a list',
        { body: legacyCall(1, 'tools/call', { ...call, arguments: [] }) },
        200,
        -32602,
      ],
      ['a cursor that is not ours', { body: legacyCall(1, 'tools/list', { cursor: 'x' }) }, 200, -32602],
      [
        'a version that nobody speaks',
        { headers: { 'mcp-protocol-version': '2024-01-01' }, body: legacyCall(1, 'ping') },
        400,
        -32022,
      ],
      [
        'batches of who has a newer version',
        { headers: { 'mcp-protocol-version': '2025-06-18' }, body: [legacyCall(1, 'ping')] },
        400,
        -32600,
      ],
      ['a modern message in a batch', { body: [modernRequest('tools/list').body] }, 400, -32600],
      [
        'initialize under a modern header',
        { headers: { 'mcp-protocol-version': '2026-07-28' }, body: legacyCall(1, 'initialize', {}) },
        400,
        -32020,
      ],
      [
        'a wrong parameter of the address',
        { query: '?readonly=1', body: legacyCall(1, 'ping') },
        400,
        -32600,
      ],
      ['a wrong pattern', { query: '?namespaces=A', body: legacyCall(1, 'ping') }, 400, -32600],

      ['discovery without _meta', { body: legacyCall(1, 'server/discover', {}) }, 400, -32602],
      [
        'a modern header without _meta',
        {
          headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
          body: legacyCall(1, 'tools/list'),
        },
        400,
        -32602,
      ],
      [
        '_meta without capabilities',
        modernRequest('tools/list', {}, { meta: { [capabilities]: undefined } }),
        400,
        -32602,
      ],
      [
        'capabilities that are a list',
        modernRequest('tools/list', {}, { meta: { [capabilities]: [] } }),
        400,
        -32602,
      ],
      ['_meta without a version', modernRequest('tools/list', {}, { meta: { [version]: 5 } }), 400, -32602],
      [
        'another version in the header',
        modernRequest('tools/list', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } }),
        400,
        -32020,
      ],
      [
        'no version header',
        modernRequest('tools/list', {}, { headers: { 'mcp-protocol-version': null } }),
        400,
        -32020,
      ],
      ['no method header', modernRequest('tools/list', {}, { headers: { 'mcp-method': null } }), 400, -32020],
      [
        'another method header',
        modernRequest('tools/list', {}, { headers: { 'mcp-method': 'ping' } }),
        400,
        -32020,
      ],
      [
        'a method header in capitals',
        modernRequest('tools/list', {}, { headers: { 'mcp-method': 'TOOLS/LIST' } }),
        400,
        -32020,
      ],
      ['no name header', modernRequest('tools/call', call, { headers: { 'mcp-name': null } }), 400, -32020],
      [
        'another name header',
        modernRequest('tools/call', call, { headers: { 'mcp-name': 'search' } }),
        400,
        -32020,
      ],
      [
        'a name header of wrong base64',
        modernRequest('tools/call', call, { headers: { 'mcp-name': '=?base64?&?=' } }),
        400,
        -32020,
      ],
      [
        'a version to come',
        modernRequest(
          'tools/list',
          {},
          {
            meta: { [version]: '2099-01-01' },
            headers: { 'mcp-protocol-version': '2099-01-01' },
          },
        ),
        400,
        -32022,
      ],
      ['an unknown method of today', modernRequest('resources/list'), 404, -32601],
      ['what the era has no more', modernRequest('initialize'), 404, -32601],
      ['ping of today', modernRequest('ping'), 404, -32601],
      ['an unknown tool of today', modernRequest('tools/call', { name: 'grep' }), 200, -32602],
    ];

    for (const [what, request, status, code] of wrong) {
      it(what, async () => {
        const answer = await mcp.send(request);

        assert.deepEqual([answer.status, answer.body.error?.code], [status, code], answer.text);
        assert.equal(answer.body.jsonrpc, '2.0');
        assert.match(answer.body.error.message, /^\S.*[^.]$/);
        if (status === 405) assert.equal(answer.headers.allow, 'POST');
        if (code === -32022) assert.ok(answer.body.error.data.supported.includes('2026-07-28'));
      });
    }

    it('who has no credential, with the way to one', async () => {
      const body = legacyCall(1, 'tools/list');
      const none = await mcp.as(null).send({ body });
      const wrongOne = await mcp.as('tb_wrong').send({ body });
      const token = await mcp.as('tbo_wrong').send({ body });

      for (const [answer, error] of [
        [none, false],
        [wrongOne, true],
        [token, true],
      ] as const) {
        assert.equal(answer.status, 401);
        assert.equal(answer.body.error.data.code, 'unauthorized');
        const challenge = String(answer.headers['www-authenticate']);
        assert.match(challenge, /resource_metadata="[^"]+\/\.well-known\/oauth-protected-resource\/mcp"/);
        assert.match(challenge, /scope="read write"/);
        assert.equal(challenge.includes('error="invalid_token"'), error);
      }
    });
  });

  describe('a credential', () => {
    it('that reads sees and may call the tools that read', async () => {
      const reader = mcp.as(await keyOf({ name: 'r', scope: 'read' }));
      const write = await reader.call('write_documents', {
        namespace: 'notes',
        docs: [{ id: 'x', text: 'x' }],
      });

      assert.deepEqual((await toolsSeen(reader)).toSorted(), readTools.toSorted());
      assert.deepEqual([write.isError, JSON.parse(write.structured).code], [true, 'forbidden']);
      assert.equal((await reader.call('count', { namespace: 'notes' })).isError, false);
    });

    it('is narrowed by the address to reading, and never widened', async () => {
      const reader = mcp.as(await keyOf({ name: 'r', scope: 'read' }));
      const refused = await mcp.call('delete_namespace', { name: 'notes' }, '?read_only=1');

      assert.deepEqual((await toolsSeen(mcp, '?read_only=1')).toSorted(), readTools.toSorted());
      assert.equal((await toolsSeen(mcp, '?read_only=0')).length, readTools.length + writeTools.length);
      assert.equal((await toolsSeen(reader, '?read_only=0')).length, readTools.length);
      assert.equal(JSON.parse(refused.structured).code, 'forbidden');
    });

    it('has its namespaces, and no others by the address', async () => {
      const limited = mcp.as(await keyOf({ name: 'l', scope: 'write', namespaces: ['no*'] }));
      const seen = async (caller: McpCaller, query: string) => {
        const { structured } = await caller.call('list_namespaces', {}, query);
        return JSON.parse(structured).namespaces.map(({ name }: { name: string }) => name);
      };
      const codeOf = async (caller: McpCaller, namespace: string, query: string) =>
        JSON.parse((await caller.call('count', { namespace }, query)).structured).code;

      assert.deepEqual(await seen(mcp, '?namespaces=oth*'), ['other']);
      assert.deepEqual(await seen(mcp, '?namespaces=oth*,notes'), ['notes', 'other']);
      assert.deepEqual(await seen(limited, ''), ['notes']);
      assert.deepEqual(await seen(limited, '?namespaces=n*,other'), ['notes']);
      assert.deepEqual(await seen(limited, '?namespaces=other'), []);
      assert.equal(await codeOf(mcp, 'notes', '?namespaces=oth*'), 'forbidden');
      assert.equal(await codeOf(limited, 'other', '?namespaces=*'), 'forbidden');
      assert.equal(await codeOf(limited, 'notes', '?namespaces=no*'), undefined);
    });

    it('that is revoked ends at once', async () => {
      const made = await api.call<NewKey>('POST', '/v1/keys', { name: 'gone', scope: 'read' });
      const caller = mcp.as(made.key);
      assert.equal((await caller.call('count', { namespace: 'notes' })).isError, false);

      await api.call('DELETE', `/v1/keys/${made.id}`);

      assert.equal(
        (await caller.send({ body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } })).status,
        401,
      );
    });

    it('has the rate of its key, told to the model by the result of its call', async () => {
      const caller = mcp.as(await keyOf({ name: 'slow', scope: 'read', rate_per_s: 2 }));
      const answers = [];
      for (let i = 0; i < 6; i++) answers.push(await caller.call('count', { namespace: 'notes' }));

      assert.ok(answers.every(({ status }) => status === 200));
      assert.equal(answers[0]?.headers['ratelimit-limit'], '2');
      assert.equal(answers[0]?.headers['ratelimit-remaining'], '1', 'a call counts once');
      const refused = answers.find(({ isError }) => isError);
      assert.equal(JSON.parse(refused?.structured ?? '{}').code, 'rate_limited');
      assert.equal(JSON.parse(refused?.structured ?? '{}').retry_after, 1);
      assert.equal(refused?.headers['retry-after'], '1');
    });

    it('has the caps of its key', async () => {
      const caller = mcp.as(await keyOf({ name: 'capped', scope: 'write', cap_queries: 1 }));

      const first = await caller.call('count', { namespace: 'notes' });
      const second = await caller.call('count', { namespace: 'notes' });

      assert.deepEqual([first.isError, JSON.parse(second.structured).code], [false, 'rate_limited']);
    });
  });

  describe('a tool', () => {
    const refusedFields = async (name: string, args: object | string) => {
      const answer = await mcp.call(name, args);
      assert.equal(answer.isError, true, answer.text);
      assert.equal(answer.status, 200);
      return JSON.parse(answer.structured);
    };

    it('names its own arguments where they are wrong', async () => {
      const q = await refusedFields('search', { namespace: 'notes', query: '(', regex: true });
      const limit = await refusedFields('search', { namespace: 'notes', limit: 5_000 });
      const dims = await refusedFields('create_namespace', { name: 'm', metric: 'cosine' });
      const provider = await refusedFields('create_namespace', { name: 'm', embed_model: 'x' });

      assert.deepEqual(Object.keys(q.fields), ['query']);
      assert.match(q.error, /^query: /);
      assert.deepEqual(limit.fields, { limit: 'must be an integer from 1 to 1000' });
      assert.deepEqual(Object.keys(dims.fields), ['dims']);
      assert.deepEqual(Object.keys(provider.fields), ['embed_provider']);
    });

    it('refuses arguments that it does not have, missing ones and budgets out of range', async () => {
      const unknown = await refusedFields('search', { namespace: 'notes', q: 'tide' });
      const missing = await refusedFields('get_document', { id: 'a' });
      const notText = await refusedFields('count', { namespace: 5 });
      const noSuch = await refusedFields('count', { namespace: 'missing' });
      const badName = await refusedFields('count', { namespace: 'A' });
      const budget = await refusedFields('search', {
        namespace: 'notes',
        max_bytes: limits.toolAnswerBytesMax + 1,
      });
      const small = await refusedFields('search', { namespace: 'notes', max_bytes: 10 });

      assert.deepEqual(Object.keys(unknown.fields), ['q']);
      assert.match(unknown.error, /which has namespace, query/);
      assert.deepEqual(missing.fields, { namespace: 'is required' });
      assert.deepEqual(notText.fields, { namespace: 'must be a string' });
      assert.equal(noSuch.code, 'not_found');
      assert.deepEqual(Object.keys(badName.fields), ['namespace']);
      assert.match(budget.fields.max_bytes, /from 1024 to 1048576/);
      assert.match(small.fields.max_bytes, /at least 1024/);
    });

    it('takes null for what is left out, and an empty list of arguments', async () => {
      const nulls = await mcp.call('search', {
        namespace: 'notes',
        query: 'tide',
        filter: null,
        limit: null,
      });
      const none = await mcp.call('list_namespaces', 'null');

      assert.deepEqual([nulls.isError, none.isError], [false, false]);
    });

    it('reads ids with any characters', async () => {
      const id = 'a/../b c?d=é&%20#\u{1f30a}';
      await mcp.call('write_documents', { namespace: 'notes', docs: [{ id, text: 'odd' }] });

      const { structured } = await mcp.call('get_document', { namespace: 'notes', id });

      assert.equal(JSON.parse(structured).id, id);
      await mcp.call('delete_documents', { namespace: 'notes', ids: [id] });
    });

    it('stops embedding where no provider is named', async () => {
      await mcp.call('create_namespace', { name: 'meant', embed_provider: 'service' });

      const stopped = await mcp.call('update_namespace', { name: 'meant', embed_provider: '' });

      assert.deepEqual([stopped.isError, JSON.parse(stopped.structured).embed], [false, undefined]);
    });

    it('answers no more than its budget, and says how to go on', async () => {
      const docs = Array.from({ length: 400 }, (_, i) => ({
        id: `d${i}`,
        text: `${'line\n'.repeat(20)}the word ${'x'.repeat(300)}\n${'line\n'.repeat(20)}`,
        meta: { i, label: 'y'.repeat(200) },
      }));
      docs.push({ id: 'long', text: 'a line of a long text\n'.repeat(5_000), meta: { i: 400, label: '' } });
      await mcp.call('write_documents', { namespace: 'many', docs });

      const found = await mcp.call('search', { namespace: 'many', query: 'word', limit: 1_000 });
      const read = await mcp.call('get_document', { namespace: 'many', id: 'long' });
      const rows = await mcp.call('sql_query', { namespace: 'many', sql: 'SELECT i, label FROM docs' });

      for (const { structured } of [found, read, rows]) {
        assert.ok(structured.length <= 32 * 1024, `${structured.length} bytes`);
        assert.ok(structured.length > 30 * 1024, `${structured.length} bytes`);
        assert.equal(JSON.parse(structured).truncated, true);
      }
      const { next, hits } = JSON.parse(found.structured);
      const more = await mcp.call('search', { namespace: 'many', query: 'word', limit: 1_000, cursor: next });
      assert.ok(!hits.some(({ id }: { id: string }) => id === JSON.parse(more.structured).hits[0].id));
      assert.match(JSON.parse(read.structured).lines, /^1-\d+$/);
      const last = Number(JSON.parse(read.structured).lines.slice(2));
      const rest = await mcp.call('get_document', { namespace: 'many', id: 'long', lines: `${last + 1}-` });
      assert.equal(JSON.parse(rest.structured).lines.split('-')[0], String(last + 1));
      const second = await mcp.call('sql_query', {
        namespace: 'many',
        sql: 'SELECT i, label FROM docs',
        cursor: JSON.parse(rows.structured).next,
      });
      assert.ok(JSON.parse(second.structured).rows.length > 0);
    });
  });

  it('is metered as queries and writes of MCP, by day too, audited and counted by tool', async () => {
    // A tenant of its own: what others wrote may be told of later.
    const owner = api.as((await api.as(null).signup('metered@example.com')).key);
    const ours = mcp.as(owner.key);
    await ours.call('write_documents', { namespace: 'gone', docs: [{ id: 'a', text: 'x' }] });
    await ours.call('count', { namespace: 'gone' });
    await ours.call('search', { namespace: 'gone', query: '(', regex: true });
    await ours.call('delete_namespace', { name: 'gone' });
    const usage = () => owner.call<Usage>('GET', '/v1/usage?days=true');
    await eventually(async () => (await usage()).mcp_writes > 0, 'the write is metered');
    const { mcp_queries, mcp_writes, days = [] } = await usage();

    assert.deepEqual([mcp_queries, mcp_writes], [1, 1]);
    assert.equal(
      days.reduce((sum, day) => sum + day.mcp_queries, 0),
      mcp_queries,
    );
    const metrics = await (await fetch(metricsUrlOf(server.output))).text();
    assert.match(metrics, /tidebase_mcp_messages_total\{name="delete_namespace",outcome="done"\} 1\n/);
    assert.match(metrics, /tidebase_requests_total\{operation="deleteNamespace",status="2xx"\} 1\n/);
    const logged = /"event":"namespace.deleted","outcome":"done"[^\n]*"target":"gone"/;
    await server.until(() => logged.test(server.errors), 'logs the deletion');
  });
});

function metricsUrlOf(output: string): string {
  return `${/^tidebase tells metrics on (\S+)$/m.exec(output)?.[1] ?? ''}/metrics`;
}
