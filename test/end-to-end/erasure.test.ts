/**
 * What is deleted is nowhere in the data folder, found by decoding whatever is in it (support/find-text.ts). The server does in
 * seconds what it does in minutes and hours otherwise.
 */
import assert from 'node:assert/strict';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { NewKey, Tenant } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { findText } from '../support/find-text.ts';
import { anyVector, documentsWithGraph } from '../support/graph-vectors.ts';
import { filesBelow, readIfThere, sizeIfThere } from '../support/living-folder.ts';
import { lettersOnceThere } from '../support/outbox.ts';
import {
  restart,
  type ServerProcess,
  startServer,
  temporaryFolder,
  withLimits,
} from '../support/server-process.ts';

const sooner = {
  flushAfterMs: 1_000,
  retiredGraceMs: 1_000,
  deletedRowsKeptMs: 2_000,
  // Floors rise and flushes are asked for then.
  logHousekeepingMs: 1_000,
};
const waitMsMax = 60_000;

const documents = (marker: string, count = 300) =>
  Array.from({ length: count }, (_, at) => ({
    id: `d${at}`,
    text: `line ${at} of ${marker}\n${'words that fill a document '.repeat(60)}${at * at}`,
    meta: { note: `${marker} too`, at },
  }));

/** Its cache is swept much later than any of these tests, where nothing else is said. */
async function started(folder: string, cacheSweepAfterMs = 3_600_000): Promise<ServerProcess> {
  const { nodeArguments, env } = withLimits({ ...sooner, cacheSweepAfterMs });
  const settings = { TIDEBASE_COMMIT_MS: '20', TIDEBASE_ACTOR_THREADS: '2' };
  return startServer({ folder, nodeArguments, env: { ...env, ...settings } });
}

async function stopped(server: ServerProcess): Promise<void> {
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  assert.deepEqual(server.loggedErrors(), []);
}

/** Reads all of a namespace, so that the local cache has it. */
async function readAll(api: ApiClient, name: string): Promise<void> {
  await api.searchAll(name, { q: 'filler|words', regex: true });
  for (const id of ['d0', 'd7', 'd299']) await api.get(name, id).catch(() => null);
  await api.call('POST', `/v1/namespaces/${name}/sql`, {
    sql: `SELECT note, COUNT(*) FROM docs GROUP BY note LIMIT 3`,
  });
}

const inCache = (line: string) => line.startsWith('cache/');
const inSegments = (line: string) => line.includes('/segment/');

describe('what is deleted', { concurrency: 1 }, () => {
  it('is nowhere in the data folder: namespaces, tenants, documents, and what they were made of', async () => {
    const folder = temporaryFolder();
    let server = await started(folder);
    const anyone = new ApiClient(server.url);
    const { key } = await anyone.signup('ada@example.com', 'Ada');
    const login = await anyone.login('ada@example.com');
    const tenant = await anyone.as(login).call<Tenant>('POST', '/v1/tenants', { name: 'second' });
    const made = await anyone.as(login).request('POST', '/v1/keys', {
      body: { name: 'k', scope: 'admin' },
      headers: { 'x-tenant': `${tenant.id}` },
    });
    const { key: tenantKey } = made.json() as NewKey;
    const markers = {
      namespace: 'erased-namespace-marker',
      imported: 'erased-import-marker',
      tenant: 'erased-tenant-marker',
      document: 'erased-document-marker',
      kept: 'marker-that-stays',
    };
    const { api, other } = { api: anyone.as(key), other: anyone.as(tenantKey) };
    await api.put('gone', documents(markers.namespace));
    await other.put('theirs', documents(markers.tenant));
    await api.put('stays', [
      ...documents(markers.kept),
      { id: 'one', text: `${markers.document} in a text`, meta: { note: markers.document } },
      { id: 'two', text: `${markers.document} that is replaced` },
    ]);
    const rows = Array.from({ length: 3_000 }, (_, at) => `${at},row ${at} of ${markers.imported} words\n`);
    await api.call('POST', '/v1/namespaces/rows/import?id=k&text=note', `k,note\n${rows.join('')}`);
    for (const docs of documentsWithGraph('v')) await api.put('vectors', docs);
    // The log and memory have it; segments have it when the log has asked for flushes.
    await server.until(
      () => {
        const segments = findText(join(folder, 'objects'), 'marker').filter(inSegments);
        return segments.length >= 4 && filesBelow(folder).some((name) => name.includes('/graph/'));
      },
      'has flushed everything, and built a graph',
      waitMsMax,
    );
    await stopped(server);

    server = await restart(server);
    const [again, others] = [new ApiClient(server.url, key), new ApiClient(server.url, tenantKey)];
    for (const name of ['gone', 'stays', 'rows']) await readAll(again, name);
    await readAll(others, 'theirs');
    await again.search('stays', { q: markers.document });
    const graphFiles = () =>
      filesBelow(join(folder, 'cache')).filter(
        (path) => path.includes('/files/') && sizeIfThere(path) > 1_000_000,
      );
    // A search that meets a segment without a graph has it built, and kept on the disk a moment later.
    await eventually(async () => {
      await again.search('vectors', { vector: anyVector, limit: 3 });
      return graphFiles().length > 0;
    }, 'a graph is on the local disk');
    await stopped(server);
    for (const marker of Object.values(markers)) {
      const found = findText(folder, marker);
      assert.ok(found.some(inCache), `${marker} is in the cache: the search finds what is there`);
      assert.ok(found.some(inSegments), `${marker} is in a segment`);
    }
    assert.notDeepEqual(graphFiles(), [], 'a graph is on the local disk');

    server = await restart(server);
    const [last, lastOther] = [new ApiClient(server.url, key), new ApiClient(server.url, tenantKey)];
    await last.search('gone', { q: 'line 7' });
    for (const name of ['gone', 'rows', 'vectors']) await last.deleteNamespace(name);
    await lastOther.search('theirs', { q: 'line 7' });
    const owner = last.as(await last.login('ada@example.com'));
    await owner.call('DELETE', `/v1/tenants/${tenant.id}`);
    await last.deleteDocuments('stays', ['one']);
    await last.put('stays', [{ id: 'two', text: 'another text' }]);
    const gone = Object.values(markers).filter((marker) => marker !== markers.kept);
    const isGone = () => findText(join(folder, 'objects'), ...gone).length === 0;
    await server.until(isGone, 'has rewritten the segment and deleted the old one', waitMsMax);
    await stopped(server);
    assert.deepEqual(findText(folder, ...gone), []);
    assert.deepEqual(
      filesBelow(folder).filter((name) => /\/graph\/|scratch\/./.test(name)),
      [],
    );
    assert.deepEqual(graphFiles(), []);

    server = await restart(server);
    const reader = new ApiClient(server.url, key);
    assert.equal((await reader.count('stays', { q: markers.kept })).count, 300);
    assert.equal((await reader.get('stays', 'two')).text, 'another text');
    for (const client of [anyone, again, others, last, lastOther, reader]) client.close();
    await stopped(server);
  });

  it('goes from a cache that was closed when it was deleted', async () => {
    const folder = temporaryFolder();
    let server = await started(folder, 1_000);
    const { key } = await new ApiClient(server.url).signup('ada@example.com', 'Ada');
    for (const name of ['late', 'stays'])
      await new ApiClient(server.url, key).put(name, documents(`marker-of-${name}`));
    await stopped(server);
    server = await restart(server);
    for (const name of ['late', 'stays']) await readAll(new ApiClient(server.url, key), name);
    await stopped(server);
    assert.ok(findText(folder, 'marker-of-late').some(inCache));
    renameSync(join(folder, 'cache'), join(folder, 'away'));
    server = await restart(server);
    await new ApiClient(server.url, key).deleteNamespace('late');
    await stopped(server);
    rmSync(join(folder, 'cache'), { recursive: true });
    renameSync(join(folder, 'away'), join(folder, 'cache'));

    server = await restart(server);
    await server.until(() => findText(folder, 'marker-of-late').length === 0, 'sweeps its cache', waitMsMax);
    await stopped(server);
    assert.deepEqual(findText(folder, 'marker-of-late'), []);
    assert.ok(findText(folder, 'marker-of-stays').some(inCache));
  });

  it('is not found as what it was before: the hash of an old password, a first version', async () => {
    const folder = temporaryFolder();
    const server = await started(folder);
    const anyone = new ApiClient(server.url);
    await anyone.signup('ada@example.com', 'Ada');
    const hashOf = () =>
      filesBelow(join(folder, 'objects/account/person'))
        .flatMap(
          (name) =>
            (readIfThere(name) ?? Buffer.alloc(0)).toString('latin1').match(/\$argon2[^\0]{60,90}/g) ?? [],
        )
        .map((hash) => hash.slice(-60, -20));
    const [old] = hashOf();
    assert.ok(old !== undefined, 'the person has a hash');
    assert.ok(findText(folder, old).length > 0);
    await anyone.call('POST', '/v1/password/forgot', { email: 'ada@example.com' });
    const [letter] = await lettersOnceThere(folder, ({ kind }) => kind === 'reset');
    await anyone.call('POST', '/v1/password/reset', { token: letter?.token, password: 'another horse' });
    assert.deepEqual(findText(folder, old), []);
    assert.equal(hashOf().length, 1);
    anyone.close();
    await stopped(server);
  });
});
