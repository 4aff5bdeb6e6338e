import type { EmbedConfig, VectorConfig } from '../../protocol/namespace.ts';
import type { DayWrites } from '../../protocol/stored-tenant.ts';
import { assert } from '../../src/base/assert.ts';
import type { LogPosition } from '../log/replay.ts';
import { idHash } from '../storage/id-presence.ts';
import {
  isApplied,
  type LogWatermark,
  type Manifest,
  type NamespaceCounters,
  type NamespaceIdentity,
} from '../storage/manifest.ts';
import type { Committed } from '../storage/manifest-store.ts';
import type { Memtable } from '../storage/memtable.ts';
import { heldBytes } from '../storage/shared-objects.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { isDeleted, withDeleted } from '../storage/tombstones.ts';
import { searchableMemtable } from '../text/searchable-memtable.ts';
import type { LoadedBatch } from './loaded-batch.ts';
import type { SegmentLookUp } from './segment-look-up.ts';
import { dayOfMicros, withWrite } from './writes-by-day.ts';

/** What a log record says beside its payload. */
export interface WriteStamp {
  readonly version: number;
  /** The sequence of the write's deletes; its documents, or an import's rows, have the following ones. */
  readonly baseSequence: number;
  /** Microseconds since 1970. */
  readonly writtenAt: number;
}

/** What a write's stamp follows: the counters of the write before it, submitted or applied. */
export type WritesBefore = Pick<NamespaceCounters, 'version' | 'lastSequence' | 'lastWrittenAt'>;

/**
 * Asserts that a write follows the one before it, and that its sequences are exact numbers. Called before the write is submitted: what
 * the log holds is applied for ever. An import leaves a gap of sequences, and nothing else may.
 */
export function assertFollows(before: WritesBefore, stamp: WriteStamp, lastSequence: number): void {
  assert(
    stamp.version === before.version + 1,
    () => `version ${stamp.version} was given after ${before.version}`,
  );
  assert(
    stamp.baseSequence >= before.lastSequence && lastSequence >= stamp.baseSequence,
    () => `sequences ${stamp.baseSequence} to ${lastSequence} were given after ${before.lastSequence}`,
  );
  assert(Number.isSafeInteger(lastSequence), () => `sequence ${lastSequence} is not exact`);
  assert(
    stamp.writtenAt > before.lastWrittenAt,
    () => `time ${stamp.writtenAt} was given after ${before.lastWrittenAt}`,
  );
}

/** How far a manifest reaches: taken when its rows are. */
export interface Reach {
  readonly applied: ReadonlyMap<string, LogWatermark>;
  readonly counters: NamespaceCounters;
  readonly appliedBytes: number;
}

/** A memtable that takes no rows any more, and how far a manifest reaches that has its rows and those before them. */
export interface FrozenMemtable {
  readonly memtable: Memtable;
  readonly reach: Reach;
}

/**
 * What the open namespace consists of at this moment. Changed only by `applyBatch` and by the installation of a flush,
 * each in one synchronous step, so that a snapshot taken between two lines of anybody's code is whole.
 */
export class NamespaceState {
  readonly identity: NamespaceIdentity;
  /** Null for text only. */
  readonly vector: VectorConfig | null;
  /** Null where texts are not embedded. Changed when the change is durable. */
  embed: EmbedConfig | null;
  memtable: Memtable = searchableMemtable();
  /** Oldest first; on their way into segments. */
  frozen: readonly FrozenMemtable[] = [];
  /** Oldest first. */
  segments: readonly OpenSegment[] = [];
  counters: NamespaceCounters = {
    version: 0,
    lastSequence: 0,
    lastWrittenAt: 0,
    docsWritten: 0,
    bytesWritten: 0,
  };
  /** See writes-by-day.ts. */
  writesByDay: readonly DayWrites[] = [];
  readonly applied = new Map<string, LogWatermark>();
  /** Keys of metas that hold dates or times: strings of such a form are such. Imports say so. */
  temporalKeys: ReadonlySet<string> = new Set();
  /** How far the state reaches with a replayed import that no manifest contains yet; null where there is none. */
  importReach: Reach | null = null;
  committed: Committed<Manifest> | null = null;
  /** Bytes of the committed tail that are those of the memtable itself: so after opening, until the next commit. */
  sharedTailBytes = 0;
  /** Bytes of all records applied since it was opened, and of those of them that a manifest contains: both only rise. */
  appliedBytes = 0;
  flushedBytes = 0;
  /** Rises when `segments` or `frozen` change other than by tombstones: a look-up made before is void. */
  generation = 0;
  #held: { readonly manifest: Manifest | null; readonly bytes: number } = { manifest: null, bytes: 0 };

  constructor(identity: NamespaceIdentity, vector: VectorConfig | null, embed: EmbedConfig | null = null) {
    this.identity = identity;
    this.vector = vector;
    this.embed = embed;
  }

  /** Counts a write request that is being applied. Asserts that none was left out or came twice. */
  countWrite(
    { version, writtenAt }: Pick<WriteStamp, 'version' | 'writtenAt'>,
    written: { readonly lastSequence: number; readonly docs: number; readonly bytes: number },
  ): void {
    const before = this.counters;
    assert(version === before.version + 1, () => `version ${version} is applied after ${before.version}`);
    assert(
      written.lastSequence > before.lastSequence,
      () => `sequence ${written.lastSequence} is applied after ${before.lastSequence}`,
    );
    this.counters = {
      version,
      lastSequence: written.lastSequence,
      lastWrittenAt: writtenAt,
      docsWritten: before.docsWritten + written.docs,
      bytesWritten: before.bytesWritten + written.bytes,
    };
    this.writesByDay = withWrite(this.writesByDay, writtenAt, written);
  }

  /** Notes how far the state reaches in a log. Asserts that each record is applied once, in the order of its log. */
  noteApplied(position: LogPosition, bytes: number): void {
    const { logId, slot, index } = position;
    assert(!isApplied(this, position), () => `record ${slot}/${index} of log ${logId} is applied again`);
    this.applied.set(logId, { slot, index });
    this.appliedBytes += bytes;
  }

  /** Bytes of applied records that no manifest contains. */
  get unflushedBytes(): number {
    return this.appliedBytes - this.flushedBytes;
  }

  get liveDocuments(): number {
    let count = this.memtable.liveCount;
    for (const { memtable } of this.frozen) count += memtable.liveCount;
    for (const segment of this.segments) count += segment.reader.rowCount - segment.tombstones.count;
    return count;
  }

  /** Resident bytes of what is not in segments. */
  get memtableBytes(): number {
    let bytes = this.memtable.bytes;
    for (const { memtable } of this.frozen) bytes += memtable.bytes;
    return bytes;
  }

  /**
   * What it takes in the store: segments, graphs, sets of deleted rows, manifest, what it still has in the log, and what others hold of
   * it. Objects in the folders of others are counted there.
   */
  get storedBytes(): number {
    let bytes = (this.committed?.size ?? 0) + this.unflushedBytes;
    for (const { size, home, graphs, graphsHome } of this.segments) {
      if (home === undefined) bytes += size;
      if (graphsHome === undefined) bytes += (graphs ?? []).reduce((sum, graph) => sum + graph.size, 0);
    }
    const sets = this.committed?.value.segments ?? [];
    for (const { tombstonesObject: set } of sets) if (set?.home === undefined) bytes += set?.size ?? 0;
    return bytes + this.#heldBytes();
  }

  /** Bytes that others hold of this namespace. They are asked for with each write and change with commits only, so they are kept. */
  #heldBytes(): number {
    const manifest = this.committed?.value ?? null;
    if (manifest !== this.#held.manifest)
      this.#held = { manifest, bytes: manifest === null ? 0 : heldBytes(manifest) };
    return this.#held.bytes;
  }

  /** Newest first. */
  *memtablesNewestFirst(): Generator<Memtable> {
    yield this.memtable;
    for (let i = this.frozen.length - 1; i >= 0; i--) {
      const frozen = this.frozen[i];
      if (frozen !== undefined) yield frozen.memtable;
    }
  }

  /** The memtable that holds the id's live row, or null. */
  memtableOf(id: string): Memtable | null {
    for (const memtable of this.memtablesNewestFirst()) if (memtable.find(id) >= 0) return memtable;
    return null;
  }
}

/**
 * Applies a durable batch in one synchronous step: deletes, then documents in their order. `lookUp` has asked every
 * segment that there is now. Answers how many deleted ids existed.
 */
export function applyBatch(
  state: NamespaceState,
  batch: LoadedBatch,
  stamp: WriteStamp,
  lookUp: SegmentLookUp,
  position: LogPosition,
): number {
  let deleted = 0;
  for (const id of batch.deletes) {
    const holder = state.memtableOf(id);
    if (holder?.supersede(id, stamp.baseSequence)) deleted++;
  }
  const marked = state.segments.map((segment) => {
    const rows = lookUp.rowsIn(segment.id);
    if (rows === null) return segment;
    const isLive = (row: number) => row >= 0 && !isDeleted(segment.tombstones, row);
    // The same id twice in one request is found twice and was there once.
    deleted += new Set(rows.subarray(0, batch.deletes.length).filter(isLive)).size;
    const live = rows.filter(isLive);
    return live.length === 0 ? segment : { ...segment, tombstones: withDeleted(segment.tombstones, live) };
  });
  // Mostly nothing is replaced: then the list stays the same one, and who looks for changes sees none.
  if (marked.some((segment, i) => segment !== state.segments[i])) state.segments = marked;
  let sequence = stamp.baseSequence;
  batch.documentOffsets.forEach((offset, i) => {
    sequence++;
    const id = batch.ids[i] ?? '';
    supersedeInFrozen(state, id, sequence);
    state.memtable.add(batch.buffer, offset, sequence, stamp.writtenAt, id);
  });
  const docs = batch.documentOffsets.length + batch.deletes.length;
  state.countWrite(stamp, { lastSequence: sequence, docs, bytes: batch.buffer.byteLength });
  state.noteApplied(position, batch.buffer.byteLength);
  return deleted;
}

function supersedeInFrozen(state: NamespaceState, id: string, sequence: number): void {
  if (state.frozen.length === 0) return;
  const hash = idHash(id);
  for (const { memtable } of state.frozen)
    if (memtable.mayHold(hash) && memtable.supersede(id, sequence)) return;
}

/** Takes over what a manifest says. The tail becomes the memtable's first rows. */
export function adoptManifest(
  state: NamespaceState,
  committed: Committed<Manifest>,
  openSegment: (segment: Manifest['segments'][number]) => OpenSegment,
  tailBuffer: (bytes: Uint8Array) => Buffer,
  isGone: (logId: string) => boolean,
): void {
  const manifest = committed.value;
  const { tail } = manifest;
  // One copy for both: the manifest is kept for the next commit, and its rows are the memtable's.
  const entries = tail === null ? null : tailBuffer(tail.entries);
  const kept = tail === null || entries === null ? manifest : { ...manifest, tail: { ...tail, entries } };
  state.committed = { ...committed, value: kept };
  state.sharedTailBytes = entries?.byteLength ?? 0;
  state.counters = manifest.counters;
  const day = dayOfMicros(manifest.counters.lastWrittenAt);
  state.writesByDay = [{ day, writes: 0, docs: 0, bytes: 0 }];
  state.temporalKeys = new Set(manifest.temporalKeys);
  state.segments = manifest.segments.map(openSegment);
  for (const [logId, watermark] of manifest.applied) if (!isGone(logId)) state.applied.set(logId, watermark);
  if (tail === null || entries === null) return;
  let offset = 0;
  tail.sequences.forEach((sequence, i) => {
    state.memtable.add(entries, offset, sequence, tail.writtenAt[i] ?? 0);
    offset += entries.readUInt32LE(offset);
  });
  assert(offset === entries.byteLength, () => `a tail of ${entries.byteLength} bytes has ${offset} of rows`);
}
