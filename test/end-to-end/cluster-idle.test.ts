/** What three real servers cost that nobody asks anything: calls of the object store by kind, counted. IDLE_SECONDS sets for how long. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiClient } from '../support/api-client.ts';
import { ServerCluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';

const seconds = Number(process.env.IDLE_SECONDS ?? 10);
/** Calls of one server since its start, by `operation kind`. */
type Calls = ReadonlyMap<string, number>;

describe('three servers that nobody asks anything', () => {
  let cluster: ServerCluster;
  /** Servers that start at once each look, before there is a view, whether there are logs already. */
  let atStart: readonly Calls[];

  before(async () => {
    cluster = await ServerCluster.start({ servers: 3 });
    atStart = await all();
    const { key } = await new ApiClient(cluster.servers[0]?.process.url ?? '').signup('ada@example.com');
    for (const client of cluster.clients(key))
      for (const name of ['a', 'b', 'c']) await client.put(name, [{ id: 'x', text: 'the tide' }]);
  });

  after(() => cluster.stop());

  async function callsOf(metricsUrl: string): Promise<Calls> {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    const samples = text.matchAll(
      /^tidebase_store_(puts|gets|deletes|lists)_total\{kind="([^"]+)"\} ([0-9]+)$/gm,
    );
    return new Map([...samples].map(([, operation, kind, count]) => [`${operation} ${kind}`, Number(count)]));
  }

  const all = () => Promise.all(cluster.servers.map(({ metricsUrl }) => callsOf(metricsUrl)));

  /** What was called in between, without what was not. */
  const between = (from: Calls, to: Calls): Calls =>
    new Map(
      [...to].map(([name, count]) => [name, count - (from.get(name) ?? 0)] as const).filter(([, n]) => n > 0),
    );

  it('put nothing but their leases, and get nothing but the view and leases', async (t) => {
    // Soon after a start each looks once for what its own log has left, and one of them for what ended processes have.
    const logLists = (calls: Calls | undefined) => calls?.get('lists log') ?? 0;
    await eventually(
      async () => (await all()).every((calls, at) => logLists(calls) > logLists(atStart[at])),
      'all have looked at their logs',
    );
    const forAll = (await all()).filter((calls) => (calls.get('lists cluster/lease') ?? 0) > 0);
    assert.equal(forAll.length, 1, 'one server looks for what ended processes have left');
    await sleep(3_000);
    const [from, began] = [await all(), performance.now()];

    await sleep(1_000 * seconds);

    const to = await all();
    // The last round of each may be the first of the next second.
    const rounds = Math.ceil((performance.now() - began) / 1_000) + 1;
    for (const [at, before] of from.entries()) {
      const made = between(before, to[at] ?? new Map());
      t.diagnostic(
        `server ${at + 1} in ${rounds - 1} s: ${[...made].map(([name, count]) => `${count} ${name}`).join(', ')}`,
      );
      assert.deepEqual([...made.keys()].sort(), [
        'gets cluster/lease',
        'gets cluster/view',
        'puts cluster/lease',
      ]);
      assert.ok((made.get('puts cluster/lease') ?? 0) <= rounds);
      assert.ok((made.get('gets cluster/view') ?? 0) <= rounds);
      assert.ok((made.get('gets cluster/lease') ?? 0) <= rounds * cluster.servers.length);
      // And it is alive.
      assert.ok((made.get('puts cluster/lease') ?? 0) >= (rounds - 2) / 3);
    }
  });
});
