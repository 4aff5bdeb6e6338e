/**
 * Each tool answers the bytes of its REST request: the same call twice, once each way. Times are left out; writes go to twins, whose
 * names have one length. Integers have 64 bits, in arguments, filters, documents and SQL.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SignupAnswer } from '../../protocol/account.ts';
import { tools } from '../../protocol/mcp-tools.ts';
import { ApiClient } from '../support/api-client.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const big = '435090932899640449';
const least = '-9223372036854775808';

interface Twin {
  readonly tool: string;
  /** JSON, `NAME` for the namespace. */
  readonly args: string;
  readonly rest: readonly [method: string, path: string, body?: string];
  /** What must be in the answer. */
  readonly has?: string;
}

const docs =
  `[{"id":"a\\u00e9/ü","text":"low \\"tide\\"\\nat dusk\\\\","meta":{"n":${big},"least":${least},"f":1.50,"e":1e3}},` +
  `{"id":"b","text":"high tide","meta":{"n":${big}},"vector_b64":"AACAPwAAAAA="}]`;
const context = '"context":1,"max_bytes":8000';

const twins: readonly Twin[] = [
  {
    tool: 'create_namespace',
    args: '{"name":"NAME","dims":2,"metric":"euclidean"}',
    rest: ['POST', '', '{"name":"NAME","vector":{"dims":2,"metric":"euclidean"}}'],
  },
  {
    tool: 'write_documents',
    args: `{"namespace":"NAME","docs":${docs},"deletes":["x"],"wait":true}`,
    rest: ['POST', '/NAME/docs', `{"docs":${docs},"deletes":["x"],"wait":true}`],
    has: '"written":2',
  },
  {
    tool: 'list_namespaces',
    args: '{"limit":1,"after":"AFTER"}',
    rest: ['GET', '?limit=1&after=AFTER'],
    has: '"namespaces":[{',
  },
  {
    tool: 'search',
    args: `{"namespace":"NAME","query":"tide","filter":{"n":${big}},${context},"include":["text","vector","matches"]}`,
    rest: [
      'POST',
      '/NAME/search',
      `{"q":"tide","filter":{"n":${big}},${context},"include":["text","vector","matches"]}`,
    ],
    has: `"n":${big},"least":${least},"f":1.50,"e":1e3`,
  },
  {
    tool: 'search',
    args: `{"namespace":"NAME","vector_b64":"AACAPwAAAAA=",${context}}`,
    rest: ['POST', '/NAME/search', `{"vector":[1,0],${context}}`],
    has: '"distance":0',
  },
  {
    tool: 'count',
    args: `{"namespace":"NAME","regex":true,"query":"t[i]de","filter":{"n":{"in":[${big},1]}},"max_bytes":2000}`,
    rest: [
      'POST',
      '/NAME/count',
      `{"q":"t[i]de","regex":true,"filter":{"n":{"in":[${big},1]}},"max_bytes":2000}`,
    ],
    has: '"count":2',
  },
  {
    tool: 'get_document',
    args: '{"namespace":"NAME","id":"aé/ü","lines":"2","max_bytes":3000}',
    rest: ['GET', '/NAME/docs/a%C3%A9/%C3%BC?lines=2&max_bytes=3000'],
    has: `"text":"at dusk\\\\","lines":"2-2","total_lines":2,"meta":{"n":${big},"least":${least},"f":1.50,"e":1e3}`,
  },
  {
    tool: 'get_document',
    args: '{"namespace":"NAME","id":"b","consistency":"eventual","max_bytes":3000}',
    rest: ['GET', '/NAME/docs/b?consistency=strong&max_bytes=3000'],
    has: '"vector":[1,0]',
  },
  {
    tool: 'sql_query',
    args: `{"namespace":"NAME","sql":"SELECT n, least FROM docs WHERE n = ${big} ORDER BY id","max_bytes":4000}`,
    rest: [
      'POST',
      '/NAME/sql',
      `{"sql":"SELECT n, least FROM docs WHERE n = ${big} ORDER BY id","max_bytes":4000}`,
    ],
    has: `[${big},${least}]`,
  },
  // A server that is alone answers both the same.
  {
    tool: 'search',
    args: `{"namespace":"NAME","query":"tide","consistency":"eventual",${context}}`,
    rest: ['POST', '/NAME/search', `{"q":"tide","consistency":"strong",${context}}`],
    has: '"hits":[{',
  },
  {
    tool: 'count',
    args: '{"namespace":"NAME","query":"tide","consistency":"eventual","max_bytes":2000}',
    rest: ['POST', '/NAME/count', '{"q":"tide","consistency":"strong","max_bytes":2000}'],
    has: '"count":2',
  },
  {
    tool: 'sql_query',
    args: '{"namespace":"NAME","sql":"SELECT COUNT(*) FROM docs","consistency":"eventual","max_bytes":4000}',
    rest: [
      'POST',
      '/NAME/sql',
      '{"sql":"SELECT COUNT(*) FROM docs","consistency":"strong","max_bytes":4000}',
    ],
    has: '"rows":[[',
  },
  {
    tool: 'warm_namespace',
    args: '{"namespace":"NAME","queries":["tide"]}',
    rest: ['POST', '/NAME/warm', '{"queries":["tide"]}'],
  },
  {
    tool: 'delete_documents',
    args: '{"namespace":"NAME","ids":["b","none"]}',
    rest: ['POST', '/NAME/delete', '{"ids":["b","none"]}'],
    has: '"deleted":1',
  },
  {
    tool: 'update_namespace',
    args: '{"name":"NAME"}',
    rest: ['PATCH', '/NAME', '{"embed":null}'],
  },
];

/** Without what differs between two moments, and the twins' names. */
function comparable(json: string, name: string): string {
  return json
    .replaceAll(name, 'NAME')
    .replace(/"(took_ms|cpu_ms)":[0-9.e+-]+/g, '"$1":0')
    .replace(/"(written_at|created_at)":"[^"]+"/g, '"$1":""');
}

describe('a tool answers the bytes of its REST request', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let key = '';
  let mcp: McpCaller;

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '5' } });
    const api = new ApiClient(server.url);
    const signup = { email: 'equal@example.com', name: 'E', password: 'correct horse battery' };
    ({ key } = await api.call<SignupAnswer>('POST', '/v1/signup', signup));
    api.close();
    mcp = new McpCaller(server.url, key);
  });

  after(() => server.stop());

  async function rest([method, path, body]: Twin['rest'], name: string): Promise<Response> {
    const filled = path.replace('NAME', name).replace('AFTER', beforeIt(name));
    return fetch(`${server.url}/v1/namespaces${filled}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: body.replace('NAME', name) }),
    });
  }

  /** A name that comes right before this one in the list. */
  const beforeIt = (name: string) => `${name.slice(0, -1)}-`;

  /** A list has what namespaces have reported, which is a moment later than what was written. */
  async function untilReported(name: string): Promise<void> {
    const deadline = performance.now() + 30_000;
    const listed = async () => (await rest(['GET', '?limit=1&after=AFTER'], name)).text();
    while (!(await listed()).includes('"docs_written":3,')) {
      assert.ok(performance.now() < deadline, await listed());
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  for (const { tool, args, rest: request, has } of twins) {
    it(`${tool} ${args.slice(0, 60)}`, async () => {
      if (tool === 'list_namespaces') await untilReported('twin-1');
      const asTool = await mcp.call(
        tool,
        args.replace('NAME', 'twin-1').replace('AFTER', beforeIt('twin-1')),
      );
      const asRest = await rest(request, 'twin-2');
      const text = await asRest.text();

      assert.ok(asRest.status < 300, text);
      assert.equal(asTool.isError, false, asTool.structured);
      if (tool === 'list_namespaces') {
        // Both list the one that comes first, the tool's.
        assert.equal(comparable(asTool.structured, 'twin-1'), comparable(text, 'twin-1'));
      } else assert.equal(comparable(asTool.structured, 'twin-1'), comparable(text, 'twin-2'));
      if (has !== undefined) assert.ok(asTool.structured.includes(has), asTool.structured);
    });
  }

  it('delete_namespace, whose request answers nothing', async () => {
    const asTool = await mcp.call('delete_namespace', { name: 'twin-1' });
    const asRest = await rest(['DELETE', '/NAME'], 'twin-2');

    assert.equal(asTool.structured, '{"deleted":true}');
    assert.deepEqual([asRest.status, await asRest.text()], [204, '']);
  });

  it('all of them were compared', () => {
    assert.deepEqual(new Set([...twins.map(({ tool }) => tool), 'delete_namespace']), new Set(tools.keys()));
  });
});
