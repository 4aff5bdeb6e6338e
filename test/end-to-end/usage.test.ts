import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Billing, KeyItem, Usage } from '../../protocol/account.ts';
import type { Plan } from '../../src/accounts/plans.ts';
import { ApiClient, documentPath } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { plansFile } from '../support/plans-file.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const operationsWanted = Number(process.env.USAGE_OPERATIONS ?? 1_500);
const killsWanted = 3;
/** What a kill may lose: service and design say a second of queries. */
const lostMsMax = 1_000;

describe('usage, of a server that is killed', () => {
  it('is exactly the writes that are found, and of queries all but a second before each kill', async (context) => {
    let server = await startServer({ folder: temporaryFolder() });
    let anyone = new ApiClient(server.url);
    const { key } = await anyone.signup('usage@example.com');
    let api = anyone.as(key);
    const namespaces = ['u0', 'u1', 'u2', 'u3'];
    for (const name of namespaces) await api.createNamespace(name);
    /** When each query was answered. */
    const answered: number[] = [];
    const killed: number[] = [];
    const lost = { writes: 0, queries: 0 };
    let next = 0;
    let killing: Promise<void> | null = null;

    const kill = async (): Promise<void> => {
      killed.push(performance.now());
      await server.kill();
      server = await restart(server);
      anyone = new ApiClient(server.url);
      api = anyone.as(key);
    };
    const client = async (): Promise<void> => {
      while (next < operationsWanted) {
        await killing;
        const at = next++;
        if (
          at > 0 &&
          at % Math.floor(operationsWanted / (killsWanted + 1)) === 0 &&
          killed.length < killsWanted
        ) {
          killing = kill().finally(() => {
            killing = null;
          });
          continue;
        }
        await one(at);
      }
    };
    const one = async (at: number): Promise<void> => {
      const name = namespaces[at % namespaces.length] as string;
      const isWrite = at % 5 < 2;
      try {
        if (at % 5 === 0) await api.put(name, [{ id: `d${at}`, text: `the tide of ${at}` }]);
        else if (at % 5 === 1) await api.deleteDocuments(name, [`d${at - 11}`]);
        else {
          if (at % 5 === 2) await api.search(name, { q: 'tide', limit: 3 });
          else if (at % 5 === 3) await api.count(name, { q: 'tide' });
          else assert.notEqual((await api.request('GET', documentPath(name, `d${at}`))).status, 500);
          // A look for a document that is not there is a query too.
          answered.push(performance.now());
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        if (isWrite) lost.writes++;
        else lost.queries++;
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    await killing;
    let found = { writes: 0, docs: 0, bytes: 0 };
    for (const name of namespaces) {
      const { version } = await api.search(name, { limit: 1 });
      const { docs_written, bytes_written } = await api.getNamespace(name);
      found = {
        writes: found.writes + version,
        docs: found.docs + docs_written,
        bytes: found.bytes + bytes_written,
      };
    }
    const ownQueries = namespaces.length;
    // What the last namespaces have to report is on its way for a second, and longer on a busy machine.
    let usage = await api.call<Usage>('GET', '/v1/usage?days=true');
    await eventually(
      async () => {
        usage = await api.call<Usage>('GET', '/v1/usage?days=true');
        return usage.writes >= found.writes && usage.docs_written >= found.docs;
      },
      () => `${found.writes} writes are metered: ${JSON.stringify(usage)}`,
    );
    const lastSeconds = answered.filter((at) =>
      killed.some((kill) => at <= kill && at > kill - lostMsMax),
    ).length;
    const missing = answered.length + ownQueries - usage.queries;
    context.diagnostic(
      `${operationsWanted} operations, ${killed.length} kills, ${lost.writes + lost.queries} without an answer; ` +
        `writes: found ${found.writes}, metered ${usage.writes}; documents and deletes: ${found.docs}, ${usage.docs_written}; ` +
        `queries: answered ${answered.length + ownQueries}, metered ${usage.queries}, missing ${missing} of ${lastSeconds} in the last seconds`,
    );

    assert.equal(killed.length, killsWanted);
    assert.deepEqual(
      [usage.writes, usage.docs_written, usage.write_bytes],
      [found.writes, found.docs, found.bytes],
    );
    assert.ok(
      missing <= lastSeconds,
      `${missing} queries are missing, ${lastSeconds} were answered in the last seconds`,
    );
    // A query whose answer was lost with the server may have been counted.
    assert.ok(usage.queries <= answered.length + ownQueries + lost.queries);
    const days = usage.days ?? assert.fail('no days');
    assert.equal(
      days.reduce((sum, { writes }) => sum + writes, 0),
      usage.writes,
    );
    await server.stop();
    const again = await restart(server);
    const after = await new ApiClient(again.url).as(key).call<Usage>('GET', '/v1/usage');
    assert.deepEqual(
      [after.writes, after.queries, after.docs_written],
      [usage.writes, usage.queries, usage.docs_written],
    );
    await again.stop();
  });
});

describe('what a plan includes', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  const start = (free: Partial<Plan>): Promise<ServerProcess> =>
    startServer({
      folder: temporaryFolder(),
      env: { TIDEBASE_PLANS_FILE: plansFile(folder, 'unlimited', free) },
    });
  const limited = { hard_limit: true, unverified_share: 1 };
  /** Everybody's own limits: each test signs up somebody else. */
  let server: ServerProcess;
  /** No limit but a share of one, and prices. */
  let priced: ServerProcess;

  before(async () => {
    server = await start({
      ...limited,
      included_queries: 3,
      included_writes: 2,
      max_namespaces: 2,
      included_embed_tokens: 10,
    });
    priced = await start({ price_month: 7, per_million_queries: 1_000_000, included_queries: 1 });
  });

  after(async () => {
    for (const each of [server, priced]) assert.deepEqual(await each.stop(), { code: 0, signal: null });
  });

  it('ends queries with 402 and lets writes go on, and the other way round', async () => {
    const api = new ApiClient(server.url).as((await new ApiClient(server.url).signup('a@example.com')).key);
    await api.put('n', [{ id: '1', text: 'x' }]);
    for (let i = 0; i < 3; i++) await api.count('n');

    const refused = await api.refused(
      { status: 402, code: 'payment_required' },
      'POST',
      '/v1/namespaces/n/search',
      {
        body: {},
      },
    );
    await api.put('n', [{ id: '2', text: 'x' }]);
    await api.refused({ status: 402, code: 'payment_required' }, 'POST', '/v1/namespaces/n/docs', {
      body: { docs: [{ id: '3', text: 'x' }] },
    });

    assert.match(
      refused.error,
      /the free plan's 3 queries of this month are used up: wait until \d{4}-\d\d-01 or upgrade/,
    );
    let usage = await api.call<Usage>('GET', '/v1/usage');
    // The thread that writes tells of it within a second; a busy machine takes longer.
    await eventually(
      async () => {
        usage = await api.call<Usage>('GET', '/v1/usage');
        return usage.writes >= 2;
      },
      () => `two writes are metered: ${JSON.stringify(usage)}`,
    );
    assert.deepEqual([usage.queries, usage.writes, usage.docs_written], [3, 2, 2]);
    assert.ok(usage.out_bytes > 0 && usage.cpu_ms > 0);
  });

  it('is a share of it until the address is verified', async () => {
    const server = await start({ ...limited, included_queries: 300, unverified_share: 0.01 });
    const api = new ApiClient(server.url).as((await new ApiClient(server.url).signup('b@example.com')).key);
    await api.put('n', [{ id: '1', text: 'x' }]);
    for (let i = 0; i < 3; i++) await api.count('n');

    const refused = await api.refused(
      { status: 402, code: 'email_unverified' },
      'POST',
      '/v1/namespaces/n/search',
      {
        body: {},
      },
    );

    assert.match(refused.error, /1% of the free plan.*3 queries.*verify/);
    await server.stop();
  });

  it('has its number of namespaces, made in either way', async () => {
    const api = new ApiClient(server.url).as((await new ApiClient(server.url).signup('c@example.com')).key);
    await api.createNamespace('a');
    await api.put('b', [{ id: '1', text: 'x' }]);

    await api.refused({ status: 402, code: 'namespace_limit' }, 'POST', '/v1/namespaces', {
      body: { name: 'c' },
    });
    await api.refused({ status: 402, code: 'namespace_limit' }, 'POST', '/v1/namespaces/c/docs', {
      body: { docs: [{ id: '1', text: 'x' }] },
    });
    await api.refused(
      { status: 402, code: 'namespace_limit' },
      'POST',
      '/v1/namespaces/c/import?format=csv',
      {
        body: 'a\n1\n',
        headers: { 'content-type': 'application/octet-stream' },
      },
    );
    await api.deleteNamespace('a');

    await api.put('c', [{ id: '1', text: 'x' }]);
  });

  it('has tokens of the hosted model', async () => {
    const api = new ApiClient(server.url).as((await new ApiClient(server.url).signup('d@example.com')).key);
    await api.call('POST', '/v1/namespaces', { name: 'n', embed: { provider: 'service' } });
    // Before anything of it is embedded.
    const large = await api.refused(
      { status: 402, code: 'payment_required' },
      'POST',
      '/v1/namespaces/n/docs',
      {
        body: { docs: [{ id: '0', text: 'tide '.repeat(100) }] },
      },
    );
    assert.match(large.error, /needs at least 100 tokens .* 10 of this month's 10 /);
    await api.put('n', [{ id: '1', text: 'the tide turns at noon, and the boats come in' }]);
    const used = await api.call<Usage>('GET', '/v1/usage');

    await api.refused({ status: 402, code: 'payment_required' }, 'POST', '/v1/namespaces/n/docs', {
      body: { docs: [{ id: '2', text: 'another' }] },
    });

    assert.ok(used.embed_tokens >= 10, String(used.embed_tokens));
  });

  it('of a key ends with its caps', async () => {
    const api = new ApiClient(priced.url).as((await new ApiClient(priced.url).signup('e@example.com')).key);
    const capped = api.as((await api.createKey({ name: 'capped', cap_queries: 2, cap_writes: 1 })).key);
    await capped.put('n', [{ id: '1', text: 'x' }]);
    await capped.count('n');
    await capped.search('n');

    const refused = await capped.refused(
      { status: 429, code: 'rate_limited' },
      'POST',
      '/v1/namespaces/n/count',
      {
        body: {},
      },
    );
    await capped.refused({ status: 429, code: 'rate_limited' }, 'POST', '/v1/namespaces/n/docs', {
      body: { docs: [{ id: '2', text: 'x' }] },
    });
    await api.count('n');

    assert.match(refused.error, /cap of 2 queries a month/);
    const keys = await api.call<KeyItem[]>('GET', '/v1/keys');
    const shown = keys.find(({ name }) => name === 'capped') ?? assert.fail('the key is not listed');
    assert.deepEqual([shown.used_queries, shown.used_writes], [2, 1]);
    assert.ok(Date.now() - Date.parse(shown.last_used_at ?? '') < 60_000);
  });

  it('is shown by the bill, which nobody can pay yet', async () => {
    const api = new ApiClient(priced.url).as((await new ApiClient(priced.url).signup('f@example.com')).key);
    await api.put('n', [{ id: '1', text: 'x' }]);
    for (let i = 0; i < 3; i++) await api.count('n');

    const billing = await api.call<Billing>('GET', '/v1/billing');

    assert.deepEqual([billing.bill.base, billing.bill.queries, billing.bill.total], [7, 2, 9]);
    assert.deepEqual(
      [billing.plan, billing.configured, billing.subscribed, billing.status],
      ['free', false, false, 'none'],
    );
    assert.equal(billing.usage.queries, 3);
  });
});
