/** Three real servers, one of which stands still or is killed: reads that say so get an old answer instead of none, and it says how old it is. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { StoredDocument } from '../../protocol/document.ts';
import type { CountAnswer, SearchAnswer } from '../../protocol/search.ts';
import type { SqlAnswer } from '../../protocol/sql.ts';
import { ApiClient } from '../support/api-client.ts';
import { type ClusterServer, metric, ServerCluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { McpCaller } from '../support/mcp-calls.ts';

const batchDocs = 5;
const eventual = { consistency: 'eventual' } as const;

describe('eventual reads while the owner is out of reach', { concurrency: 1 }, () => {
  let cluster: ServerCluster;
  let key: string;
  /** Owns the namespaces `owned`; the tenant and its keys are another one's. */
  let owner: ClusterServer;
  let other: ClusterServer;
  let owned: readonly string[];

  const api = (server: ClusterServer) => new ApiClient(server.process.url, key);
  const batch = (n: number) =>
    Array.from({ length: batchDocs }, (_, at) => ({ id: `${n}-${at}`, text: `tide ${n}`, meta: { n } }));

  before(async () => {
    cluster = await ServerCluster.start({ servers: 3 });
    const made = await new ApiClient(cluster.servers[0]?.process.url ?? '').signup('ada@example.com');
    key = made.key;
    const tenants = await cluster.ownerOf(made.tenant_id, '');
    owner = cluster.servers.find((server) => server !== tenants) ?? assert.fail();
    other = cluster.servers.find((server) => server !== tenants && server !== owner) ?? assert.fail();
    const names: string[] = [];
    for (let n = 0; names.length < 3; n++)
      if ((await cluster.ownerOf(made.tenant_id, `n${n}`)) === owner) names.push(`n${n}`);
    owned = names;
    for (const name of owned) await api(other).put(name, batch(0));
  });

  after(async () => {
    await cluster.stop();
    const errors = cluster.servers.flatMap(({ process }) => process.loggedErrors());
    assert.deepEqual(
      errors.filter((line) => !/usage may not have been counted/.test(line)),
      [],
    );
  });

  it('with the owner there they are the strong answer', async () => {
    const [name = ''] = owned;
    for (const { process } of cluster.servers) {
      const client = new ApiClient(process.url, key);
      const answer = await client.call<CountAnswer>('POST', `/v1/namespaces/${name}/count`, eventual);
      assert.deepEqual([answer.count, answer.stale, answer.age_ms], [batchDocs, undefined, undefined]);
    }
  });

  it('where it stands still each kind of read answers with its age, over REST and MCP', async (t) => {
    const [name = ''] = owned;
    const path = `/v1/namespaces/${name}`;
    const client = api(other);
    await client.put(name, batch(1));
    owner.process.signal('SIGSTOP');
    try {
      const began = performance.now();
      const count = await client.call<CountAnswer>('POST', `${path}/count`, { q: 'tide', ...eventual });
      t.diagnostic(`first answer after ${Math.round(performance.now() - began)} ms, age ${count.age_ms} ms`);
      const found = await client.call<SearchAnswer>('GET', `${path}/search?q=tide&consistency=eventual`);
      const posted = await client.call<SearchAnswer>('POST', `${path}/search`, { q: 'tide', ...eventual });
      const document = await client.call<StoredDocument>('GET', `${path}/docs/1-0?consistency=eventual`);
      const sql = 'SELECT COUNT(*) AS n FROM docs';
      const rows = await client.call<SqlAnswer>('POST', `${path}/sql`, { sql, ...eventual });
      const caller = new McpCaller(other.process.url, key);
      const tool = await caller.call('search', { namespace: name, query: 'tide', ...eventual });

      assert.equal(count.count, 2 * batchDocs);
      assert.deepEqual([found.hits.length, posted.hits.length], [10, 10]);
      assert.equal(document.text, 'tide 1');
      assert.deepEqual(rows.rows, [[2 * batchDocs]]);
      for (const answer of [count, found, posted, document, rows, JSON.parse(tool.structured)]) {
        assert.equal(answer.stale, true);
        assert.ok((answer.age_ms ?? -1) >= 0 && (answer.age_ms ?? 0) < 10_000, String(answer.age_ms));
      }
      const refused = await client.request('GET', `${path}/docs/nobody?consistency=eventual`);
      assert.equal(refused.status, 404);
      assert.match(refused.body.toString(), /as of [0-9]+ ms ago/);
    } finally {
      owner.process.signal('SIGCONT');
    }
    assert.ok((await metric(other.metricsUrl, 'tidebase_stale_reads_total')) > 5);
    await eventually(
      async () => (await client.call<CountAnswer>('POST', `${path}/count`, eventual)).stale === undefined,
      'the owner answers again',
    );
  });

  it('a filter on a key called consistency asks for nothing of the kind', async () => {
    const [name = ''] = owned;
    const body = { filter: { consistency: 'eventual' } };
    const answer = await api(other).call<CountAnswer>('POST', `/v1/namespaces/${name}/count`, body);
    assert.deepEqual([answer.count, answer.stale], [0, undefined]);
  });

  it('after kill -9 no read fails, none misses a write that was answered, and none sees half of a batch', async (t) => {
    const [, name = ''] = owned;
    const path = `/v1/namespaces/${name}/count`;
    const client = api(other);
    /** When each write was answered; the first was before. */
    const answeredAt = [performance.now()];
    let [isOver, stale, fresh] = [false, 0, 0];
    const writing = (async () => {
      for (let n = 1; !isOver; n++) {
        const { status } = await client.request('POST', `/v1/namespaces/${name}/docs`, {
          body: { docs: batch(n) },
        });
        if (status === 200) answeredAt.push(performance.now());
        else n--;
      }
    })();
    await eventually(() => answeredAt.length > 20, 'some writes');

    await owner.process.kill();
    const until = performance.now() + 6_000;
    const ages: number[] = [];
    while (performance.now() < until) {
      const askedAt = performance.now();
      const answer = await client.request('POST', path, { body: eventual });
      assert.equal(answer.status, 200, answer.body.toString());
      const { count, stale: isStale, age_ms: ageMs } = answer.json() as CountAnswer;
      assert.equal(count % batchDocs, 0, 'whole writes only');
      if (isStale === true) {
        stale++;
        ages.push(ageMs ?? 0);
      } else fresh++;
      // An age is a promise: what had been answered so long before the question is there.
      const least = answeredAt.filter((at) => at < askedAt - (ageMs ?? 0)).length;
      assert.ok(count >= least * batchDocs, `${count} documents of ${least} writes, age ${ageMs} ms`);
    }
    isOver = true;
    await writing;

    const final = await client.call<CountAnswer>('POST', path, {});
    assert.ok(final.count >= answeredAt.length * batchDocs);
    t.diagnostic(
      `${stale} stale answers, at most ${Math.max(...ages)} ms old, ${fresh} others, ${answeredAt.length} writes`,
    );
    assert.ok(stale > 0 && fresh > 0);
  });
});
