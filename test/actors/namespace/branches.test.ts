/** Branches, and links that stay at a version: what they share, whom it outlives, and what goes when. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { decodeManifest, encodeManifest } from '../../../actors/storage/manifest.ts';
import { keyOfObject } from '../../../actors/storage/object-ref.ts';
import { buried, objectsNamedBy, objectsOfManifest } from '../../../actors/storage/shared-objects.ts';
import { limits } from '../../../protocol/limits.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, InProcess, seededBytes } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

const hourMs = 3_600_000;
/** Every flush makes a segment, so that there is something to share. */
const small = { ...limits, manifestTailBytesMax: 300, memtableBytesMax: 200_000 };
let clock: FakeClock;
let truth: MemoryObjectStore;
let seed = 0;
let server: InProcess;

beforeEach(async () => {
  clock = new FakeClock();
  truth = new MemoryObjectStore(clock);
  seed = 0;
  server = await start();
  await clock.run(server.createTenant());
});

const start = () =>
  clock.run(InProcess.start({ store: truth, clock, random: seededBytes(++seed), limits: small }));
const make = (kind: 'branch' | 'link', name: string, body: object): Promise<Answer> =>
  clock.run(server.ask(`${kind}Namespace`, '', { argument: name, body }));
const remove = (name: string): Promise<Answer> =>
  clock.run(server.ask('deleteNamespace', '', { argument: name }));
const put = (name: string, docs: readonly object[], deletes: readonly string[] = []): Promise<Answer> =>
  clock.run(server.put(name, docs, deletes));
const list = (name: string): Promise<string[]> => clock.run(server.list(name));
const get = (name: string, id: string): Promise<Answer> => clock.run(server.get(name, id));
const describeIt = (name: string): Promise<Answer> => clock.run(server.ask('getNamespace', name));

const words = 'tide '.repeat(40);
const doc = (id: string, n: number) => ({ id, text: `${id} of ${n} ${words}`, meta: { n } });
const docs = (from: number, to: number, n = from) =>
  Array.from({ length: to - from }, (_, i) => doc(`d${from + i}`, n));

async function flushAll(): Promise<void> {
  await clock.advance(330_000);
}

async function hours(count: number): Promise<void> {
  clock.jump(count * hourMs);
  await clock.advance(120_000);
}

async function keys(prefix = 'ns/'): Promise<string[]> {
  return (await truth.list(prefix, { limit: 1_000 })).objects.map(({ key }) => key);
}

/** Objects that no manifest names, and those that one names and that are not there. */
async function misfits(): Promise<{ readonly unnamed: string[]; readonly missing: string[] }> {
  const there = await keys();
  const named = new Set<string>();
  const own = new Set<string>();
  for (const key of there.filter((each) => each.endsWith('/manifest'))) {
    const manifest = decodeManifest((await truth.get(key))?.bytes ?? new Uint8Array(), key);
    for (const each of objectsOfManifest(manifest)) own.add(each);
    for (const object of objectsNamedBy(manifest)) named.add(keyOfObject(manifest.namespaceId, object));
  }
  return {
    unnamed: there.filter((key) => !own.has(key)),
    missing: [...named].filter((key) => !there.includes(key)),
  };
}

const nothing = { unnamed: [], missing: [] };

describe('a link that is made while its source is deleted', () => {
  it('ends with it, whichever of the two the log has first', async () => {
    server.store.plan = ({ operation, key }) =>
      operation === 'create' && key.startsWith('log/') ? { delayMs: 50 } : undefined;
    for (let laterMs = 0; laterMs <= 300; laterMs += 10) {
      await put('n', docs(0, 3));
      const { version } = (await clock.run(server.count('n'))).body;
      const body = { source: 'n', version };
      const linking = server.ask('linkNamespace', '', { argument: 'pin', body });
      await clock.advance(laterMs);
      const removing = server.ask('deleteNamespace', '', { argument: 'n' });

      const [linked, removed] = await clock.run(Promise.all([linking, removing]));

      assert.equal(removed.status, 204);
      const manifests = (await keys()).filter((key) => key.endsWith('/manifest'));
      assert.deepEqual(manifests, [], `${laterMs} ms later: the link is ${linked.status}`);
      assert.equal((await get('pin', 'd0')).status, 404);
      if (linked.status === 201) assert.equal((await remove('pin')).status, 204);
    }
  });
});

describe('a branch', () => {
  it('begins as its source is, with what is in segments and what is in memory, and each goes its own way', async () => {
    await put('s', docs(0, 20));
    await flushAll();
    await put('s', [doc('d3', 100)], ['d4']);
    const stored = (await describeIt('s')).body.stored_bytes;

    const made = await make('branch', 'b', { source: 's' });

    assert.equal(made.status, 201);
    assert.deepEqual(made.body.branched, { source: 's', version: 2 });
    assert.deepEqual((await describeIt('b')).body.branched, { source: 's', version: 2 });
    const { body } = await describeIt('b');
    assert.ok(body.stored_bytes < stored / 2, `${body.stored_bytes} of ${stored}`);
    assert.deepEqual(await list('b'), await list('s'));
    assert.equal((await get('b', 'd3')).body.meta.n, 100);
    assert.equal((await get('b', 'd4')).status, 404);
    const written = await put('b', [doc('new', 1), doc('d5', 7)], ['d6']);
    assert.equal(written.body.version, 3);
    await put('s', [doc('d7', 8)]);
    assert.equal((await get('s', 'd6')).status, 200);
    assert.equal((await get('s', 'new')).status, 404);
    assert.equal((await get('s', 'd5')).body.meta.n, 0);
    assert.equal((await get('b', 'd7')).body.meta.n, 0);
    const filtered = await clock.run(server.count('b', { filter: { n: { gte: 7 } } }));
    assert.equal(filtered.body.count, 2 + 1 - 1);
    const sql = await clock.run(
      server.ask('sql', 'b', { body: { sql: 'SELECT COUNT(*), SUM(n) FROM docs' } }),
    );
    assert.deepEqual(sql.body.rows, [[19, 100 + 7 + 1]]);
  });

  it('outlives its source, restarts and compactions, and in the end nothing is left of either', async () => {
    await put('s', docs(0, 30));
    await flushAll();
    await make('branch', 'b', { source: 's' });
    await put('b', [], ['d1']);
    const expected = await list('b');
    await remove('s');
    assert.equal((await get('s', 'd2')).status, 404);
    await hours(30);
    assert.deepEqual(await list('b'), expected);
    assert.deepEqual(await misfits(), nothing);
    await clock.run(server.drain());
    server = await start();
    assert.deepEqual(await list('b'), expected);
    // The segment held a deleted document: it was rewritten for that alone, and after its grace nothing is held any more.
    await hours(13);
    await hours(5);
    assert.equal((await keys()).filter((key) => key.endsWith('/manifest')).length, 1);
    assert.deepEqual(await misfits(), nothing);
    await remove('b');
    assert.deepEqual(await keys(), []);
  });

  it('of a branch of a branch, fifty deep, reads the same, whoever in between is deleted', async () => {
    await put('b0', docs(0, 12));
    await flushAll();
    for (let at = 1; at <= 50; at++) {
      await make('branch', `b${at}`, { source: `b${at - 1}` });
      await put(`b${at}`, [doc(`own${at}`, at)], [`own${at - 2}`]);
    }
    const expected = await list('b50');
    assert.equal(expected.length, 12 + 2);
    for (let at = 0; at < 50; at++) await remove(`b${(at * 7) % 50}`);
    assert.deepEqual(await list('b50'), expected);
    server.kill();
    server = await start();
    await hours(25);
    assert.deepEqual(await list('b50'), expected);
    assert.deepEqual(await misfits(), nothing);
    await remove('b50');
    // Fifty let go one after the other, and each says so durably.
    await flushAll();
    assert.deepEqual(await keys(), []);
  });

  it('takes part of writes that go on: what was acknowledged before is in it, and a write is in it whole or not', async () => {
    await put('s', docs(0, 5));
    const writes = Array.from({ length: 40 }, (_, n) => server.put('s', docs(0, 5, n + 1)));
    const branches = Array.from({ length: 4 }, (_, at) =>
      server.ask('branchNamespace', '', { argument: `b${at}`, body: { source: 's' } }),
    );
    await clock.run(Promise.all(writes));
    for (const [at, { body }] of (await clock.run(Promise.all(branches))).entries()) {
      const found = await clock.run(server.search(`b${at}`, { limit: 10 }));
      assert.equal(found.body.version, body.branched.version);
      const numbers = new Set(found.body.hits.map(({ meta }: { meta: { n: number } }) => meta.n));
      assert.deepEqual([found.body.hits.length, numbers.size], [5, 1]);
    }
  });

  it('does not wait for the time of the next group of the log, and costs a PUT of it more', async () => {
    await put('s', docs(0, 5));
    await clock.advance(1_000);
    const slots = async () => (await truth.list('log/', { limit: 1_000 })).objects.length;
    const before = await slots();
    await put('s', [doc('d1', 2)]);
    const beganMs = clock.monotonic();

    await make('branch', 'b', { source: 's' });
    assert.ok(clock.monotonic() - beganMs < 10, `${clock.monotonic() - beganMs} ms`);
    assert.equal(await slots(), before + 2);

    // A link that follows has cost nothing before its name: that one waits.
    await make('link', 'l', { source: 's' });
    assert.ok(clock.monotonic() - beganMs >= 250, `${clock.monotonic() - beganMs} ms`);
  });

  it('of a name that is taken meanwhile leaves nothing', async () => {
    await put('s', docs(0, 20));
    await flushAll();
    const before = (await keys()).length;
    const race = ['s', 's', 's'].map((source) =>
      server.ask('branchNamespace', '', { argument: 'b', body: { source } }),
    );
    const statuses = (await clock.run(Promise.all(race))).map(({ status }) => status);

    assert.deepEqual(statuses.sort(), [201, 409, 409]);
    await flushAll();
    assert.deepEqual(await misfits(), nothing);
    assert.equal((await keys()).length, before + 1);
  });
});

describe('a link that stays at a version', () => {
  it('reads the same for ever, and others can be made at its version', async () => {
    await put('s', docs(0, 20));
    await flushAll();
    const made = await make('link', 'at1', { source: 's', version: 1 });
    assert.deepEqual(made.body.linked, { source: 's', version: 1, follows: false });
    const expected = await list('at1');
    for (let round = 0; round < 6; round++) {
      await put('s', docs(round * 3, round * 3 + 6, 50 + round), [`d${19 - round}`]);
      await flushAll();
    }
    await hours(48);
    assert.deepEqual(await list('at1'), expected);
    assert.equal((await get('at1', 'd0')).body.meta.n, 0);
    assert.deepEqual((await describeIt('at1')).body.linked, { source: 's', version: 1, follows: false });
    for (const [kind, name, source] of [
      ['link', 'again', 's'],
      ['link', 'of-link', 'at1'],
      ['branch', 'branch', 's'],
      ['branch', 'branch-2', 'at1'],
    ] as const) {
      const again = await make(kind, name, { source, version: 1 });
      assert.equal(again.status, 201, JSON.stringify(again));
      assert.deepEqual(again.body[kind === 'link' ? 'linked' : 'branched'].source, 's');
      assert.deepEqual(await list(name), expected);
    }
    assert.equal((await make('link', 'unpinned', { source: 'at1' })).body.linked.version, 1);
    assert.equal((await make('link', 'gone', { source: 's', version: 2 })).status, 422);
    assert.equal((await make('branch', 'gone', { source: 's', version: 3 })).status, 422);
    assert.equal((await make('link', 'gone', { source: 'at1', version: 7 })).status, 422);
    for (const name of ['at1', 'again', 'of-link']) await remove(name);
    await hours(25);
    assert.deepEqual(await list('branch-2'), expected);
    assert.deepEqual(await list('unpinned'), expected);
    assert.deepEqual(await misfits(), nothing);
  });

  it('is read while its source is deleted: each answer is right and whole, or 404, and from then on it is 404', async () => {
    await put('s', docs(0, 40));
    await flushAll();
    await make('link', 'stays', { source: 's', version: 1 });
    await make('link', 'follows', { source: 's' });
    const expected = await list('s');
    // Nothing is in memory: each read goes to the store, before, during and after the deletion.
    await clock.run(server.drain());
    server = await start();
    const reads = Array.from({ length: 12 }, (_, at) => at).flatMap((at) =>
      ['stays', 'follows'].map(async (name) => {
        await clock.sleep(at * 20);
        return server.search(name, { q: 'tide', limit: 100 });
      }),
    );
    const deleting = clock.sleep(100).then(() => server.ask('deleteNamespace', '', { argument: 's' }));
    const answers = await clock.run(Promise.all(reads));

    assert.equal((await clock.run(deleting)).status, 204);
    const statuses = new Set(answers.map(({ status }) => status));
    assert.deepEqual([...statuses].sort(), [200, 404]);
    for (const { status, body } of answers)
      if (status === 200)
        assert.deepEqual(body.hits.map(({ id }: { id: string }) => id).sort(), [...expected].sort());
    for (const name of ['stays', 'follows'])
      assert.equal((await clock.run(server.search(name, { q: 'tide' }))).status, 404);
    await hours(1);
    assert.deepEqual(await misfits(), nothing);
  });

  it('refuses writes, filters and SQL, and goes with its source', async () => {
    await put('s', docs(0, 20));
    await flushAll();
    await make('link', 'l', { source: 's', version: 1 });
    assert.equal((await put('l', [doc('a', 1)])).code, 'conflict');
    assert.equal((await clock.run(server.remove('l', ['d1']))).code, 'conflict');
    const update = await clock.run(server.ask('updateNamespace', 'l', { body: { embed: null } }));
    assert.equal(update.code, 'conflict');
    assert.equal((await clock.run(server.count('l', { filter: { n: 0 } }))).status, 422);
    const sql = await clock.run(server.ask('sql', 'l', { body: { sql: 'SELECT COUNT(*) FROM docs' } }));
    assert.equal(sql.status, 422);
    const counted = await clock.run(server.count('l', { q: 'tide' }));
    assert.deepEqual([counted.body.namespace, counted.body.count], ['l', 20]);

    await remove('s');

    assert.equal((await clock.run(server.count('l'))).status, 404);
    assert.equal((await get('l', 'd1')).status, 404);
    assert.equal((await describeIt('l')).status, 404);
    assert.deepEqual(await keys(), []);
    await put('s', docs(0, 1));
    assert.equal((await clock.run(server.count('l'))).status, 404);
    assert.equal((await remove('l')).status, 204);
    assert.equal((await put('l', docs(0, 1))).body.created, true);
  });
});

describe('a pin that nobody has', () => {
  /** A remnant that comes late, when its namespace was deleted with all that branched from it. */
  const late = async (pinned: { readonly namespaceId: string; readonly aheadMs: number }) => {
    await put('n', docs(0, 4));
    await flushAll();
    assert.equal((await make('branch', 'b', { source: 'n' })).status, 201);
    for (const key of await keys()) {
      if (!key.endsWith('/manifest')) continue;
      const bytes = (await truth.get(key))?.bytes ?? new Uint8Array();
      const manifest = decodeManifest(bytes, key);
      const [pin] = manifest.pins ?? [];
      if (pin === undefined) continue;
      for (const name of ['b', 'n']) assert.equal((await remove(name)).status, 204);
      await hours(2);
      const pins = [{ ...pin, namespaceId: pinned.namespaceId, atMs: clock.now() + pinned.aheadMs }];
      const remnant = { ...manifest, pins, ...buried({ ...manifest, pins }, clock.now()) };
      await truth.putIfAbsent(key, [encodeManifest(remnant)]);
      return key;
    }
    return assert.fail('no manifest has a pin');
  };
  const days = async (count: number) => {
    for (let passed = 0; passed < count * 24; passed += 6) await hours(6);
  };

  it('is taken out where its namespace never came to be, also if its time is ahead of ours', async () => {
    const key = await late({ namespaceId: '0'.repeat(32), aheadMs: 3 * hourMs });
    assert.deepEqual(await keys(), [key]);

    await days(4);

    assert.deepEqual(await keys(), []);
  });

  it('is taken out where its namespace has let go', async () => {
    await put('other', docs(0, 4));
    await flushAll();
    const others = await keys();
    const holder =
      others
        .find((key) => key.endsWith('/manifest'))
        ?.split('/')
        .at(-2) ?? '';
    const key = await late({ namespaceId: holder, aheadMs: 0 });
    assert.ok((await keys()).includes(key));

    await days(4);

    assert.deepEqual(
      (await keys()).filter((each) => !others.includes(each)),
      [],
    );
    assert.equal((await list('other')).length, 4);
  });
});

interface Model {
  readonly kind: 'namespace' | 'link' | 'pinned';
  readonly id: number;
  /** The source's, of a link; otherwise nobody's. */
  readonly sourceId: number;
  docs: Map<string, number>;
}

describe('random histories', () => {
  for (const round of [1, 2]) {
    it(`of writes, links, branches, deletions, time and crashes are those of a plain model (${round})`, async () => {
      const random = seededRandom(4_711 * round);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
      const model = new Map<string, Model>();
      let ids = 0;
      const alive = (link: Model): Model | undefined =>
        link.kind === 'namespace' ? link : [...model.values()].find(({ id }) => id === link.sourceId);
      const docsOf = (name: string): Map<string, number> | null => {
        const entry = model.get(name);
        if (entry === undefined) return null;
        const source = alive(entry);
        if (source === undefined) return null;
        return entry.kind === 'link' ? source.docs : entry.docs;
      };
      const names = Array.from({ length: 8 }, (_, i) => `n${i}`);
      const compare = async (name: string) => {
        const expected = docsOf(name);
        const found = await clock.run(server.search(name, { limit: 1_000 }));
        assert.equal(found.status, expected === null ? 404 : 200, `${name} ${JSON.stringify(found.body)}`);
        if (expected === null) return;
        const hits: [string, number][] = found.body.hits.map(
          ({ id, meta }: { id: string; meta: { n: number } }) => [id, meta.n],
        );
        assert.deepEqual(new Map(hits.sort()), new Map([...expected].sort()), name);
      };
      const write = async (name: string, step: number) => {
        const from = Math.floor(random() * 20);
        const made = docs(from, from + 1 + Math.floor(random() * 8), step);
        const deletes = [`d${Math.floor(random() * 28)}`];
        const { status } = await put(name, made, deletes);
        const entry = model.get(name);
        const isLink = entry !== undefined && entry.kind !== 'namespace';
        assert.equal(status, isLink ? (status === 404 ? 404 : 409) : 200);
        if (isLink) return;
        const target = entry ?? { kind: 'namespace', id: ++ids, sourceId: 0, docs: new Map() };
        model.set(name, target);
        target.docs = new Map(target.docs);
        for (const id of deletes) target.docs.delete(id);
        for (const { id } of made) target.docs.set(id, step);
      };
      const derive = async (kind: 'branch' | 'link', stays: boolean) => {
        const [name, source] = [pick(names), pick(names)];
        const from = model.get(source);
        const shown = from === undefined || docsOf(source) === null ? null : await describeIt(source);
        const version = stays && shown !== null ? shown.body.linked?.version : undefined;
        const body = version === undefined ? { source } : { source, version };
        const { status } = await make(kind, name, body);
        const expected = docsOf(source);
        if (name === source) return assert.equal(status, 422);
        if (model.has(name)) return assert.equal(status, 409);
        if (expected === null || from === undefined) return assert.equal(status, 404);
        assert.equal(status, 201);
        const sourceId = from.kind === 'namespace' ? from.id : from.sourceId;
        const isPinned = kind === 'link' && (version !== undefined || from.kind === 'pinned');
        const named = kind === 'branch' ? 'namespace' : isPinned ? 'pinned' : 'link';
        model.set(name, { kind: named, id: ++ids, sourceId, docs: new Map(expected) });
      };
      const restart = async () => {
        if (random() < 0.5) await clock.run(server.drain());
        else server.kill();
        server = await start();
      };
      for (let step = 0; step < 60; step++) {
        const chance = random();
        if (chance < 0.45) await write(pick(names), step);
        else if (chance < 0.62) await derive('branch', false);
        else if (chance < 0.69) await derive('link', false);
        else if (chance < 0.76) await derive('link', true);
        else if (chance < 0.84) {
          const name = pick(names);
          assert.equal((await remove(name)).status, model.delete(name) ? 204 : 404);
        } else if (chance < 0.94) await flushAll();
        else if (chance < 0.97) await restart();
        else await hours(pick([1, 13, 30]));
        for (const name of [pick(names), pick(names)]) await compare(name);
      }
      for (const name of names) await compare(name);
      await hours(30);
      await hours(30);
      for (const name of names) await compare(name);
      assert.deepEqual(await misfits(), nothing);
      for (const name of model.keys()) await remove(name);
      await hours(30);
      await hours(30);
      assert.deepEqual(await keys(), []);
    });
  }
});

describe('a crash between two steps', () => {
  for (const [what, operation, prefix] of [
    ['the pin', 'update', 'ns/'],
    ['the manifest of the branch', 'create', 'ns/'],
    ['the name', 'create', 'log/'],
  ] as const) {
    for (const when of ['drop-before-apply', 'error-after-apply'] as const) {
      it(`of making a branch, at ${what}, ${when}, leaves its source as it was, and in the end nothing else`, async () => {
        await put('s', docs(0, 20));
        await flushAll();
        const before = await list('s');
        let met = false;
        server.store.plan = (call) => {
          if (met) return { until: new Promise(() => {}) };
          met = call.operation === operation && call.key.startsWith(prefix);
          return met ? when : undefined;
        };
        void server.ask('branchNamespace', '', { argument: 'b', body: { source: 's' } });
        await clock.advance(5_000);
        assert.ok(met);
        server.kill();
        server = await start();
        await flushAll();
        const made = (await get('b', 'd0')).status === 200;
        if (made) assert.deepEqual(await list('b'), before);
        assert.deepEqual(await list('s'), before);
        await put('s', docs(0, 20, 9));
        await hours(30);
        await hours(30);
        assert.deepEqual(await misfits(), nothing);
        if (made) await remove('b');
        const manifest = (await keys()).find((key) => key.endsWith('/manifest')) ?? '';
        const { pins } = decodeManifest((await truth.get(manifest))?.bytes ?? new Uint8Array(), manifest);
        assert.deepEqual(pins ?? [], []);
        await remove('s');
        assert.deepEqual(await keys(paths.namespaces), []);
      });
    }
  }
});
