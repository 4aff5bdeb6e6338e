/**
 * A data folder that an older version wrote, test/golden/store-2026-11-22: manifests of version 7, tenants of 7, a view of 1 and a floor of 2.
 * Its server wrote 150 documents, replaced one, deleted a namespace, was stopped, started, wrote two more documents, and was ended by
 * `kill -9`, so that they are in its log alone. What an older version says of numbers that it does not know is what this one says of
 * the next.
 */
import assert from 'node:assert/strict';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { formats } from '../../protocol/version.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { ApiClient } from '../support/api-client.ts';
import { startServer, temporaryFolder } from '../support/server-process.ts';

/** Where a record has its version. */
const versionOffset = 4;
const golden = 'test/golden/store-2026-11-22';
const key = 'tb_3eNAE1LoHU45GWTuJKvDax3pbKglxb2f2Yqh';
const person = { email: 'golden@example.com', password: 'correct horse battery' };

function copyOfGolden(): string {
  const folder = temporaryFolder();
  cpSync(golden, folder, { recursive: true });
  return folder;
}

async function assertWhole(api: ApiClient, documents: number): Promise<void> {
  assert.equal((await api.count('notes', {})).count, documents);
  assert.equal((await api.get('notes', 'd3')).text, 'replaced once');
  assert.equal((await api.get('notes', 'last')).text, 'only in the log, before kill -9');
  assert.equal((await api.get('tail', 'a')).text, 'a namespace of the log alone');
  assert.equal((await api.count('notes', { q: 'İSTANBUL' })).count, 22);
  assert.equal((await api.count('notes', { filter: { host: 'node-2', day: { gte: 100 } } })).count, 10);
  const near = await api.search('notes', { vector: [2, 2, 1, 0.44], limit: 1 });
  assert.equal(near.hits[0]?.id, 'd44');
  assert.equal((await api.request('GET', '/v1/namespaces/gone')).status, 404);
}

describe('a store of an older version', { concurrency: 1 }, () => {
  it('is read whole, written to, and read again after a restart', async () => {
    const folder = copyOfGolden();
    const first = await startServer({ folder });
    const login = await new ApiClient(first.url).request('POST', '/v1/login', { body: person });
    assert.equal(login.status, 200, login.body.toString());
    const api = new ApiClient(first.url, key);
    await assertWhole(api, 151);
    await api.put('notes', [{ id: 'new', text: 'by the new version' }]);
    await first.stop();
    assert.deepEqual(first.loggedErrors(), []);

    const second = await startServer({ folder });
    await assertWhole(new ApiClient(second.url, key), 152);
    await second.stop();
    const store = await openStore(folder);
    const written = await store.get(paths.view);
    await store.close();
    assert.equal(Buffer.from(written?.bytes ?? []).readUInt16LE(versionOffset), formats.clusterView.version);
  });

  it('of a newer one is refused by name at the start, and stays as it is', async () => {
    const folder = copyOfGolden();
    const store = await openStore(folder);
    const found = (await store.get(paths.view)) ?? assert.fail('there is no view');
    const next = formats.clusterView.version + 1;
    const format = { magic: 'TBVW', versions: [1, 2] as const, check: (value: unknown) => value };
    const value = decodeRecord(found.bytes, paths.view, format);
    const newer = encodeRecord({ magic: 'TBVW', versions: [next] }, value);
    await store.putIfMatch(paths.view, [newer], found.etag);
    await store.close();
    const before = filesOf(folder);
    await assert.rejects(startServer({ folder }), (error: Error) => {
      assert.match(error.message, new RegExp(`cluster/view.*format version ${next}, this server reads`));
      return true;
    });
    assert.deepEqual(
      filesOf(folder).filter((file) => file.includes('/objects/')),
      before.filter((file) => file.includes('/objects/')),
    );
  });
});

const openStore = (folder: string) => FsObjectStore.open(join(folder, 'objects'), systemClock, systemRandom);

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []))
    .sort();
}
