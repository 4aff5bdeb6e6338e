/**
 * A namespace against a naive twin: random writes, flushes and restarts, and after each step what is read must be what
 * the twin holds. `faults` is the probability with which a call to the store goes wrong.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { randomFaults } from '../../support/faulty-object-store.ts';
import { type Answer, InProcess, seededBytes, tenantId } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

interface Known {
  text: string;
  meta: Record<string, unknown>;
  /** Where it stands among all documents: later is newer. */
  place: number;
}

class Model {
  documents = new Map<string, Known>();
  version = 0;
  docsWritten = 0;
  place = 0;

  put(
    docs: readonly { id: string; text: string; meta: Record<string, unknown> }[],
    deletes: readonly string[],
  ): number {
    const deleted = this.remove(deletes);
    for (const { id, text, meta } of docs) this.documents.set(id, { text, meta, place: ++this.place });
    this.docsWritten += docs.length;
    return deleted;
  }

  patch(docs: readonly { id: string; text?: string; meta?: Record<string, unknown> }[]): void {
    for (const { id, text, meta } of docs) {
      const old = this.documents.get(id);
      assert.ok(old);
      const merged = { ...old.meta, ...meta };
      for (const [key, value] of Object.entries(merged)) if (value === null) delete merged[key];
      this.documents.set(id, { text: text ?? old.text, meta: merged, place: ++this.place });
    }
    this.version++;
    this.docsWritten += docs.length;
  }

  remove(ids: readonly string[]): number {
    let deleted = 0;
    for (const id of ids) if (this.documents.delete(id)) deleted++;
    this.docsWritten += ids.length;
    this.version++;
    return deleted;
  }

  get newestFirst(): string[] {
    return [...this.documents].sort((a, b) => b[1].place - a[1].place).map(([id]) => id);
  }
}

const ids = Array.from({ length: 14 }, (_, i) => `id-${i}`);

interface World {
  readonly clock: FakeClock;
  readonly truth: MemoryObjectStore;
  readonly random: () => number;
  readonly model: Model;
  process: InProcess;
  starts: number;
  readonly faults: number;
}

const pick = <T>(random: () => number, from: readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T;
const some = (random: () => number, max: number) =>
  Array.from({ length: 1 + Math.floor(random() * max) }, () => pick(random, ids));

function newDocument(world: World, id: string) {
  const { random } = world;
  const filler = random() < 0.35 ? ` ${'fill '.repeat(20_000)}` : '';
  return {
    id,
    text: `text ${Math.floor(random() * 1e9)}${filler}`,
    meta: { n: Math.floor(random() * 5), [pick(random, ids)]: 1 },
  };
}

async function startProcess(world: Omit<World, 'process'>): Promise<InProcess> {
  const { clock, truth } = world;
  const options = {
    store: truth,
    clock,
    random: seededBytes(world.starts++ + 500),
    recover: world.random() < 0.7,
  };
  const process = await clock.run(InProcess.start(options));
  process.store.plan = randomFaults(world.random, world.faults, 300);
  return process;
}

async function makeWorld(seed: number, faults: number): Promise<World> {
  const clock = new FakeClock();
  const truth = new MemoryObjectStore();
  const random = seededRandom(seed);
  const rest = { clock, truth, random, model: new Model(), starts: 0, faults };
  const process = await startProcess(rest);
  const { plan } = process.store;
  process.store.plan = () => undefined;
  await clock.run(process.createTenant());
  process.store.plan = plan;
  return { ...rest, process };
}

function ok(answer: Answer): Answer['body'] {
  assert.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 1_500));
  return answer.body;
}

async function step(world: World): Promise<string> {
  const { random, model, clock, process } = world;
  const kind = random();
  if (kind < 0.35) {
    const docs = some(random, 4).map((id) => newDocument(world, id));
    const deletes = random() < 0.3 ? some(random, 3) : [];
    const before = model.documents.size;
    const deleted = model.put(docs, deletes);
    const body = ok(await clock.run(process.put('n', docs, deletes)));
    assert.deepEqual([body.written, body.deleted, body.version], [docs.length, deleted, model.version]);
    return `put ${docs.length} over ${before}`;
  }
  if (kind < 0.5) {
    const live = model.newestFirst;
    if (live.length === 0) return 'nothing to patch';
    const patches = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
      const id = pick(random, live);
      return random() < 0.5
        ? { id, meta: { n: null, p: Math.floor(random() * 9) } }
        : { id, text: `patched ${random()}` };
    });
    model.patch(patches);
    ok(await patchUntilRead(world, patches));
    return `patch ${patches.length}`;
  }
  if (kind < 0.62) {
    if (model.version === 0) return 'nothing to delete from';
    const gone = some(random, 3);
    const deleted = model.remove(gone);
    const body = ok(await clock.run(process.remove('n', gone)));
    assert.deepEqual([body.written, body.deleted, body.version], [0, deleted, model.version]);
    return `delete ${gone.length}`;
  }
  if (kind < 0.75) return burst(world);
  if (kind < 0.9) {
    await flush(world);
    return 'flush';
  }
  const orderly = random() < 0.4;
  // A drain that fails half-way is as good as a kill.
  if (orderly) await clock.run(process.drain().catch(() => {}));
  process.kill();
  world.process = await startProcess(world);
  return orderly ? 'drain and restart' : 'kill and restart';
}

async function flush(world: World): Promise<void> {
  const { process, clock } = world;
  const resolved = await clock.run(process.components.directory.resolve(tenantId, 'n', null));
  if (resolved === null) return;
  await clock.run(process.host.flush(tenantId, 'n', resolved.namespaceId)).catch((error: unknown) => {
    if (!(error instanceof StoreError)) throw error;
  });
}

/** A patch reads what it changes; while the store does not answer nothing is written. */
async function patchUntilRead(world: World, patches: readonly object[]): Promise<Answer> {
  for (;;) {
    const answer = await world.clock.run(world.process.patch('n', patches));
    if (answer.code !== 'unavailable' || world.faults === 0) return answer;
  }
}

/** Writes that do not wait for each other, with a flush among them. */
async function burst(world: World): Promise<string> {
  const { random, model, clock, process } = world;
  const answers: Promise<Answer>[] = [];
  const flushing = random() < 0.5 ? flush(world) : null;
  for (let n = 0; n < 6; n++) {
    const live = model.newestFirst;
    // With faults a patch may fail to read what it changes and would have to be sent again, out of its turn.
    if (live.length > 0 && world.faults === 0 && random() < 0.4) {
      const patches = [{ id: pick(random, live), meta: { burst: n } }];
      model.patch(patches);
      answers.push(process.patch('n', patches));
    } else if (model.version > 0 && random() < 0.3) {
      const gone = [pick(random, ids)];
      model.remove(gone);
      answers.push(process.remove('n', gone));
    } else {
      const docs = some(random, 2).map((id) => newDocument(world, id));
      model.put(docs, []);
      answers.push(process.put('n', docs));
    }
    // Requests reach the actor in the order in which they were sent; how they are parsed must not change that.
    await clock.settle();
  }
  for (const answer of await clock.run(Promise.all(answers))) ok(answer);
  if (flushing !== null) await clock.run(flushing);
  return 'burst';
}

async function check(world: World, history: readonly string[]): Promise<void> {
  const { process, clock, model, random } = world;
  const plan = process.store.plan;
  process.store.plan = () => undefined;
  const note = () => history.slice(-12).join(' | ');
  if (model.version === 0) return;
  const expected = model.newestFirst;
  assert.deepEqual(await clock.run(process.list('n', 1 + Math.floor(random() * 20))), expected, note());
  const count = ok(await clock.run(process.count('n')));
  assert.deepEqual(
    [count.count, count.docs, count.version],
    [expected.length, expected.length, model.version],
    note(),
  );
  assert.deepEqual(count.ids, expected.slice(0, 10), note());
  const n = Math.floor(random() * 5);
  const filtered = ok(await clock.run(process.count('n', { filter: { n } })));
  assert.equal(
    filtered.count,
    [...model.documents.values()].filter(({ meta }) => meta.n === n).length,
    note(),
  );
  const id = pick(random, ids);
  const known = model.documents.get(id);
  const found = await clock.run(process.get('n', id));
  assert.equal(found.status, known === undefined ? 404 : 200, note());
  if (known !== undefined)
    assert.deepEqual([found.body.text, found.body.meta], [known.text, known.meta], note());
  const described = ok(await clock.run(process.ask('getNamespace', 'n')));
  assert.equal(described.docs_written, model.docsWritten, note());
  const { hits } = ok(await clock.run(process.search('n', { limit: 1_000 })));
  const times = hits.map((hit: { written_at: string }) => hit.written_at);
  assert.deepEqual(times, [...times].sort().reverse(), note());
  process.store.plan = plan;
}

/** Set to a number to run more seeds than the suite does. */
const moreSeeds = Number(process.env.TIDEBASE_TEST_SEEDS ?? 0);
const runs = Array.from({ length: 6 + moreSeeds }, (_, i) => ({
  seed: 101 + i,
  faults: [0, 0.08, 0.2][i % 3] ?? 0,
}));

for (const { seed, faults } of runs) {
  test(`a namespace is its naive twin through writes, flushes and restarts (seed ${seed}, faults ${faults})`, async () => {
    const world = await makeWorld(seed, faults);
    const history: string[] = [];
    for (let n = 0; n < 90; n++) {
      try {
        history.push(await step(world));
      } catch (error) {
        throw new Error(`seed ${seed}, step ${n}, after ${history.slice(-12).join(' | ')}`, { cause: error });
      }
      await check(world, [`seed ${seed} step ${n}`, ...history]);
    }
    world.process.kill();
  });
}
