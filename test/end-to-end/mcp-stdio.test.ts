/** `tidebase mcp`: the same tools over standard input and output. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { SignupAnswer } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));

describe('tidebase mcp', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let key = '';

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '5' } });
    const api = new ApiClient(server.url);
    const signup = { email: 'stdio@example.com', name: 'S', password: 'correct horse battery' };
    ({ key } = await api.call<SignupAnswer>('POST', '/v1/signup', signup));
    // Meta that is written over several lines is answered as it came.
    const pretty = '{"docs":[{"id":"a","text":"low tide","meta":{\n  "n":\r\n 435090932899640449}}]}';
    await api.as(key).request('POST', '/v1/namespaces/notes/docs', { body: pretty });
    api.close();
  });

  after(async () => {
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  const program = (...args: string[]) => ({
    command: process.execPath,
    args: [main, 'mcp', '--url', server.url, ...args],
    env: { TIDEBASE_API_KEY: key, PATH: process.env.PATH ?? '' },
    stderr: 'inherit' as const,
  });

  function lines(input: string, env: Record<string, string> = { TIDEBASE_API_KEY: key }): string[] {
    const { stdout, status } = spawnSync(process.execPath, [main, 'mcp', '--url', server.url], {
      input,
      env,
      encoding: 'utf8',
    });
    assert.equal(status, 0);
    return stdout.split('\n').filter((line) => line !== '');
  }

  const request = (id: number, method: string, params: object = {}) =>
    `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
  const search = { name: 'search', arguments: { namespace: 'notes', query: 'tide' } };

  it('serves the clients of both generations', async () => {
    const v1 = new ClientV1({ name: 't', version: '1' });
    await v1.connect(new StdioV1(program()) as never);
    const v2 = new ClientV2(
      { name: 't', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    await v2.connect(new StdioV2(program('--read-only')) as never);

    assert.equal((await v1.listTools()).tools.length, 11);
    assert.equal((await v2.listTools()).tools.length, 6);
    for (const client of [v1, v2]) {
      const { structuredContent } = (await client.callTool(search)) as {
        structuredContent: { hits: unknown[] };
      };
      assert.equal(structuredContent.hits.length, 1);
      await client.close();
    }
  });

  it('passes answers on as they are, one a line', () => {
    const answers = lines(
      `${request(1, 'tools/call', search)}${request(2, 'ping')}{"jsonrpc":"2.0","method":"x"}\n`,
    );

    assert.equal(answers.length, 2);
    assert.ok(
      answers.some((line) => line.includes('"structuredContent":{') && line.includes('435090932899640449')),
    );
    assert.ok(answers.includes('{"jsonrpc":"2.0","id":2,"result":{}}'));
  });

  it('answers with the id of the request what the server refuses unread, and what never reaches it', () => {
    const [refused = ''] = lines(request(7, 'ping'), { TIDEBASE_API_KEY: 'tb_wrong' });
    const { stdout } = spawnSync(process.execPath, [main, 'mcp', '--url', 'http://127.0.0.1:9'], {
      input: request(8, 'ping'),
      env: { TIDEBASE_API_KEY: key },
      encoding: 'utf8',
    });

    assert.equal(JSON.parse(refused).id, 7);
    assert.equal(JSON.parse(refused).error.data.code, 'unauthorized');
    assert.equal(JSON.parse(stdout).id, 8);
    assert.match(JSON.parse(stdout).error.message, /cannot be reached/);
  });

  it('says what is wrong with a line, and with its arguments', () => {
    const [broken = ''] = lines('{"jsonrpc"\n');
    const withoutKey = spawnSync(process.execPath, [main, 'mcp'], { env: {}, encoding: 'utf8' });

    assert.equal(JSON.parse(broken).error.code, -32700);
    assert.equal(withoutKey.status, 2);
    assert.match(withoutKey.stderr, /with which API key/);
  });
});
