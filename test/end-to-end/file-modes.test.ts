import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { anyVector, documentsWithGraph } from '../support/graph-vectors.ts';
import { filesBelow, sizeIfThere } from '../support/living-folder.ts';
import { connectRaw } from '../support/raw-http.ts';
import { startServer, temporaryFolder } from '../support/server-process.ts';

/** What others on the machine may do with, by the program that people would ask. Files that go meanwhile are no failure. */
function openToOthers(folder: string): string[] {
  return execFileSync('find', [folder, '-ignore_readdir_race', '-perm', '/077'], { encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '');
}

/** The graphs' files of the cache, larger than any block. */
const graphFiles = (folder: string) =>
  filesBelow(join(folder, 'cache')).filter(
    (path) => /files\/\d+$/.test(path) && sizeIfThere(path) > 1_000_000,
  );

/** Whatever the test process may give to others: the server must not rely on it. */
process.umask(0o022);

describe('the data folder', { concurrency: 1 }, () => {
  it('is closed to other users, whatever the server and its native code put into it', async () => {
    const folder = temporaryFolder();
    const env = { TIDEBASE_COMMIT_MS: '20', TIDEBASE_ACTOR_THREADS: '2' };
    const server = await startServer({ folder, env, command: 'serve' });
    const anyone = new ApiClient(server.url);
    const { key } = await anyone.signup('ada@example.com', 'Ada', 'correct horse');
    const api = anyone.as(key);
    await api.put('notes', [{ id: 'a', text: 'tide' }]);
    const csv = `k,text\n${Array.from({ length: 4_000 }, (_, i) => `${i},row ${i * i}\n`).join('')}`;
    await api.call('POST', '/v1/namespaces/rows/import?id=k&text=text', csv);
    await api.search('rows', { q: 'row 16' });
    for (const docs of documentsWithGraph('v')) await api.put('vectors', docs);
    // A file on its way in.
    const body = Buffer.from(`k,text\n${'1,word\n'.repeat(400_000)}`);
    const sender = await connectRaw(server.port);
    sender.send(
      `POST /v1/namespaces/coming/import?id=k HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
        `Content-Type: text/csv\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    sender.send(body.subarray(0, 2_500_000).toString());
    const isThere = (part: string) =>
      filesBelow(folder).some((path) => path.slice(folder.length).includes(part));
    await server.until(() => isThere('received-'), 'receives a file');
    // Asked for, one after another: a search that meets a segment without graphs has them built.
    let isAsking = false;
    const ask = async () => {
      isAsking = true;
      await api.search('vectors', { vector: anyVector, limit: 3 }).catch(() => {});
      isAsking = false;
    };
    await server.until(
      () => {
        if (!isAsking) void ask();
        return isThere('/graph/') && graphFiles(folder).length > 0;
      },
      'keeps a graph on the disk',
      60_000,
    );

    for (const part of [
      'outbox/',
      'audit/',
      'secrets/',
      'data.mdb',
      'objects/log',
      'cluster/view',
      'ends.json',
    ])
      assert.ok(isThere(part), `${part} is there to be looked at`);
    assert.deepEqual(openToOthers(folder), []);
    sender.socket.destroy();
    anyone.close();
    assert.equal((await server.stop()).code, 0);
    assert.deepEqual(openToOthers(folder), []);
  });

  it('is closed at the next start where an earlier release left it open', async () => {
    const folder = temporaryFolder();
    const first = await startServer({ folder });
    const anyone = new ApiClient(first.url);
    const { key } = await anyone.signup('ada@example.com', 'Ada', 'correct horse');
    await anyone.as(key).put('notes', [{ id: 'a', text: 'tide' }]);
    await first.stop();
    mkdirSync(join(folder, 'cache/scratch/deep'), { recursive: true });
    writeFileSync(join(folder, 'cache/scratch/deep/received-1'), 'text');
    execFileSync('chmod', ['-R', 'a+rX', folder]);
    assert.notDeepEqual(openToOthers(folder), []);

    const second = await startServer({ folder });
    assert.deepEqual(openToOthers(folder), []);
    assert.equal((await new ApiClient(second.url, key).get('notes', 'a')).text, 'tide');
    await second.stop();
  });
});
