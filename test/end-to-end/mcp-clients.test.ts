/**
 * The SDKs' own clients, of both generations and both eras, list all tools and call each of them. They hold every result against the
 * tool's output schema, so that a call that passes here is one whose schema is right.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { SignupAnswer } from '../../protocol/account.ts';
import { tools } from '../../protocol/mcp-tools.ts';
import { ApiClient } from '../support/api-client.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';
import { rightCalls } from '../support/tool-calls.ts';

interface CalledTool {
  readonly structuredContent?: unknown;
  readonly content?: unknown;
  readonly isError?: boolean | undefined;
}

interface AnyClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<CalledTool>;
  getServerVersion(): { readonly name: string } | undefined;
  getInstructions(): string | undefined;
  close(): Promise<void>;
}

const info = { name: 'test', version: '1' };
const requestInit = (key: string) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } });

async function connectV1(url: URL, key: string): Promise<AnyClient> {
  const client = new ClientV1(info);
  // Its own types disagree with each other under exactOptionalPropertyTypes.
  await client.connect(new HttpV1(url, requestInit(key)) as never);
  return client as unknown as AnyClient;
}

function connectV2(mode: 'legacy' | 'auto' | { pin: '2026-07-28' }) {
  return async (url: URL, key: string): Promise<AnyClient> => {
    const client = new ClientV2(info, { versionNegotiation: { mode } });
    await client.connect(new HttpV2(url, requestInit(key)) as never);
    return client as unknown as AnyClient;
  };
}

const clients = {
  'of version 1': connectV1,
  'of version 2 in the legacy era': connectV2('legacy'),
  'of version 2 that finds out': connectV2('auto'),
  'of version 2 in the modern era': connectV2({ pin: '2026-07-28' }),
};

describe('a client', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let key = '';

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '5' } });
    const api = new ApiClient(server.url);
    const signup = { email: 'clients@example.com', name: 'C', password: 'correct horse battery' };
    ({ key } = await api.call<SignupAnswer>('POST', '/v1/signup', signup));
    api.close();
  });

  after(async () => {
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  for (const [which, connect] of Object.entries(clients)) {
    it(`${which} lists all tools and calls each of them`, async () => {
      const client = await connect(new URL(`${server.url}/mcp`), key);

      const listed = await client.listTools();
      assert.deepEqual(
        listed.tools.map(({ name }) => name),
        [...tools.keys()],
      );
      assert.equal(client.getServerVersion()?.name, 'tidebase');
      assert.match(client.getInstructions() ?? '', /list_namespaces/);
      for (const [name, args] of rightCalls) {
        const answer = await client.callTool({ name, arguments: args });
        assert.ok(answer.isError !== true, `${name}: ${JSON.stringify(answer)}`);
        assert.ok(answer.structuredContent !== undefined, name);
      }
      assert.deepEqual(new Set(rightCalls.map(([name]) => name)), new Set(tools.keys()), 'all are called');
      await client.close();
    });

    it(`${which} is told of a refused call by its result, and of an unknown tool by an error`, async () => {
      const client = await connect(new URL(`${server.url}/mcp`), key);
      await client.listTools();

      const refused = await client.callTool({ name: 'count', arguments: { namespace: 'missing' } });

      assert.equal(refused.isError, true);
      assert.equal((refused.structuredContent as { code: string }).code, 'not_found');
      await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), /there is no tool/);
      await client.close();
    });
  }
});
