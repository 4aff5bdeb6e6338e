import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { emptyUsage, meterWrites } from '../../../actors/tenant/tenant-usage.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import type { NamespaceReport } from '../../../protocol/stored-tenant.ts';
import { packMessage } from '../../../src/base/msgpack.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { call, InProcess, seededBytes, tenantId } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let starts = 0;

beforeEach(() => {
  clock = new FakeClock(Date.parse('2024-02-10T12:00:00Z'));
  truth = new MemoryObjectStore();
});

async function start(): Promise<InProcess> {
  return clock.run(InProcess.start({ store: truth, clock, random: seededBytes(80 + starts++) }));
}

async function withTenant(): Promise<InProcess> {
  const process = await start();
  await clock.run(process.createTenant());
  return process;
}

async function usage(process: InProcess, query = '') {
  await clock.advance(1_000);
  return (await clock.run(process.ask('usage', '', { query }))).body;
}

const note = (queries: number, keyId = 1, day = '2024-02-10') => ({
  day,
  counters: { queries, cpuMs: queries * 2, outBytes: 100 * queries },
  keys: [{ keyId, queries, writes: 1, lastUsedAt: clock.now() }],
});

const tell = (process: InProcess, ...notes: ReturnType<typeof note>[]) =>
  clock.run(process.host.handle(call(internalCalls.noteUsage, ''), packMessage(notes)));

describe('the usage of a tenant', () => {
  it('is nothing for a tenant that did nothing, with its plan and its bill', async () => {
    const process = await withTenant();

    const { plan, bill, ...counted } = await usage(process);

    assert.equal(plan.name, 'free');
    assert.equal(bill.total, 0);
    assert.equal(counted.period_start, '2024-02-01');
    assert.equal(counted.month, '2024-02');
    for (const name of ['queries', 'writes', 'write_bytes', 'docs_written', 'cpu_ms'])
      assert.equal(counted[name], 0, name);
    process.kill();
  });

  it('counts writes where they are applied, and what is stored by the hour', async () => {
    const process = await withTenant();
    await clock.run(
      process.put('a', [
        { id: '1', text: 'x' },
        { id: '2', text: 'y' },
      ]),
    );
    await clock.run(process.put('a', [{ id: '1', text: 'z' }], ['2']));
    await clock.run(process.put('b', [{ id: '1', text: 'x' }]));
    await clock.run(process.remove('a', []));

    const { writes, docs_written, write_bytes, stored_bytes } = await usage(process);
    clock.jump(3_600_000);
    const later = await usage(process);

    assert.deepEqual([writes, docs_written], [3, 5]);
    assert.ok(write_bytes > 0);
    assert.ok(stored_bytes > 0);
    assert.equal(later.writes, 3);
    const hours = (later.gb_months * 29 * 24 * 1e9) / later.stored_bytes;
    assert.ok(later.stored_bytes < 1e6, 'too little to show in nine digits');
    assert.ok(hours < 1.5);
    process.kill();
  });

  it('outlives kills at any point, and nothing of it counts twice', async () => {
    let process = await withTenant();
    let written = 0;
    let queries = 0;
    for (let round = 0; round < 6; round++) {
      for (let i = 0; i < 3; i++) {
        await clock.run(process.put(`n${i % 2}`, [{ id: `${round}-${i}`, text: 'x' }]));
        written++;
      }
      await tell(process, note(round + 1));
      queries += round + 1;
      // At first nothing of it is in a manifest, later the namespace's part, the tenant's, or both.
      if (round % 3 === 1) await clock.run(process.host.flush(tenantId, '', ''));
      if (round % 3 === 2) await clock.advance(310_000);
      process.kill();
      process = await start();
      await clock.advance(2_000);
      for (const name of ['n0', 'n1']) await clock.run(process.count(name));

      const counted = await usage(process);
      assert.deepEqual(
        [counted.writes, counted.docs_written, counted.queries],
        [written, written, queries],
        `round ${round}`,
      );
    }
    process.kill();
  });

  it('is durable as soon as the records that it is about may leave the log', async () => {
    let process = await withTenant();
    for (const name of ['a', 'b']) await clock.run(process.put(name, [{ id: '1', text: 'x' }]));
    await clock.advance(1_000);
    // Both flush, one after the other, and the tenant does not.
    for (const name of ['a', 'b']) {
      const { namespaceId } =
        (await clock.run(process.components.directory.resolve(tenantId, name, null))) ?? assert.fail(name);
      await clock.run(process.host.flush(tenantId, name, namespaceId));
    }
    await clock.advance(1_000);
    const before = await usage(process);
    process.kill();

    // Nobody opens the namespaces: what is known is the tenant's own.
    process = await clock.run(
      InProcess.start({ store: truth, clock, random: seededBytes(80 + starts++), recover: false }),
    );
    const after = await usage(process);

    assert.deepEqual([after.writes, after.docs_written, after.stored_bytes], [2, 2, before.stored_bytes]);
    process.kill();
  });

  it('keeps what a deleted namespace has taken, also where a kill follows at once', async () => {
    let process = await withTenant();
    await clock.run(process.put('a', [{ id: '1', text: 'x' }]));
    await clock.run(process.put('a', [{ id: '2', text: 'x' }]));
    await clock.advance(1_000);
    await clock.run(process.ask('deleteNamespace', '', { argument: 'a' }));
    await clock.run(process.put('a', [{ id: '3', text: 'x' }]));

    const before = await usage(process);
    process.kill();
    process = await start();
    await clock.advance(2_000);
    const after = await usage(process);

    assert.deepEqual([before.writes, before.docs_written], [3, 3]);
    assert.deepEqual([after.writes, after.docs_written], [3, 3]);
    assert.equal(after.write_bytes, before.write_bytes);
    process.kill();
  });

  for (const last of ['is not sent', 'arrives'] as const)
    it(`keeps every write of a deleted namespace, killed in its end where the last step ${last}`, async () => {
      for (let step = 0; ; step++) {
        truth = new MemoryObjectStore();
        const process = await withTenant();
        await clock.run(process.put('a', [{ id: '1', text: 'x' }]));
        await clock.advance(1_000);
        // Of this one only the namespace's actor knows, of the next one, which comes with the end, hardly that.
        await clock.run(process.put('a', [{ id: '2', text: 'x' }]));
        let steps = 0;
        process.store.plan = ({ operation }) => {
          if (operation === 'get' || operation === 'list' || steps++ < step) return undefined;
          return last === 'arrives' && steps === step + 1
            ? 'error-after-apply'
            : { until: new Promise(() => {}) };
        };
        const answered: string[] = [];
        void process.put('a', [{ id: '3', text: 'x' }]).then(({ code }) => answered.push(code));
        void process.ask('deleteNamespace', '', { argument: 'a' });
        await clock.advance(3_000);
        process.kill();

        for (const starts of [1, 2]) {
          const next = await start();
          await clock.advance(5_000);
          const { writes, docs_written } = await usage(next);
          const right = answered.includes('') ? [3] : [2, 3];
          assert.ok(
            right.includes(writes) && docs_written === writes,
            `step ${step}, start ${starts}: ${writes}`,
          );
          next.kill();
        }
        if (steps <= step) return assert.ok(step > 3);
      }
    });

  it('meters what a deleted namespace has written once, also where its end is tried again', async () => {
    let process = await withTenant();
    await clock.run(process.put('a', [{ id: '1', text: 'x' }]));
    let failing = 3;
    process.store.plan = ({ operation, key }) =>
      operation === 'delete' && key.startsWith('ns/') && failing-- > 0 ? 'drop-before-apply' : undefined;
    await clock.run(process.ask('deleteNamespace', '', { argument: 'a' }));
    await clock.run(process.put('a', [{ id: '2', text: 'x' }]));
    await clock.advance(10_000);

    const before = await usage(process);
    await clock.run(process.host.flush(tenantId, '', ''));
    process.kill();
    process = await start();
    await clock.advance(2_000);
    const after = await usage(process);

    assert.ok(failing < 0);
    assert.deepEqual([before.writes, before.docs_written], [2, 2]);
    assert.deepEqual([after.writes, after.docs_written], [2, 2]);
    process.kill();
  });

  it('shows every day of the period, and their sums are the totals', async () => {
    const process = await withTenant();
    await clock.run(process.put('a', [{ id: '1', text: 'x' }]));
    await tell(process, note(2));
    clock.jump(2 * 86_400_000);
    await clock.run(process.put('a', [{ id: '2', text: 'x' }]));
    await tell(process, note(3, 1, '2024-02-12'));

    const { days, ...totals } = await usage(process, 'days=true');

    assert.deepEqual(
      days.map(({ day }: { day: string }) => day),
      Array.from({ length: 12 }, (_, i) => `2024-02-${String(i + 1).padStart(2, '0')}`),
    );
    for (const name of ['queries', 'writes', 'docs_written', 'write_bytes', 'cpu_ms', 'out_bytes']) {
      const sum = days.reduce((all: number, day: Record<string, number>) => all + (day[name] ?? 0), 0);
      assert.equal(sum, totals[name], name);
    }
    assert.deepEqual(
      days.filter(({ writes }: { writes: number }) => writes > 0).map(({ day }: { day: string }) => day),
      ['2024-02-10', '2024-02-12'],
    );
    assert.equal(days.at(-1).stored_bytes, totals.stored_bytes);
    process.kill();
  });

  it('is counted for each key by month, and goes with the key', async () => {
    const process = await withTenant();
    await tell(process, note(4));
    const [first] = (await clock.run(process.ask('listKeys', ''))).body;
    clock.jump(25 * 86_400_000);
    const [next] = (await clock.run(process.ask('listKeys', ''))).body;

    assert.deepEqual([first.used_queries, first.used_writes], [4, 1]);
    assert.match(first.last_used_at, /^2024-02-10T12:00:0/);
    assert.deepEqual([next.used_queries, next.used_writes], [0, 0]);
    assert.equal(next.last_used_at, first.last_used_at);
    process.kill();
  });

  it('ends with the plan: namespaces, and those made on one day', async () => {
    const process = await withTenant();
    const { free } = process.components.plans;
    Object.assign(process.components, {
      plans: { ...process.components.plans, free: { ...free, max_namespaces: 2, max_creates_day: 3 } },
    });
    const make = async (name: string) => (await clock.run(process.put(name, [{ id: '1', text: 'x' }]))).code;

    assert.deepEqual([await make('a'), await make('b'), await make('c')], ['', '', 'namespace_limit']);
    await clock.run(process.ask('deleteNamespace', '', { argument: 'a' }));
    assert.equal(await make('c'), '');
    await clock.run(process.ask('deleteNamespace', '', { argument: 'b' }));
    assert.equal(await make('d'), 'namespace_limit');
    clock.jump(86_400_000);
    assert.equal(await make('d'), '');
    process.kill();
  });
});

describe('what a namespace reports', () => {
  const known = { writes: 5, docsWritten: 50, bytesWritten: 500 };
  const report = (more: Partial<NamespaceReport>): NamespaceReport => ({
    namespaceId: 'n',
    writes: 5,
    docsWritten: 50,
    bytesWritten: 500,
    storedBytes: 0,
    days: [],
    flushed: false,
    ...more,
  });

  it('counts on the days on which it was written, as far as the tenant did not know it', () => {
    const usage = emptyUsage();
    const days = [
      { day: '2024-02-09', writes: 4, docs: 40, bytes: 400 },
      { day: '2024-02-10', writes: 3, docs: 30, bytes: 300 },
    ];

    meterWrites(usage, known, report({ writes: 10, docsWritten: 100, bytesWritten: 1_000, days }));

    const shown = [...usage.days].map(([day, { writes, docsWritten, writeBytes }]) => [
      day,
      writes,
      docsWritten,
      writeBytes,
    ]);
    assert.deepEqual(shown.sort(), [
      ['2024-02-09', 2, 20, 200],
      ['2024-02-10', 3, 30, 300],
    ]);
  });

  it('counts on the first day that it knows where it was written before', () => {
    const usage = emptyUsage();
    const days = [{ day: '2024-02-09', writes: 0, docs: 0, bytes: 0 }];

    meterWrites(usage, known, report({ writes: 6, docsWritten: 51, bytesWritten: 501, days }));

    assert.equal(usage.days.get('2024-02-09')?.writes, 1);
  });
});
