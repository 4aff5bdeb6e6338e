/**
 * A store that servers write to, small enough to be understood at a glance: logs with slots and blobs, manifests with
 * watermarks and segments, floors, collection, merges, drops, restarts. It keeps the order of the commit protocol and not its
 * formats, takes a step wherever it is told to, and can say what any copy of it holds.
 */
import assert from 'node:assert/strict';
import type { Clock } from '../../src/base/clock.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import { joinCluster } from '../../src/cluster/join.ts';
import { readView } from '../../src/cluster/view.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import type { ObjectStore, PutResult } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readFloor, writeFloor } from '../../src/stored/log-floor.ts';
import {
  decodeLogObject,
  encodeLogObject,
  type LogRecord,
  type RecordHead,
} from '../../src/stored/log-object.ts';

interface Written {
  readonly namespace: string;
  readonly does: 'create' | 'put' | 'import' | 'drop';
  /** The documents of a put; those of an import are in its segment. */
  readonly documents: readonly number[];
  /** The key of what holds the documents, where it is not the record. */
  readonly elsewhere: string | null;
}

interface WrittenManifest {
  readonly applied: Readonly<Record<string, number>>;
  readonly segments: readonly string[];
}

interface LiveNamespace {
  readonly id: string;
  readonly unflushed: { readonly slot: number; readonly record: Written }[];
}

const retiredMs = 15 * 60_000;
type Documents = ReadonlyMap<string, readonly number[]>;

export class WrittenStore {
  readonly memory: MemoryObjectStore;
  readonly #clock: Clock & { pass(ms: number): void };
  readonly #random: () => number;
  readonly #live = new Map<string, LiveNamespace>();
  readonly #retired: { readonly key: string; readonly atMs: number }[] = [];
  readonly #garbage: string[] = [];
  #logId = '';
  #slot = 0;
  #made = 0;
  #documents = 0;
  /** What there was after each slot of all logs, one after the other. */
  readonly history: { readonly logId: string; readonly slot: number; readonly documents: Documents }[] = [];
  #state: Documents = new Map();

  constructor(clock: Clock & { pass(ms: number): void }, random: () => number) {
    this.memory = new MemoryObjectStore(clock);
    this.#clock = clock;
    this.#random = random;
  }

  /** A server starts: it seals the log of the one before, and takes all of it over. */
  async start(): Promise<void> {
    const { memory: store } = this;
    const before = this.#logId;
    const log = {
      seal: async (logId: string) => {
        const slot = logId === before ? ++this.#slot : 0;
        await this.#createBytes(paths.logObject(logId, slot), logBytes(logId, slot, null));
        this.#note(logId, slot);
        return slot;
      },
      doneAmong: async (logIds: readonly string[]) => {
        const done: string[] = [];
        for (const logId of logIds) if (await store.get(paths.logDone(logId))) done.push(logId);
        return done;
      },
    };
    const random = { bytes: (length: number) => Buffer.from(Array.from({ length }, () => this.#below(256))) };
    const joined = await joinCluster(
      { store, clock: this.#clock, random: random as never, log: log as never },
      'server',
      'here',
    );
    this.#logId = joined.identity.logId;
    this.#slot = 0;
    for (const namespace of this.#live.values()) await this.#flush(namespace, before);
    if (before !== '') {
      await this.#create(paths.logDone(before), '1');
      await this.#collect(before, Number.POSITIVE_INFINITY);
    }
  }

  /** One thing that a server does, by chance. */
  async step(): Promise<void> {
    const [namespace] = [...this.#live.values()].sort(() => this.#random() - 0.5);
    const dice = this.#random();
    this.#clock.pass(dice < 0.02 ? this.#below(400_000) : this.#below(2_000));
    if (namespace === undefined || dice < 0.05) return this.#createNamespace();
    if (dice < 0.5) return this.#put(namespace);
    if (dice < 0.58) return this.#import(namespace);
    if (dice < 0.75) return this.#flush(namespace, this.#logId);
    if (dice < 0.82) return this.#merge(namespace);
    if (dice < 0.92) return this.#clean();
    if (dice < 0.96) return this.#drop(namespace);
    if (dice < 0.965) return this.start();
  }

  async #createNamespace(): Promise<void> {
    const id = String(++this.#made).padStart(32, '0');
    this.#live.set(id, { id, unflushed: [] });
    await this.#append({ namespace: id, does: 'create', documents: [], elsewhere: null });
  }

  async #put({ id }: LiveNamespace): Promise<void> {
    const documents = [++this.#documents, ++this.#documents];
    const isLarge = this.#random() < 0.2;
    const blob = isLarge ? paths.logBlob(this.#logId, `blob${this.#documents}`) : null;
    if (blob !== null) await this.#create(blob, JSON.stringify(documents));
    await this.#append({ namespace: id, does: 'put', documents: isLarge ? [] : documents, elsewhere: blob });
  }

  async #import({ id }: LiveNamespace): Promise<void> {
    const documents = [++this.#documents];
    const key = await this.#segment(id, documents);
    await this.#append({ namespace: id, does: 'import', documents, elsewhere: key });
  }

  async #append(record: Written): Promise<void> {
    const slot = ++this.#slot;
    await this.#createBytes(paths.logObject(this.#logId, slot), logBytes(this.#logId, slot, record));
    this.#live.get(record.namespace)?.unflushed.push({ slot, record });
    const documents = await documentsOf(this.memory, record);
    this.#state = applied(this.#state, record, documents);
    this.#note(this.#logId, slot);
  }

  #note(logId: string, slot: number): void {
    this.history.push({ logId, slot, documents: this.#state });
  }

  async #flush(namespace: LiveNamespace, logId: string): Promise<void> {
    const { id, unflushed } = namespace;
    const last = unflushed.at(-1);
    if (last !== undefined) {
      const documents: number[] = [];
      const imported: string[] = [];
      for (const { record } of unflushed.splice(0)) {
        if (record.does === 'import' && record.elsewhere !== null) imported.push(record.elsewhere);
        else documents.push(...(await documentsOf(this.memory, record)));
      }
      const made = documents.length > 0 ? [await this.#segment(id, documents)] : [];
      await this.#commit(id, (manifest) => ({
        applied: { ...manifest.applied, [logId]: last.slot },
        segments: [...manifest.segments, ...imported, ...made],
      }));
    }
    if (logId !== this.#logId || this.#random() < 0.3) return;
    const waiting = [...this.#live.values()].flatMap((other) => other.unflushed.map(({ slot }) => slot));
    const floor = Math.min(this.#slot, ...waiting.map((slot) => slot - 1));
    await writeFloor(this.memory, logId, { floor, placement: 1 });
    await this.#collect(logId, floor);
  }

  /** Blobs first, then slots; some are left for later. */
  async #collect(logId: string, floor: number): Promise<void> {
    const { objects } = await this.memory.list(paths.logFolder(logId), { limit: 1_000 });
    const slots = objects.filter(({ key }) => /\/[0-9]{20}$/.test(key) && Number(key.slice(-20)) <= floor);
    for (const { key } of slots) {
      const record = await readSlot(this.memory, key);
      if (record === null) continue;
      if (record.elsewhere?.startsWith(paths.logs) === true) this.#garbage.push(record.elsewhere);
      this.#garbage.push(key);
    }
    if (this.#random() < 0.7) await this.#clean();
  }

  async #merge({ id }: LiveNamespace): Promise<void> {
    const manifest = await readManifest(this.memory, id);
    if (manifest.segments.length < 2) return;
    const parts: number[][] = [];
    for (const key of manifest.segments) parts.push(JSON.parse((await read(this.memory, key)) ?? 'null'));
    const merged = await this.#segment(id, parts.flat());
    await this.#commit(id, () => ({ ...manifest, segments: [merged] }));
    for (const key of manifest.segments) this.#retired.push({ key, atMs: this.#clock.monotonic() });
  }

  async #drop({ id }: LiveNamespace): Promise<void> {
    await this.#append({ namespace: id, does: 'drop', documents: [], elsewhere: null });
    this.#live.delete(id);
    await this.memory.delete(paths.namespaceManifest(id));
    const { objects } = await this.memory.list(paths.namespaceFolder(id), { limit: 1_000 });
    this.#garbage.push(...objects.map(({ key }) => key));
  }

  async #clean(): Promise<void> {
    const now = this.#clock.monotonic();
    while (this.#retired[0] !== undefined && this.#retired[0].atMs + retiredMs <= now)
      this.#garbage.push(this.#retired.shift()?.key ?? '');
    for (const key of this.#garbage.splice(0)) await this.memory.delete(key);
  }

  async #segment(id: string, documents: readonly number[]): Promise<string> {
    const key = paths.namespaceSegment(id, String(++this.#made).padStart(32, '0'));
    await this.#create(key, JSON.stringify(documents));
    return key;
  }

  async #commit(id: string, change: (manifest: WrittenManifest) => WrittenManifest): Promise<void> {
    const key = paths.namespaceManifest(id);
    const found = await this.memory.get(key);
    const bytes = [Buffer.from(JSON.stringify(change(await readManifest(this.memory, id))))];
    const put: PutResult =
      found === null
        ? await this.memory.putIfAbsent(key, bytes)
        : await this.memory.putIfMatch(key, bytes, found.etag);
    assert.equal(put.kind, 'stored');
  }

  #create(key: string, text: string): Promise<void> {
    return this.#createBytes(key, Buffer.from(text));
  }

  async #createBytes(key: string, bytes: Uint8Array): Promise<void> {
    const put = await this.memory.putIfAbsent(key, [bytes]);
    assert.equal(put.kind, 'stored', key);
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }
}

/** A log object as servers write it, with one record; without one it is a seal. */
function logBytes(logId: string, slot: number, record: Written | null): Uint8Array {
  const kind = record === null ? 'seal' : 'group';
  const header = {
    logId,
    slot,
    kind,
    placement: 1,
    previousChecksum: 0n,
    batchId: '0'.repeat(32),
  } as const;
  return encodeLogObject(header, record === null ? [] : [encodedRecord(record)]).bytes;
}

function encodedRecord({ namespace, does, documents, elsewhere }: Written): LogRecord {
  const head: RecordHead = {
    tenantId: 1,
    namespace: '',
    namespaceId: '',
    version: 1,
    blob: null,
    detail: null,
  };
  const own = { ...head, namespace: 'name', namespaceId: namespace, detail: [0, 0] };
  if (does === 'drop') {
    const taken = { writes: 0, docsWritten: 0, bytesWritten: 0 };
    const event = {
      kind: 'namespace-deleted',
      name: 'name',
      namespaceId: namespace,
      taken,
      day: '2026-11-23',
    };
    return { head, payload: packMessage(event) };
  }
  if (does === 'import') {
    const id = elsewhere?.split('/').at(-1) ?? '';
    const size = JSON.stringify(documents).length;
    return { head: { ...own, detail: [0, 0, 'import'] }, payload: packMessage({ id, size }) };
  }
  const blob = elsewhere === null ? null : { id: elsewhere.split('/').at(-1) ?? '', length: 1, checksum: 0n };
  return {
    head: { ...own, blob },
    payload: blob === null ? packMessage({ does, documents }) : new Uint8Array(),
  };
}

/** Null for a seal. */
async function readSlot(store: ObjectStore, key: string): Promise<Written | null> {
  const found = await store.get(key);
  const { logId, records } = decodeLogObject(found?.bytes ?? new Uint8Array(), key);
  const [record] = records;
  if (record === undefined) return null;
  const { namespaceId, blob, detail } = record.head;
  if (namespaceId === '') {
    const event = unpackMessage(record.payload) as { readonly namespaceId: string };
    return { namespace: event.namespaceId, does: 'drop', documents: [], elsewhere: null };
  }
  const written = { namespace: namespaceId, documents: [], elsewhere: null };
  if (blob !== null) return { ...written, does: 'put', elsewhere: paths.logBlob(logId, blob.id) };
  const payload = unpackMessage(record.payload) as Written & { readonly id: string };
  if ((detail as readonly unknown[])[2] === 'import')
    return { ...written, does: 'import', elsewhere: paths.namespaceSegment(namespaceId, payload.id) };
  return { ...written, does: payload.does, documents: payload.documents };
}

/** What a server that opens the store would find, and the last slot of the last log. Throws where something is missing. */
export async function openedState(
  store: ObjectStore,
): Promise<{ readonly logId: string; readonly slot: number; readonly documents: Documents }> {
  const view = await readView(store);
  const state = new Map<string, readonly number[]>();
  const watermarks = new Map<string, Readonly<Record<string, number>>>();
  const { objects } = await store.list(paths.namespaces, { limit: 1_000 });
  for (const { key } of objects.filter((object) => object.key.endsWith('/manifest'))) {
    const id = key.split('/')[2] ?? '';
    const manifest = await readManifest(store, id);
    watermarks.set(id, manifest.applied);
    const documents: number[] = [];
    let isWhole = true;
    for (const segment of manifest.segments) {
      const text = await read(store, segment);
      if (text === null) isWhole = false;
      else documents.push(...(JSON.parse(text) as number[]));
    }
    // A namespace that was being dropped has lost its segments; its drop is in the log, or it is an error below.
    state.set(id, isWhole ? documents : [Number.NaN]);
  }
  let last = { logId: '', slot: 0 };
  let now: Documents = state;
  const logs = [...view.removed.map(({ logId }) => logId), ...view.members.map(({ logId }) => logId)];
  for (const logId of logs) {
    const isDone = (await store.get(paths.logDone(logId))) !== null;
    const folder = await store.list(paths.logFolder(logId), { limit: 1_000 });
    const slots = folder.objects.map(({ key }) => key).filter((key) => /\/[0-9]{20}$/.test(key));
    const floor = await readFloor(store, logId);
    last = { logId, slot: Math.max(floor, Number(slots.at(-1)?.slice(-20) ?? 0)) };
    if (isDone) continue;
    for (const [index, key] of slots.filter((slot) => Number(slot.slice(-20)) > floor).entries()) {
      const slot = Number(key.slice(-20));
      assert.equal(slot, floor + index + 1, `a slot of ${logId} is missing`);
      const record = await readSlot(store, key);
      if (record === null) continue;
      if (slot <= (watermarks.get(record.namespace)?.[logId] ?? 0)) continue;
      now = applied(now, record, await documentsOf(store, record));
    }
  }
  return { ...last, documents: now };
}

function applied(state: Documents, record: Written, documents: readonly number[]): Documents {
  const next = new Map(state);
  if (record.does === 'drop') next.delete(record.namespace);
  else if (record.does === 'create' || next.has(record.namespace))
    next.set(record.namespace, [...(next.get(record.namespace) ?? []), ...documents]);
  return next;
}

/** Nothing may be left of a namespace that was dropped since: `drop` follows in the log. */
async function documentsOf(
  store: ObjectStore,
  { documents, elsewhere, does }: Written,
): Promise<readonly number[]> {
  if (elsewhere === null) return documents;
  const text = await read(store, elsewhere);
  if (text === null && does === 'import') return [Number.NaN];
  assert.notEqual(text, null, `a record names ${elsewhere}, which is missing`);
  return JSON.parse(text ?? 'null') as number[];
}

async function readManifest(store: ObjectStore, id: string): Promise<WrittenManifest> {
  const text = await read(store, paths.namespaceManifest(id));
  return text === null ? { applied: {}, segments: [] } : (JSON.parse(text) as WrittenManifest);
}

async function read(store: ObjectStore, key: string): Promise<string | null> {
  const found = await store.get(key);
  return found === null ? null : Buffer.from(found.bytes).toString();
}
