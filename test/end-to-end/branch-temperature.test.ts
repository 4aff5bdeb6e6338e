/** A branch finds near what its parent has near, whichever thread it lives on, and whatever its parent merges meanwhile. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { decodeManifest } from '../../actors/storage/manifest.ts';
import { actorThreadNames, placementKey } from '../../protocol/placement.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { type ServerProcess, startServer, temporaryFolder, withLimits } from '../support/server-process.ts';

const threads = 3;
const rowsPerFile = 5_000;

describe('the first read of a branch', () => {
  let server: ServerProcess;
  let api: ApiClient;
  let tenantId: number;

  before(async () => {
    const env = { TIDEBASE_ACTOR_THREADS: String(threads) };
    // However busy this machine is.
    const patient = withLimits({ nearBlocksWaitMs: 20_000 });
    server = await startServer({ folder: temporaryFolder(), ...patient, env: { ...patient.env, ...env } });
    const anyone = new ApiClient(server.url);
    const { key, tenant_id } = await anyone.signup('near@example.com');
    tenantId = tenant_id;
    api = anyone.as(key);
    for (const file of [0, 1, 2]) await importFile(file);
    await api.put('source', [{ id: 'fresh', text: 'a tide in memory' }]);
  });
  after(async () => {
    api.close();
    await server.stop();
  });

  async function importFile(file: number): Promise<void> {
    const rows = Array.from({ length: rowsPerFile }, (_, i) => `${file}-${i},tide ${i} turns at ${i % 7}`);
    await api.call('POST', '/v1/namespaces/source/import?id=id&text=text', `id,text\n${rows.join('\n')}\n`);
  }

  const threadOf = (name: string) => rendezvousPick(placementKey(tenantId, name), actorThreadNames(threads));

  /** How many segments the source's manifest names in the store. */
  async function segmentsOfSource(): Promise<number> {
    const folder = join(server.options.folder, 'objects');
    const store = await FsObjectStore.open(folder, systemClock, systemRandom);
    const { objects } = await store.list('ns/', { limit: 1_000 });
    for (const { key } of objects.filter((each) => each.key.endsWith('/manifest'))) {
      const found = await store.get(key);
      if (found === null) continue;
      const { name, segments } = decodeManifest(found.bytes, key);
      if (name === 'source') return segments.length;
    }
    assert.fail('the source has no manifest');
  }

  it('asks no store, on the thread of its parent and on others', async () => {
    await api.count('source', { q: 'turns at 3' });
    // Names are chosen by their threads: left to chance, all eight were elsewhere once in 26 runs.
    const candidates = Array.from({ length: 200 }, (_, at) => `b${at}`);
    const isBeside = (name: string) => threadOf(name) === threadOf('source');
    const elsewhere = candidates.filter((name) => !isBeside(name)).slice(0, 4);
    const names = [...candidates.filter(isBeside).slice(0, 4), ...elsewhere];
    assert.equal(names.length, 8);
    for (const name of names) await api.call('POST', `/v1/namespaces/${name}/branch`, { source: 'source' });

    for (const name of names) {
      const found = await api.count(name, { q: 'turns at 3' });
      const where = isBeside(name) ? 'beside its parent' : 'elsewhere';
      assert.deepEqual([found.temperature, found.store_gets], ['local', 0], `${name}, ${where}`);
      assert.equal(found.count, 3 * Math.ceil((rowsPerFile - 3) / 7));
    }
    // What its parent has not read comes from the store.
    const rare = await api.count(elsewhere[0] ?? '', { q: 'a tide in memory' });
    assert.equal(rare.count, 1);
  });

  it('is near too after its parent has merged what they shared', async () => {
    await api.count('source', { q: 'turns at 5' });
    const names = Array.from({ length: 8 }, (_, at) => `before-merge-${at}`);
    for (const name of names) await api.call('POST', `/v1/namespaces/${name}/branch`, { source: 'source' });
    await importFile(3);
    // Three, what was in memory, and this one.
    await eventually(async () => (await segmentsOfSource()) < 4, 'segments are merged');

    assert.equal(
      (await api.count('source', { q: 'turns at 5' })).count,
      4 * Math.ceil((rowsPerFile - 5) / 7),
    );
    for (const name of names) {
      const found = await api.count(name, { q: 'turns at 5' });
      assert.deepEqual([found.temperature, found.store_gets], ['local', 0], name);
      assert.equal(found.count, 3 * Math.ceil((rowsPerFile - 5) / 7));
    }
  });
});
