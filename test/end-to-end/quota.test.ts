import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiAnswer, ApiClient } from '../support/api-client.ts';
import { plansFile } from '../support/plans-file.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** The quota of the plan here: 4 MB, a quarter of which is for an address that is not verified. */
const quotaBytes = 1_000_000;
const text = 'tide '.repeat(20_000);

describe('the storage quota', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  let server: ServerProcess;
  let anyone: ApiClient;
  let api: ApiClient;

  before(async () => {
    const file = plansFile(folder, 'unlimited', { storage_quota_gb: 0.004, unverified_share: 0.25 });
    server = await startServer({ folder, env: { TIDEBASE_PLANS_FILE: file } });
    anyone = new ApiClient(server.url);
    api = anyone.as((await anyone.signup('full@example.com')).key);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  const put = (namespace: string, id: string): Promise<ApiAnswer> =>
    api.request('POST', `/v1/namespaces/${namespace}/docs`, { body: { docs: [{ id, text }] } });

  /** What is known of the stored bytes may be some seconds old. */
  async function until(answers: () => Promise<ApiAnswer>, status: number): Promise<ApiAnswer> {
    for (let tries = 0; ; tries++) {
      const answer = await answers();
      if (answer.status === status || tries === 240) return answer;
      await sleep(250);
    }
  }

  it('refuses one write that alone would pass it, and an import by what it takes', async () => {
    const docs = Array.from({ length: 11 }, (_, i) => ({ id: `d${i}`, text }));
    const write = await api.request('POST', '/v1/namespaces/large/docs', { body: { docs } });
    assert.deepEqual([write.status, (write.json() as { code: string }).code], [507, 'quota_full']);

    const file = (rows: number, text: () => string) =>
      `id,text\n${Array.from({ length: rows }, (_, i) => `${i},${text()}`).join('\n')}\n`;
    const importFile = (name: string, body: string) =>
      api.request('POST', `/v1/namespaces/${name}/import?id=id&text=text`, {
        body,
        headers: { 'content-type': 'application/octet-stream' },
      });
    const random = await importFile(
      'large',
      file(300, () => randomBytes(5_000).toString('hex')),
    );
    assert.deepEqual([random.status, (random.json() as { code: string }).code], [507, 'quota_full']);
    assert.equal((await api.request('GET', '/v1/namespaces/large')).status, 404);

    // As long a file, which packs well.
    assert.equal(
      (
        await importFile(
          'packed',
          file(300, () => 'tide '.repeat(2_000)),
        )
      ).status,
      200,
    );
    assert.equal((await api.request('DELETE', '/v1/namespaces/packed')).status, 204);
  });

  it('refuses documents with 507 once it is reached, and writes nothing of them', async () => {
    let number = 0;
    const refused = await until(() => put('notes', `d${number++}`), 507);

    assert.equal(refused.status, 507);
    const { error, code } = refused.json() as { error: string; code: string };
    assert.equal(code, 'quota_full');
    assert.match(error, /storage quota of 1000000 bytes .*; nothing was written: delete data or upgrade/);
    const counted = await api.request('POST', '/v1/namespaces/notes/count', { body: {} });
    assert.equal((counted.json() as { count: number }).count, number - 1);
    assert.ok(number > quotaBytes / text.length - 1, `${number} were taken`);
    const missing = await put('other', 'first');
    assert.equal(missing.status, 507);
    assert.equal((await api.request('POST', '/v1/namespaces/other/count', { body: {} })).status, 404);
  });

  it('leaves reads and deletes alone, and lets writes in again once there is room', async () => {
    assert.equal((await api.request('GET', '/v1/namespaces/notes/docs/d0')).status, 200);
    const ids = Array.from({ length: 40 }, (_, i) => `d${i}`);
    const gone = await api.request('POST', '/v1/namespaces/notes/docs', { body: { deletes: ids } });
    assert.equal(gone.status, 200);

    assert.equal((await until(() => put('notes', 'again'), 200)).status, 200);
  });

  it('is known after a restart, as the list tells it', async () => {
    const before = await api.request('GET', '/v1/namespaces/notes');
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    server = await startServer(server.options);
    anyone.close();
    anyone = new ApiClient(server.url);
    api = anyone.as(api.key ?? '');

    const [listed] = ((await api.request('GET', '/v1/namespaces')).json() as { namespaces: object[] })
      .namespaces as { name: string; docs_written: number; stored_bytes: number }[];
    const itself = (await api.request('GET', '/v1/namespaces/notes')).json() as typeof listed;
    assert.equal(listed?.docs_written, (before.json() as typeof listed)?.docs_written);
    assert.equal(listed?.stored_bytes, itself?.stored_bytes);
  });
});

/** How many write requests a tenant has here: a quarter of the plan's 160, since its owner's address is not verified. */
const writesMax = 40;

describe('deletes of somebody whose quota is full', () => {
  it('count as write requests until these are used up, then hear 402, and a neighbour reads and writes meanwhile', async () => {
    const folder = temporaryFolder();
    const free = { storage_quota_gb: 0.004, included_writes: 4 * writesMax, unverified_share: 0.25 };
    const env = { TIDEBASE_PLANS_FILE: plansFile(folder, 'built-in', free), TIDEBASE_ACTOR_THREADS: '1' };
    const server = await startServer({ folder, env });
    const anyone = new ApiClient(server.url);
    const attacker = anyone.as((await anyone.signup('attacker@example.com')).key);
    const neighbour = anyone.as((await anyone.signup('neighbour@example.com')).key);
    await neighbour.put('notes', [{ id: 'a', text: 'tide' }]);
    let taken = 0;
    for (let status = 200; status !== 507; ) {
      const docs = [{ id: `d${taken}`, text: randomBytes(60_000).toString('hex') }];
      status = (await attacker.request('POST', '/v1/namespaces/full/docs', { body: { docs } })).status;
      assert.ok(status === 507 || (status === 200 && ++taken < writesMax), `${status} after ${taken}`);
    }

    const refused: string[] = [];
    const attack = async (loop: number) => {
      const ids = Array.from({ length: 10_000 }, (_, i) => `${loop}-${i}`);
      for (let status = 200; status === 200; ) {
        const answer = await attacker.request('POST', '/v1/namespaces/full/delete', { body: { ids } });
        status = answer.status;
        if (status === 200) taken++;
        else refused.push(`${status} ${(answer.json() as { code: string }).code}`);
        assert.ok(taken <= writesMax + 16, `${taken} writes were taken`);
      }
    };
    const attacks = Promise.all([0, 1, 2, 3].map(attack));
    let slowestMs = 0;
    for (let i = 0; i < 20; i++) {
      const beganMs = performance.now();
      assert.equal((await neighbour.search('notes', { q: 'tide' })).hits.length, 1);
      slowestMs = Math.max(slowestMs, performance.now() - beganMs);
    }
    await neighbour.put('notes', [{ id: 'b', text: 'tide' }]);
    await attacks;

    assert.ok(slowestMs < 2_000, `a search took ${slowestMs} ms`);
    assert.deepEqual(refused, Array(4).fill('402 email_unverified'));
    // Up to three more were under way when the last one was counted.
    assert.ok(taken >= writesMax && taken < writesMax + 4, `${taken} writes were taken`);
    const metered = async () => (await attacker.call<{ writes: number }>('GET', '/v1/usage')).writes;
    for (let tries = 0; (await metered()) !== taken && tries < 40; tries++) await sleep(250);
    assert.equal(await metered(), taken);
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });
});
