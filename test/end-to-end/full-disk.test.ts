/** Disks that run full: small file systems in memory, which take root to mount. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { WriteResult } from '../../protocol/write.ts';
import { ApiClient, documentPath, type ErrorBody } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startServer, temporaryFolder } from '../support/server-process.ts';

const skip =
  process.getuid?.() === 0 && canMount() ? false : 'needs root, and a kernel that lets it mount tmpfs';

function mountSmall(t: TestContext, folder: string, megabytes: number): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]);
  t.after(() => execFileSync('umount', ['-l', folder]));
}

function canMount(): boolean {
  const folder = temporaryFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' });
    execFileSync('umount', [folder]);
    return true;
  } catch {
    return false;
  }
}

/** Takes all that is left but `leftBytes`. */
function fill(folder: string, leftBytes = 0): string {
  const { bavail, bsize } = statfsSync(folder);
  const path = join(folder, 'ballast');
  writeFileSync(path, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)));
  return path;
}

const textOf = (i: number) => `document ${i} ${'lorem ipsum '.repeat(4_000)}`;

describe('a full disk', { concurrency: 1, skip }, () => {
  it('under the cache costs the cache: everything is served from the store, and the log says so', async (t) => {
    const folder = temporaryFolder();
    mountSmall(t, join(folder, 'cache'), 8);
    let server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '10' } });
    let api = new ApiClient(server.url);
    const { key } = await api.signup('cache@example.com');
    // Full from here on: also where the free-space guard has not looked yet.
    fill(join(folder, 'cache'));
    for (let batch = 0; batch < 8; batch++) {
      const docs = Array.from({ length: 20 }, (_, i) => ({ id: `d${batch * 20 + i}`, text: textOf(i) }));
      await api.as(key).put('notes', docs);
    }
    assert.deepEqual(await server.stop(), { code: 0, signal: null });

    server = await startServer(server.options);
    api = new ApiClient(server.url, key);
    assert.equal((await api.count('notes', { q: 'document' })).count, 160);
    for (let i = 0; i < 160; i += 7) assert.equal((await api.get('notes', `d${i}`)).id, `d${i}`);
    const found = await api.search('notes', { q: 'document 3', limit: 100 });
    assert.equal(found.partial, false);
    assert.equal(found.hits.length, 8);
    const sentence = 'the warm cache grows no more: its disk is nearly full';
    await server.until(() => server.errors.includes(sentence), sentence);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  it('under the data refuses writes as a whole and serves reads; with room again it goes on', async (t) => {
    const folder = temporaryFolder();
    mountSmall(t, folder, 24);
    let server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '10' } });
    let api = new ApiClient(server.url);
    const { key } = await api.signup('disk@example.com');
    api = api.as(key);
    await api.put('notes', [{ id: 'before', text: 'written before' }]);
    const ballast = fill(folder);

    // In flight until there is room: a slot of the log keeps its bytes until it is known what became of them.
    const writes = Array.from({ length: 3 }, (_, i) =>
      api.request('POST', '/v1/namespaces/notes/docs', {
        body: { docs: [0, 1].map((n) => ({ id: `full ${i} ${n}`, text: textOf(i) })) },
      }),
    );
    assert.equal((await api.get('notes', 'before')).text, 'written before');
    const answers = await Promise.all(writes);
    const outcomes = answers.map((answer) =>
      answer.status < 300 ? 'ok' : (answer.json() as ErrorBody).code,
    );
    t.diagnostic(`on the full disk: ${outcomes.join(', ')}`);
    for (const outcome of outcomes) assert.ok(['write_unknown', 'unavailable'].includes(outcome), outcome);
    assert.equal((await api.get('notes', 'before')).text, 'written before');

    rmSync(ballast);
    const again = await untilWritten(api);
    assert.ok(again.version >= 2);
    for (const [i, outcome] of outcomes.entries()) {
      const there = await Promise.all(
        [0, 1].map(async (n) => (await api.request('GET', documentPath('notes', `full ${i} ${n}`))).status),
      );
      assert.equal(there[0], there[1], 'a request is there whole or not at all');
      if (outcome === 'unavailable') assert.deepEqual(there, [404, 404]);
    }
    await server.kill();
    server = await startServer(server.options);
    api = new ApiClient(server.url, key);
    assert.equal((await api.get('notes', 'before')).text, 'written before');
    assert.equal((await api.get('notes', 'again')).text, 'there is room');
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });
});

async function untilWritten(api: ApiClient): Promise<WriteResult> {
  let written: WriteResult | null = null;
  await eventually(async () => {
    const docs = [{ id: 'again', text: 'there is room' }];
    const answer = await api.request('POST', '/v1/namespaces/notes/docs', { body: { docs } });
    if (answer.status === 200) written = answer.json() as WriteResult;
    return written !== null;
  }, 'writes work again');
  return written ?? assert.fail('nothing was written');
}
