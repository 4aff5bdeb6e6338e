import { toShared } from '../../src/base/shared-bytes.ts';
import type { LogPosition } from '../log/replay.ts';
import type { ReadReport } from '../storage/block-fetch.ts';
import { documentId, readBatch } from '../storage/document-batch.ts';
import type { LogWatermark, Manifest, NamespaceCounters, NamespaceIdentity } from '../storage/manifest.ts';
import type { Committed } from '../storage/manifest-store.ts';
import { Memtable } from '../storage/memtable.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { isDeleted, withDeleted } from '../storage/tombstones.ts';

/** A write request's documents and deletes, in bytes that all threads may see. */
export interface LoadedBatch {
  readonly buffer: Buffer;
  /** Where each document entry starts in the buffer. */
  readonly documentOffsets: Uint32Array;
  readonly deletes: readonly string[];
}

/** Reads the frame of a batch and checks it; moves it to shared memory where it is not there yet. */
export function loadBatch(bytes: Uint8Array): LoadedBatch {
  const buffer = toShared(bytes);
  const { documentOffsets, deletes } = readBatch(buffer);
  return { buffer, documentOffsets, deletes };
}

/** What a log record says beside its payload. */
export interface WriteStamp {
  readonly version: number;
  /** Deletes of the batch take this sequence, its documents the following ones. */
  readonly firstSequence: number;
  /** Microseconds since 1970. */
  readonly writtenAt: number;
}

/** Rows of segments by the segment's id. */
export type SegmentRows = ReadonlyMap<string, readonly number[]>;

/**
 * What the open namespace consists of at this moment. Changed only by `applyBatch` and by the installation of a flush,
 * each in one synchronous step, so that a snapshot taken between two lines of anybody's code is whole.
 */
export class NamespaceState {
  readonly identity: NamespaceIdentity;
  memtable = new Memtable();
  /** Oldest first; on their way into segments. */
  frozen: readonly Memtable[] = [];
  /** Oldest first. */
  segments: readonly OpenSegment[] = [];
  counters: NamespaceCounters = {
    version: 0,
    lastSequence: 0,
    lastWrittenAt: 0,
    docsWritten: 0,
    bytesWritten: 0,
  };
  readonly applied = new Map<string, LogWatermark>();
  committed: Committed<Manifest> | null = null;
  /** Bytes of all records applied since it was opened, and of those of them that a manifest contains: both only rise. */
  appliedBytes = 0;
  flushedBytes = 0;
  /** Rises when `segments` or `frozen` change other than by tombstones: a look-up made before is void. */
  generation = 0;

  constructor(identity: NamespaceIdentity) {
    this.identity = identity;
  }

  /** Bytes of applied records that no manifest contains. */
  get unflushedBytes(): number {
    return this.appliedBytes - this.flushedBytes;
  }

  get liveDocuments(): number {
    let count = this.memtable.liveCount;
    for (const memtable of this.frozen) count += memtable.liveCount;
    for (const segment of this.segments) count += segment.reader.rowCount - segment.tombstones.count;
    return count;
  }

  /** What its objects take in the store: segments, manifest, and what it still has in the log. */
  get storedBytes(): number {
    const segments = this.segments.reduce((sum, segment) => sum + segment.size, 0);
    return segments + (this.committed?.size ?? 0) + this.unflushedBytes;
  }

  /** Newest first. */
  *memtablesNewestFirst(): Generator<Memtable> {
    yield this.memtable;
    for (let i = this.frozen.length - 1; i >= 0; i--) {
      const memtable = this.frozen[i];
      if (memtable !== undefined) yield memtable;
    }
  }

  /** The memtable that holds the id's live row, or null. */
  memtableOf(id: string): Memtable | null {
    for (const memtable of this.memtablesNewestFirst()) if (memtable.find(id) >= 0) return memtable;
    return null;
  }
}

/** Up to so many ids are looked up in all segments at once, in two rounds; more fill memory with pages, so in turn. */
const idsAtOnceMax = 256;

/** The live rows in segments of the ids that no memtable holds. */
export async function findInSegments(
  state: NamespaceState,
  ids: readonly string[],
  report: ReadReport,
): Promise<SegmentRows> {
  const wanted = ids.filter((id) => state.memtableOf(id) === null);
  const found = new Map<string, number[]>();
  if (wanted.length === 0) return found;
  const { segments } = state;
  const atOnce = wanted.length <= idsAtOnceMax ? segments.length : 1;
  for (let from = 0; from < segments.length; from += atOnce) {
    const asked = segments.slice(from, from + atOnce);
    const answers = await Promise.allSettled(asked.map(({ reader }) => reader.findRows(wanted, report)));
    answers.forEach((answer, at) => {
      if (answer.status === 'rejected') throw answer.reason;
      const { id, tombstones } = asked[at] as OpenSegment;
      const live = [...answer.value].filter((row) => row >= 0 && !isDeleted(tombstones, row));
      if (live.length > 0) found.set(id, live);
    });
  }
  return found;
}

/** Ids of the batch, deletes first, as they are looked up. */
export function idsOfBatch(batch: LoadedBatch): string[] {
  const ids = [...batch.deletes];
  for (const offset of batch.documentOffsets) ids.push(documentId(batch.buffer, offset));
  return ids;
}

/**
 * Applies a durable batch in one synchronous step: deletes, then documents in their order. `rows` are the live segment
 * rows of the batch's ids, `deletedRows` those of its deletes alone. Answers how many deleted ids existed.
 */
export function applyBatch(
  state: NamespaceState,
  batch: LoadedBatch,
  stamp: WriteStamp,
  found: { readonly rows: SegmentRows; readonly deletedRows: SegmentRows },
  position: LogPosition,
): number {
  let deleted = 0;
  // The same id twice in one request is found twice and was there once.
  for (const rows of found.deletedRows.values()) deleted += new Set(rows).size;
  for (const id of batch.deletes) {
    const holder = state.memtableOf(id);
    if (holder?.supersede(id, stamp.firstSequence)) deleted++;
  }
  state.segments = state.segments.map((segment) => {
    const rows = found.rows.get(segment.id);
    return rows === undefined ? segment : { ...segment, tombstones: withDeleted(segment.tombstones, rows) };
  });
  let sequence = stamp.firstSequence;
  for (const offset of batch.documentOffsets) {
    sequence++;
    supersedeInFrozen(state, documentId(batch.buffer, offset), sequence);
    state.memtable.add(batch.buffer, offset, sequence, stamp.writtenAt);
  }
  const { counters } = state;
  state.counters = {
    version: stamp.version,
    lastSequence: sequence,
    lastWrittenAt: stamp.writtenAt,
    docsWritten: counters.docsWritten + batch.documentOffsets.length + batch.deletes.length,
    bytesWritten: counters.bytesWritten + batch.buffer.byteLength,
  };
  state.applied.set(position.logId, { seq: position.seq, index: position.index });
  state.appliedBytes += batch.buffer.byteLength;
  return deleted;
}

function supersedeInFrozen(state: NamespaceState, id: string, sequence: number): void {
  for (const memtable of state.frozen) if (memtable.supersede(id, sequence)) return;
}

/** Takes over what a manifest says. The tail becomes the memtable's first rows. */
export function adoptManifest(
  state: NamespaceState,
  committed: Committed<Manifest>,
  openSegment: (segment: Manifest['segments'][number]) => OpenSegment,
  tailBuffer: (bytes: Uint8Array) => Buffer,
): void {
  const manifest = committed.value;
  state.committed = committed;
  state.counters = manifest.counters;
  state.segments = manifest.segments.map(openSegment);
  for (const [logId, watermark] of manifest.applied) state.applied.set(logId, watermark);
  const { tail } = manifest;
  if (tail === null) return;
  const buffer = tailBuffer(tail.entries);
  let offset = 0;
  tail.sequences.forEach((sequence, i) => {
    state.memtable.add(buffer, offset, sequence, tail.writtenAt[i] ?? 0);
    offset += buffer.readUInt32LE(offset);
  });
}
