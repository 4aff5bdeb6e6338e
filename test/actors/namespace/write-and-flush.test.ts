import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import type { ActorComponents } from '../../../actors/actor/components.ts';
import { Ownership } from '../../../actors/actor/ownership.ts';
import { AppendRefused } from '../../../actors/log/group-commit.ts';
import type { LogClient } from '../../../actors/log/log-client.ts';
import { compactOnce } from '../../../actors/namespace/compact.ts';
import { flushNamespace, freeze } from '../../../actors/namespace/flush.ts';
import { loadBatch } from '../../../actors/namespace/loaded-batch.ts';
import { NamespaceState } from '../../../actors/namespace/namespace-state.ts';
import { openNamespace } from '../../../actors/namespace/open.ts';
import { findDocument } from '../../../actors/namespace/read-document.ts';
import { takeSnapshot } from '../../../actors/namespace/take-snapshot.ts';
import { WritePipeline } from '../../../actors/namespace/write-pipeline.ts';
import { scanNewestFirst } from '../../../actors/search/scan.ts';
import { ScanRoom } from '../../../actors/search/scan-room.ts';
import { sqlComponents } from '../../../actors/search/sql/sql-components.ts';
import { TimeSlice } from '../../../actors/search/time-slice.ts';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../actors/storage/block-fetch.ts';
import { BatchBuilder, documentId, documentText } from '../../../actors/storage/document-batch.ts';
import { FreshObjects } from '../../../actors/storage/fresh-objects.ts';
import { ReadDeadline } from '../../../actors/storage/read-deadline.ts';
import { openWarmCache } from '../../../actors/storage/warm-cache.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { KnownShares } from '../../../actors/thread/known-shares.ts';
import { MemoryBudget } from '../../../actors/thread/memory-budget.ts';
import { limits } from '../../../protocol/limits.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';
import { ByteGate } from '../../../src/base/byte-gate.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore, gate } from '../../support/faulty-object-store.ts';
import { graphFilesInPlace, InProcess, lanesInPlace, quiet, seededBytes } from '../../support/in-process.ts';

const identity = {
  tenantId: 1,
  name: 'n',
  namespaceId: 'ab'.repeat(16),
  createdAt: '2024-01-01T00:00:00.000Z',
};

let clock: FakeClock;
let truth: MemoryObjectStore;
let store: FaultyObjectStore;
let components: ActorComponents;
let state: NamespaceState;
let pipeline: WritePipeline;
let fresh: FreshObjects;
let flushedThrough: number;
let beforeBuild: () => Promise<void>;

/** A log that stores everything at once. */
function plainLog(): LogClient {
  let slot = 0;
  return {
    logId: 'log-a',
    append: async () => ({ logId: 'log-a', slot: ++slot, index: 0 }),
    confirmOpen: async () => true,
    seenOpen: async () => 0,
    replayTarget: async () => {},
    heard: async () => {},
    movedAway: async () => [],
    flushed: (_target, through) => {
      flushedThrough = through.slot;
    },
  };
}

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  store = new FaultyObjectStore(truth, clock);
  flushedThrough = 0;
  beforeBuild = async () => {};
  const memory = new MemoryBudget(1e9);
  fresh = new FreshObjects(memory, clock);
  components = {
    store,
    clock,
    random: seededBytes(4),
    logger: quiet,
    limits,
    log: plainLog(),
    shares: new KnownShares(clock),
    lanes: lanesInPlace(store, () => beforeBuild()),
    fetcher: new BlockFetcher({
      store,
      warmCache: null,
      cache: new BlockCache(1024 * 1024),
      fresh,
    }),
    warmCache: null,
    graphFiles: graphFilesInPlace(store),
    memory,
    sql: sqlComponents(memory, clock),
    queryMemory: new ByteGate({ max: 1e9, clock, waitersMax: 0 }),
    evidence: null,
    isOnOtherThread: () => false,
    ownership: new Ownership(clock, {
      version: 1,
      owners: { placement: 1, servers: ['a'], self: 'a' },
      others: [],
      removed: [],
      logs: ['log-a'],
    }),
    directory: {
      resolve: async () => null,
      lookUp: async () => assert.fail('no name is looked up'),
      confirm: async () => {},
      report: async () => {},
      reportHeld: async () => {},
      storedBytes: async () => 0,
      admitHosted: async () => {},
      providerKey: async () => null,
      setEmbed: async () => {},
      drop: async () => {},
      collect: async () => {},
      versionOf: async () => null,
      began: async () => {},
      nearBlocks: async () => [],
      share: async () => null,
      release: async () => {},
      read: async () => assert.fail('nothing is read elsewhere'),
      forget: async () => {},
    },
    threadLife: 'a thread',
    orderlyEnd: null,
    patterns: new QueryPatterns(),
    scanRoom: new ScanRoom(),
    cursorKeys: { present: Buffer.from('k'), previous: null },
    plans: builtInPlans,
    hasPayments: false,
    keyEncryptionKeys: { present: Buffer.alloc(32), previous: null },
  };
  state = new NamespaceState(identity, null);
  pipeline = new WritePipeline(components, state);
});

function batchOf(docs: readonly string[], deletes: readonly string[] = [], text = 'text') {
  const builder = new BatchBuilder();
  for (const id of docs)
    builder.addDocument({ id, text: Buffer.from(`${text} of ${id}`), meta: null, vector: null });
  for (const id of deletes) builder.addDelete(id);
  return loadBatch(builder.finish());
}

function submit(docs: readonly string[], deletes: readonly string[] = [], text = 'text') {
  return pipeline
    .inTurn(async () => pipeline.submit(batchOf(docs, deletes, text)))
    .then(({ applied }) => applied);
}

const write = (...args: Parameters<typeof submit>) => clock.run(submit(...args));

async function readAll(snapshot = takeSnapshot(state)): Promise<string[]> {
  const seen: string[] = [];
  const slice = new TimeSlice(clock, new ReadDeadline(clock, 60_000));
  await scanNewestFirst(
    snapshot,
    { below: Number.POSITIVE_INFINITY, slice, tally: emptyReadTally() },
    (document) => {
      seen.push(
        `${documentId(document.buffer, document.offset)}=${documentText(document.buffer, document.offset)}`,
      );
      // The walk gives way after each slice: this ends one.
      clock.jump(6);
      return true;
    },
  );
  return seen;
}

/** What a process that begins with the store alone would see. */
async function reopened(tally = emptyReadTally()): Promise<NamespaceState> {
  const options = {
    isNew: false,
    hasManifest: false,
    replayed: [],
    documentsKnown: 0,
    vector: null,
    embed: null,
    again: false,
    putAwayVersion: null,
    tally,
  };
  return openNamespace(components, identity, options);
}

/** Everything in memory into one segment. */
async function flushToSegment(): Promise<void> {
  freeze(state);
  await clock.run(flushNamespace(components, state));
}

test('what is not flushed is counted right, however flushes and writes overlap', async () => {
  await write(['a']);
  const first = state.unflushedBytes;
  freeze(state);
  await write(['b', 'c']);
  freeze(state);
  await write(['d']);
  const all = state.unflushedBytes;
  assert.ok(first > 0 && all > first);

  await clock.run(flushNamespace(components, state));
  assert.equal(state.unflushedBytes, all - first);
  await clock.run(flushNamespace(components, state));
  assert.ok(state.unflushedBytes > 0, 'the last write is in no manifest');
  await clock.run(flushNamespace(components, state));

  assert.equal(state.unflushedBytes, 0);
  assert.equal(flushedThrough, 3);
});

test('a memtable frozen while the tail is being committed is counted once', async () => {
  await write(['a']);
  const landing = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: landing.opened } : undefined);
  const flushing = flushNamespace(components, state);
  await clock.settle();
  freeze(state);
  landing.open();
  await clock.run(flushing);
  store.plan = () => undefined;
  await write(['b']);
  await clock.run(flushNamespace(components, state));

  assert.ok(state.unflushedBytes > 0, 'b is in no manifest');
  await clock.run(flushNamespace(components, state));
  assert.equal(state.unflushedBytes, 0);
});

test('an id deleted twice in one request was there once, wherever it lay', async () => {
  await write(['in-segment', 'other']);
  await flushToSegment();
  await write(['in-memory']);

  const segment = await write([], ['in-segment', 'in-segment']);
  const memory = await write([], ['in-memory', 'in-memory', 'nowhere']);

  assert.deepEqual([segment.deleted, memory.deleted], [1, 1]);
  assert.equal(state.liveDocuments, 1);
});

test('what a flush or a merge has just stored is read without the store', async () => {
  const ids = Array.from({ length: 12 }, (_, n) => `d${n}`);
  for (const id of ids) {
    await write([id]);
    await flushToSegment();
  }
  const documents = ids.map((id) => `${id}=text of ${id}`).reverse();
  const reads = () => store.calls.filter(({ operation }) => operation === 'get').length;
  const afterFlushes = reads();
  assert.equal(state.segments.length, ids.length);

  assert.deepEqual(await clock.run(readAll()), documents);
  assert.equal(reads(), afterFlushes);

  const keys = () => state.segments.map(({ reader }) => reader.objectKey);
  const keysBefore = keys();
  const inTurn = <T>(step: () => Promise<T>) => step();
  assert.equal(await clock.run(compactOnce(components, state, { inTurn, isQuiet: true })), true);
  const afterMerge = reads();
  assert.ok(state.segments.length < ids.length);
  for (const key of [...keysBefore, ...keys()]) assert.equal(fresh.has(key), keys().includes(key));
  assert.deepEqual(await clock.run(readAll()), documents);
  assert.equal(reads(), afterMerge);
});

test('rows replaced while their segment is being built are tombstones in it from the start', async () => {
  await write(['a', 'b', 'c']);
  const building = gate();
  beforeBuild = () => building.opened;
  freeze(state);
  const flushing = flushNamespace(components, state);
  await clock.settle();
  await write(['b'], ['c'], 'newer');
  assert.equal(state.liveDocuments, 2);

  building.open();
  await clock.run(flushing);

  assert.equal(state.segments[0]?.tombstones.count, 2);
  assert.equal(state.liveDocuments, 2);
  assert.deepEqual(await clock.run(readAll()), ['b=newer of b', 'a=text of a']);
  await clock.run(flushNamespace(components, state));
  assert.deepEqual(await clock.run(readAll(takeSnapshot(await reopened()))), ['b=newer of b', 'a=text of a']);
});

test('rows replaced while the manifest is being committed are tombstones when the segment is installed', async () => {
  await write(['a', 'b']);
  const landing = gate();
  store.plan = ({ key }) => (key.endsWith('manifest') ? { until: landing.opened } : undefined);
  freeze(state);
  const flushing = flushNamespace(components, state);
  await clock.settle();
  await write(['a'], ['b'], 'newer');
  landing.open();
  await clock.run(flushing);
  store.plan = () => undefined;

  assert.equal(state.liveDocuments, 1);
  assert.deepEqual(await clock.run(readAll()), ['a=newer of a']);
  await clock.run(flushNamespace(components, state));
  assert.deepEqual(await clock.run(readAll(takeSnapshot(await reopened()))), ['a=newer of a']);
});

test('a write that looked up its rows while a flush was installed looks again', async () => {
  // Nothing is cached, so that every look-up takes a read that can be held up.
  components = {
    ...components,
    fetcher: new BlockFetcher({ store, warmCache: null, cache: new BlockCache(0) }),
  };
  pipeline = new WritePipeline(components, state);
  await write(['a', 'b']);
  await flushToSegment();
  await write(['c']);
  freeze(state);
  const building = gate();
  beforeBuild = () => building.opened;
  const flushing = flushNamespace(components, state);
  await clock.settle();
  const reading = gate();
  let reads = 0;
  store.plan = ({ operation, key }) => {
    if (operation !== 'get' || !key.includes('/segment/')) return undefined;
    reads++;
    return { until: reading.opened };
  };
  const writing = submit(['a', 'c'], [], 'newer');
  await clock.settle();
  assert.ok(reads > 0);

  building.open();
  await clock.run(flushing);
  reading.open();
  await clock.run(writing);

  assert.deepEqual(await clock.run(readAll()), ['c=newer of c', 'a=newer of a', 'b=text of b']);
  assert.equal(state.liveDocuments, 3);
});

test('a durable write waits for a store that fails its reads, and is then applied whole', async () => {
  await write(['a', 'b']);
  await flushToSegment();
  const again = await reopened();
  let failures = 7;
  store.plan = ({ operation, key }) =>
    operation === 'get' && key.includes('/segment/') && failures-- > 0 ? 'drop-before-apply' : undefined;
  const slow = new WritePipeline(components, again);
  const { applied } = await slow.inTurn(async () => slow.submit(batchOf(['a'], ['b'], 'newer')));

  const { deleted } = await clock.run(applied);

  assert.equal(deleted, 1);
  assert.deepEqual(await clock.run(readAll(takeSnapshot(again))), ['a=newer of a']);
});

test('a durable write that meets damage closes the pipeline instead of trying for ever', async () => {
  await write(['a', 'b']);
  await flushToSegment();
  const { objects } = await truth.list('ns/', { limit: 10 });
  const key = objects.map((object) => object.key).find((name) => name.includes('/segment/')) ?? '';
  await truth.delete(key);
  const again = await reopened();
  components = {
    ...components,
    fetcher: new BlockFetcher({ store, warmCache: null, cache: new BlockCache(0) }),
  };
  const fresh = await reopened();
  const broken = new WritePipeline(components, fresh);
  const { applied } = await broken.inTurn(async () => broken.submit(batchOf(['a'], [], 'newer')));
  const behind = await broken.inTurn(async () => broken.submit(batchOf(['z'])));

  await assert.rejects(clock.run(applied));
  // Durable, but a manifest with it would hide the one before it.
  await assert.rejects(clock.run(behind.applied), { code: 'write_unknown' });

  assert.equal(broken.broken, true);
  assert.equal(fresh.counters.version, 1);
  assert.equal(again.counters.version, 1);
});

test('a snapshot sees exactly what was there, through writes, flushes and their installation', async () => {
  for (let n = 0; n < 40; n++) await write([`s${n}`]);
  await flushToSegment();
  for (let n = 0; n < 40; n++) await write([`f${n}`]);
  freeze(state);
  for (let n = 0; n < 40; n++) await write([`m${n}`]);
  await write(['s3', 'f3', 'm3'], ['s4', 'f4', 'm4'], 'second');
  const before = await clock.run(readAll());
  const snapshot = takeSnapshot(state);
  const versionBefore = snapshot.version;

  const seen: string[] = [];
  const slice = new TimeSlice(clock, new ReadDeadline(clock, 1e9));
  const walking = scanNewestFirst(
    snapshot,
    { below: Number.POSITIVE_INFINITY, slice, tally: emptyReadTally() },
    (d) => {
      seen.push(`${documentId(d.buffer, d.offset)}=${documentText(d.buffer, d.offset)}`);
      clock.jump(6);
      return true;
    },
  );
  let turns = 0;
  for (let step = 0; step < 30; step++) {
    await write([`s${step}`, `f${step}`, `m${step}`, 'new'], [`s${step + 1}`], `step ${step}`);
    if (step % 10 === 5) await clock.run(flushNamespace(components, state));
    turns++;
  }
  await clock.run(walking);

  assert.equal(turns, 30);
  assert.deepEqual(seen, before);
  assert.equal(snapshot.version, versionBefore);
  assert.equal(snapshot.documents, before.length);
  assert.notDeepEqual(await clock.run(readAll()), before);
});

test('delete and make again: the last word counts, also across segments', async () => {
  await write(['a'], [], 'first');
  await flushToSegment();
  assert.equal((await write([], ['a'])).deleted, 1);
  assert.equal((await write([], ['a'])).deleted, 0);
  await write(['a'], ['a'], 'second');
  await flushToSegment();
  await write(['a'], [], 'third');

  assert.deepEqual(await clock.run(readAll()), ['a=third of a']);
  await clock.run(flushNamespace(components, state));
  const after = await reopened();
  assert.deepEqual(await clock.run(readAll(takeSnapshot(after))), ['a=third of a']);
  assert.equal(after.counters.version, 5);
});

test('what a refused write would have done is nowhere, and the next one follows the last that counted', async () => {
  await write(['a']);
  const refusing = gate();
  const append = components.log.append;
  let refuse = true;
  Object.assign(components.log, {
    append: async (...args: Parameters<LogClient['append']>) => {
      if (!refuse) return append(...args);
      await refusing.opened;
      throw new AppendRefused('not-written');
    },
  });
  const one = pipeline.submit(batchOf(['b'])).applied;
  const two = pipeline.submit(batchOf(['c'])).applied;
  assert.ok(pipeline.overlaid('b'));
  const epoch = pipeline.epoch;
  refusing.open();
  await assert.rejects(clock.run(one), { code: 'unavailable' });
  await assert.rejects(clock.run(two), { code: 'unavailable' });

  assert.equal(pipeline.overlaid('b'), undefined);
  assert.ok(pipeline.epoch > epoch);
  assert.equal(pipeline.pendingBytes, 0);
  refuse = false;
  assert.equal((await write(['d'])).version, 2);
  assert.deepEqual(await clock.run(readAll()), ['d=text of d', 'a=text of a']);
});

test('written_at rises with every write though the clock stands still or goes back', async () => {
  await write(['a']);
  clock.jump(-10_000);
  await write(['b']);
  await write(['c']);

  const times: number[] = [];
  for (const id of ['a', 'b', 'c'])
    times.push((await findDocument(state, id, emptyReadTally()))?.writtenAt ?? 0);

  assert.deepEqual(
    times,
    [...new Set(times)].sort((a, b) => a - b),
  );
});

test('flushing a namespace that nothing was written to since changes no documents and keeps the counters', async () => {
  await write(['a'], ['nothing']);
  await clock.run(flushNamespace(components, state));
  const { counters } = state;
  await clock.run(flushNamespace(components, state));

  const after = await reopened();
  assert.deepEqual(after.counters, counters);
  assert.equal(after.liveDocuments, 1);
});

test('a patch that was merged with a write that is then refused is merged again', async () => {
  const process = await clock.run(InProcess.start({ store: truth, clock, random: seededBytes(8) }));
  await clock.run(process.createTenant());
  // The patch's second document lies in a segment, so that merging it takes a read.
  await clock.run(
    process.put('n', [
      { id: 'far', text: 'tide '.repeat(60_000) },
      { id: 'near', text: 'right' },
    ]),
  );
  const resolved = await clock.run(process.components.directory.resolve(7, 'n', null));
  await clock.run(process.host.flush(7, 'n', resolved?.namespaceId ?? ''));
  await clock.run(process.drain());
  const second = await clock.run(InProcess.start({ store: truth, clock, random: seededBytes(9) }));
  await clock.run(second.put('n', [{ id: 'warm-up', text: 'x' }]));
  const reading = gate();
  const refusing = gate();
  second.store.plan = ({ operation, key }) =>
    operation === 'get' && key.includes('/segment/') ? { until: reading.opened } : undefined;
  const { log } = second.components;
  const append = log.append.bind(log);
  let appends = 0;
  Object.assign(log, {
    append: async (...args: Parameters<LogClient['append']>) => {
      if (++appends > 1) return append(...args);
      await refusing.opened;
      throw new AppendRefused('busy');
    },
  });

  const refused = second.put('n', [{ id: 'near', text: 'wrong' }]);
  await clock.settle();
  const patching = second.patch('n', [
    { id: 'near', meta: { patched: true } },
    { id: 'far', meta: { patched: true } },
  ]);
  await clock.settle();
  refusing.open();
  const refusal = await clock.run(refused);
  reading.open();
  const patched = await clock.run(patching);

  assert.equal(refusal.code, 'write_busy');
  assert.equal(patched.status, 200);
  const { body } = await clock.run(second.get('n', 'near'));
  assert.deepEqual([body.text, body.meta], ['right', { patched: true }]);
  second.kill();
});

test('a client hears write_unknown after ten seconds, and the write is applied when the store is back', async () => {
  const process = await clock.run(InProcess.start({ store: truth, clock, random: seededBytes(8) }));
  await clock.run(process.createTenant());
  await clock.run(process.put('n', [{ id: 'a', text: 'x' }]));
  let away = true;
  process.store.plan = ({ operation }) => (away && operation === 'create' ? 'drop-before-apply' : undefined);
  const began = clock.monotonic();

  const unknown = await clock.run(process.put('n', [{ id: 'b', text: 'x' }]));

  assert.deepEqual([unknown.status, unknown.code], [503, 'write_unknown']);
  assert.equal(clock.monotonic() - began, 10_000);
  assert.deepEqual(await clock.run(process.list('n')), ['a']);
  const patched = process.patch('n', [{ id: 'b', meta: { n: 1 } }]);
  away = false;
  assert.equal((await clock.run(patched)).status, 200);
  assert.deepEqual(await clock.run(process.list('n')), ['b', 'a']);
  process.kill();
});

test('writers get write_busy while as much as may wait for its flush does', async () => {
  const building = gate();
  const options = { store: truth, clock, random: seededBytes(8), beforeBuild: () => building.opened };
  const process = await clock.run(InProcess.start(options));
  await clock.run(process.createTenant());
  const docs = Array.from({ length: 10_000 }, (_, i) => ({ id: `${i % 50}`, text: '' }));
  let busy = 0;
  let written = 0;
  for (let n = 0; n < 60 && busy === 0; n++) {
    const { status, code } = await clock.run(process.put('n', docs));
    if (status === 200) written++;
    else busy += code === 'write_busy' ? 1 : 100;
  }
  building.open();
  await clock.advance(5_000);

  assert.equal(busy, 1, `${written} writes were taken`);
  assert.equal((await clock.run(process.put('n', docs))).status, 200);
  assert.equal((await clock.run(process.count('n'))).body.count, 50);
  process.kill();
});

test('while the log waits for a flush, writers wait as soon as part of a memtable is behind it', async () => {
  const building = gate();
  const process = await clock.run(
    InProcess.start({
      store: truth,
      clock,
      random: seededBytes(8),
      beforeBuild: () => building.opened,
      limits: { ...limits, memtableBytesMax: 80_000, manifestTailBytesMax: 0, logAboveFloorBytesMax: 40_000 },
    }),
  );
  await clock.run(process.createTenant());
  const text = 'x'.repeat(1_000);
  const answers: string[] = [];
  for (let n = 0; n < 70; n++) {
    const { status, code } = await clock.run(process.put('n', [{ id: `d${n}`, text }]));
    answers.push(status === 200 ? 'taken' : code);
  }
  const taken = answers.indexOf('write_busy');
  building.open();
  await clock.advance(5_000);

  assert.ok(taken >= 40 && taken <= 65, `${taken} writes of a kilobyte were taken`);
  assert.ok(answers.slice(taken).every((answer) => answer === 'write_busy'));
  assert.equal((await clock.run(process.put('n', [{ id: 'later', text }]))).status, 200);
  assert.equal((await clock.run(process.count('n'))).body.count, taken + 1);
  process.kill();
});

test('a cached manifest is believed where the thread that cached it ended in order, and not where it died', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cached-manifest-'));
  const warmCache = openWarmCache({ folder, bytesMax: 1e7, log: quiet });
  const before = { ...components, warmCache, threadLife: 'died' };
  await write(['a']);
  await clock.run(flushNamespace(before, state));
  // What it cached last never got to the disk.
  await write(['b']);
  await clock.run(flushNamespace({ ...before, warmCache: null }, state));
  const opened = async (threadLife: string) => {
    components = {
      ...components,
      warmCache,
      log: { ...plainLog(), logId: 'log-b' },
      orderlyEnd: { logId: 'log-a', threadLife },
    };
    const tally = emptyReadTally();
    return { documents: await readAll(takeSnapshot(await reopened(tally))), gets: tally.storeGets };
  };

  // The successor of the thread that died, which never had the namespace open, ended in order.
  assert.deepEqual(await opened('successor'), { documents: ['b=text of b', 'a=text of a'], gets: 1 });
  assert.deepEqual(await opened(components.threadLife), {
    documents: ['b=text of b', 'a=text of a'],
    gets: 0,
  });
  await warmCache.close();
  rmSync(folder, { recursive: true });
});
