/** The lines that people copy are right for their programs: keys and options that those document, and what a shell makes of them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { setUps } from '../../../../../src/front/console/browser/mcp-clients.ts';

const server = 'https://search.example.com/mcp';
const key = 'tb_0123456789abcdefghijklmnopqrstuvwxyzAB';
const authorization = `Bearer ${key}`;

function textOf(client: string, withKey: string | null): string {
  const found = setUps.find((each) => each.client === client)?.snippet(server, withKey);
  assert.ok(found !== undefined && found !== null, client);
  return found.text;
}

/** The words of each command, as bash splits them, and what `export` leaves. */
function commandsOf(text: string): readonly (readonly string[])[] {
  const program = `claude() { printf '%s\\0' claude "$@"; echo; }\ncodex() { printf '%s\\0' codex "$@"; echo; }\n${text}\n`;
  const { stdout, status, stderr } = spawnSync(
    'bash',
    ['-eu', '-c', `${program}printenv TIDEBASE_API_KEY || true`],
    {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    },
  );
  assert.equal(status, 0, stderr);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split('\0').filter((word) => word !== ''));
}

test('the clients that take both are set up with a login or with a key, and the key is in nothing else', () => {
  assert.deepEqual(
    setUps.map(({ client }) => client),
    ['Claude Code', 'Claude', 'ChatGPT', 'Cursor', 'VS Code', 'Codex'],
  );
  for (const { client, snippet } of setUps) {
    assert.ok(!snippet(server, null)?.text.includes('Bearer'), client);
    const withKey = snippet(server, key);
    // These two take no keys.
    assert.equal(withKey === null, client === 'Claude' || client === 'ChatGPT', client);
    assert.equal(withKey?.text.split(key).length ?? 2, 2, `${client}: the key stands in it once`);
  }
});

test('the files of Cursor and VS Code are JSON, with the members that they document', () => {
  assert.deepEqual(JSON.parse(textOf('Cursor', null)), { mcpServers: { tidebase: { url: server } } });
  assert.deepEqual(JSON.parse(textOf('Cursor', key)), {
    mcpServers: { tidebase: { url: server, headers: { Authorization: authorization } } },
  });
  assert.deepEqual(JSON.parse(textOf('VS Code', null)), {
    servers: { tidebase: { type: 'http', url: server } },
  });
  assert.deepEqual(JSON.parse(textOf('VS Code', key)), {
    servers: { tidebase: { type: 'http', url: server, headers: { Authorization: authorization } } },
  });
});

test('the commands of Claude Code and Codex reach them word by word', () => {
  const add = ['claude', 'mcp', 'add', '--transport', 'http', 'tidebase', server];
  assert.deepEqual(commandsOf(textOf('Claude Code', null)), [add]);
  assert.deepEqual(commandsOf(textOf('Claude Code', key)), [
    [...add, '--header', `Authorization: ${authorization}`],
  ]);
  const codex = ['codex', 'mcp', 'add', 'tidebase', '--url', server];
  assert.deepEqual(commandsOf(textOf('Codex', null)), [codex, ['codex', 'mcp', 'login', 'tidebase']]);
  assert.deepEqual(commandsOf(textOf('Codex', key)), [
    [...codex, '--bearer-token-env-var', 'TIDEBASE_API_KEY'],
    [key],
  ]);
});

test('Claude and ChatGPT are given the address alone', () => {
  for (const client of ['Claude', 'ChatGPT']) assert.equal(textOf(client, null), server);
});
