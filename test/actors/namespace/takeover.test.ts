/**
 * Processes that are killed, paused or simply overtaken while they write, over a store that fails by chance. Each write
 * puts two documents of its own. At the end: what was acknowledged is there, what was called unwritten is not, and no
 * write is there by half.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { randomFaults } from '../../support/faulty-object-store.ts';
import { type Answer, InProcess, seededBytes } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

interface Written {
  readonly name: string;
  readonly namespace: string;
  answer: Answer | null;
}

const namespaces = ['one', 'two', 'three'];
/** Set to a number to run more seeds than the suite does; the simulation does the same with whole servers. */
const moreSeeds = Number(process.env.TIDEBASE_TEST_SEEDS ?? 0);
const seeds = Array.from({ length: 4 + moreSeeds }, (_, i) => 1_000 + i);

/** What may be known of a write that got no answer or one of these. */
const unknownCodes = new Set(['write_unknown', 'internal']);

for (const seed of seeds) {
  test(`no acknowledged write is lost and no refused one appears, whoever takes over (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const clock = new FakeClock();
    const truth = new MemoryObjectStore();
    const faults = random() < 0.3 ? 0 : random() * 0.25;
    const processes: InProcess[] = [];
    const written: Written[] = [];
    const start = async (): Promise<InProcess> => {
      const number = processes.length;
      const made = await clock.run(
        InProcess.start({ store: truth, clock, random: seededBytes(seed * 100 + number) }),
      );
      processes.push(made);
      return made;
    };
    const put = (process: InProcess) => {
      const namespace = namespaces[Math.floor(random() * namespaces.length)] ?? 'one';
      const entry: Written = { name: `w${written.length}`, namespace, answer: null };
      written.push(entry);
      const filler = random() < 0.15 ? ' tide'.repeat(40_000) : '';
      const docs = [1, 2].map((half) => ({ id: `${entry.name}-${half}`, text: `${entry.name}${filler}` }));
      void process.put(namespace, docs).then((answer) => {
        entry.answer = answer;
      });
    };

    let current = await start();
    await clock.run(current.createTenant());
    current.store.plan = randomFaults(random, faults, 600);
    for (let step = 0; step < 60; step++) {
      // Mostly the newest process is asked, sometimes one that does not know yet that it was overtaken.
      for (let n = Math.floor(random() * 4); n > 0; n--)
        put(random() < 0.8 ? current : (processes[Math.floor(random() * processes.length)] ?? current));
      await clock.advance(random() * 400);
      if (random() < 0.1) {
        const fate = random();
        if (fate < 0.4) current.kill();
        else if (fate < 0.6) current.store.plan = () => ({ delayMs: 2_000 + random() * 9_000 });
        current = await start();
        current.store.plan = randomFaults(random, faults, 600);
      }
      if (random() < 0.05) await clock.advance(310_000);
    }
    await clock.advance(30_000);

    const last = await start();
    for (const old of processes.slice(0, -1)) old.kill();
    const found = new Set<string>();
    for (const namespace of namespaces) {
      const { status } = await clock.run(last.search(namespace, { limit: 1 }));
      if (status === 404) continue;
      for (const id of await clock.run(last.list(namespace))) found.add(`${namespace}/${id}`);
    }
    for (const { name, namespace, answer } of written) {
      const halves = [1, 2].filter((half) => found.has(`${namespace}/${name}-${half}`)).length;
      const note = `${name}: ${answer?.status} ${JSON.stringify(answer?.body)}`;
      assert.notEqual(halves, 1, `half of ${note}`);
      if (answer?.status === 200) assert.equal(halves, 2, `lost ${note}`);
      else if (answer !== null && !unknownCodes.has(answer.code)) assert.equal(halves, 0, `appeared ${note}`);
    }
    const internal = written.filter(({ answer }) => answer?.code === 'internal');
    assert.deepEqual(
      internal.map(({ answer }) => answer?.body),
      [],
    );

    // All old logs end up done, and the last process can end in order.
    await clock.advance(90_000);
    await clock.run(last.drain());
    const after = await start();
    assert.deepEqual(
      after.joined.standing.removed.map(({ logId }) => logId),
      [last.joined.identity.logId],
    );
    after.kill();
  });
}
