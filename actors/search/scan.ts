/**
 * Walks a snapshot's live documents from the newest to the oldest: memtables, then segments from the last, each from
 * its highest row down. Gives way between documents when its slice is over, and ends at the deadline.
 */
import type { Filter } from '../../protocol/filter.ts';
import { columnTerms } from '../columns/filter-terms.ts';
import { ask, no, yes } from '../columns/verdicts.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import { documentEntryLength } from '../storage/document-batch.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import type { Memtable } from '../storage/memtable.ts';
import { ReadTimedOut } from '../storage/read-deadline.ts';
import { isReadFailure, type ReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { isDeleted } from '../storage/tombstones.ts';
import { partsOfRow, rowsBelow } from '../text/searchable-memtable.ts';
import { noCondition, type TextCondition } from '../text/trigram-query.ts';
import { AllBlocks } from './all-blocks.ts';
import { CandidateBlocks, type DrawnBlocks } from './candidate-blocks.ts';
import type { SegmentFilter } from './filter-rows.ts';
import { MemtableFilter } from './memtable-filter.ts';
import { type BlockSource, BlocksAhead, type ReadBlock } from './read-ahead.ts';
import type { TimeSlice } from './time-slice.ts';

export interface ScannedDocument {
  readonly buffer: Buffer;
  readonly offset: number;
  /** The row's number in its memtable or segment. */
  readonly row: number;
  readonly sequence: number;
  /** Microseconds since 1970. */
  readonly writtenAt: number;
  /** The parts of a large text (text-parts.ts) that may have a match within a line, ascending; null for the whole. */
  readonly parts: readonly number[] | null;
  /** Whether columns say that the document passes the filter; where it is false they may not know. */
  readonly passes: boolean;
}

/** Answers false to end the walk. A promise where judging the document takes long; `late` where it took too long. */
export type Visit = (document: ScannedDocument) => boolean | Promise<boolean | 'late'>;

export type ScanEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'stopped' }
  /** The deadline passed; documents of `sequence` and newer were visited. */
  | { readonly kind: 'timed-out'; readonly sequence: number }
  /** Stored documents could not be read; those of `sequence` and newer were visited. */
  | { readonly kind: 'failed'; readonly sequence: number; readonly cause: ReadFailure };

/** How many documents are visited between two looks at the clock. */
const documentsPerLook = 16;
/** Blocks that are read without finding a live document that is wanted. */
const lateBlocksMax = 8;
/** A document counts once more for each of these bytes. */
const bytesPerCount = 16 * 1024;

interface Walk {
  readonly slice: TimeSlice;
  readonly tally: ReadTally;
  readonly below: number;
  readonly visit: Visit;
  readonly takeBlock: ((block: ReadBlock) => boolean) | null;
  /** Rows of memtables that were looked at. */
  visited: number;
  /** Looked at after the deadline, because no document was visited before. */
  lateBlocks: number;
  lastSequence: number;
  sinceLook: number;
}

export interface ScanOptions {
  /** Documents whose sequence is under this are visited. */
  readonly below: number;
  readonly slice: TimeSlice;
  readonly tally: ReadTally;
  /** How many documents will be enough where that is known: no more is read ahead than holds them. */
  readonly enough?: number;
  /** What every document that is wanted satisfies: the others of segments are not read. Default: nothing. */
  readonly condition?: TextCondition;
  /** The filter that every wanted document passes: rows of which columns say that they don't are not read. */
  readonly filter?: Filter | null;
  /** Whether rows of segments of which columns say that they pass are left out: somebody has counted them. Default: false. */
  readonly unsureOnly?: boolean;
  /** Answers whether all wanted live documents of the block are dealt with by this call; where it is false they are visited one by one. */
  readonly takeBlock?: (block: ReadBlock) => boolean;
}

export interface BlocksOfSegments {
  readonly condition: TextCondition;
  readonly filter?: SegmentFilter | null;
  /** The blocks that are wanted; null for all. Heeded only where there is a condition or a filter. Default: all. */
  readonly drawn?: DrawnBlocks | null;
  readonly below: number;
  /** How many rows will be enough, where there is no condition. */
  readonly rows: number;
  readonly tally: ReadTally;
}

export async function scanNewestFirst(
  snapshot: Snapshot,
  options: ScanOptions,
  visit: Visit,
): Promise<ScanEnd> {
  const { below, slice, tally, condition = noCondition, unsureOnly = false } = options;
  const terms = columnTerms(options.filter ?? { terms: [] });
  const filter = terms.length === 0 ? null : { terms, slice, unsureOnly };
  const temporalKeys = snapshot.temporalKeys ?? noKeys;
  if (condition.query.kind === 'none') return { kind: 'complete' };
  const walk: Walk = {
    below,
    slice,
    tally,
    visit,
    takeBlock: options.takeBlock ?? null,
    visited: 0,
    lateBlocks: 0,
    lastSequence: below,
    sinceLook: 0,
  };
  for (const source of snapshot.memtables) {
    const rows = filter === null ? null : new MemtableFilter(source.memtable, { ...filter, temporalKeys });
    const end = await scanMemtable(walk, snapshot.sequence, { ...source, condition, filter: rows });
    if (end !== null) return end;
  }
  const rows = (options.enough ?? Number.POSITIVE_INFINITY) - walk.visited;
  try {
    const wanted = { below, tally, condition, filter, rows };
    return await scanSegments(walk, new BlocksAhead(wantedBlocks(snapshot, wanted), tally, slice));
  } catch (cause) {
    if (!isReadFailure(cause)) throw cause;
    if (isOutOfTime(cause)) return timedOut(walk);
    return { kind: 'failed', sequence: walk.lastSequence, cause };
  }
}

/** Whether a query's own time was over before a read came, of a store that answers. */
export function isOutOfTime(cause: ReadFailure): boolean {
  return cause instanceof ReadTimedOut && !cause.isSilent;
}

/** All blocks, or those that may hold what satisfies the condition. */
export function wantedBlocks({ segments }: Snapshot, wanted: BlocksOfSegments): BlockSource {
  return wanted.condition.query.kind === 'all' && (wanted.filter ?? null) === null
    ? new AllBlocks(segments, wanted)
    : new CandidateBlocks(segments, wanted);
}

const noKeys: ReadonlySet<string> = new Set();

/** Rows that an index of the memtable names at a time. */
const rowsPerLook = 512;
/** Rows that an index of the memtable names at a time where there is a filter: few, because rows that don't pass are passed over together before each. */
const filteredRowsPerLook = 32;
/** Bytes of a document, on average, up to which a memtable's are short. */
const shortDocumentBytes = 4096;

type MemtableRows = Snapshot['memtables'][number] & {
  readonly condition: TextCondition;
  readonly filter: MemtableFilter | null;
};

async function scanMemtable(
  walk: Walk,
  sequence: number,
  { memtable, rowCount, condition, filter }: MemtableRows,
): Promise<ScanEnd | null> {
  const target = new Uint32Array(Math.min(filter === null ? rowsPerLook : filteredRowsPerLook, rowCount));
  for (let below = Math.min(rowCount, memtable.rowsBefore(walk.below)); below > 0; ) {
    if (filter !== null) {
      if (!(await settleRow(walk, filter, below - 1))) return timedOut(walk);
      const end = filter.passingEnd(below);
      if (end < below) passOver(walk, memtable.sequenceOf(end));
      below = end;
      if (below === 0) break;
      if (!filter.isSettled(below - 1)) continue;
    }
    const indexesMore = filter?.passesFew !== true || !isOfShortTexts(memtable);
    const count = rowsBelow(memtable, condition, { row: below, target, indexesMore });
    // Asking for rows may have indexed a part of a large text.
    if ((await look(walk)) && walk.lastSequence !== walk.below) return timedOut(walk);
    for (let i = 0; i < count; i++) {
      const row = target[i] as number;
      if (!memtable.isLiveAt(row, sequence)) continue;
      if (filter !== null && !(await settleRow(walk, filter, row))) return timedOut(walk);
      const verdict = filter?.verdict(row) ?? ask;
      if (verdict === no) {
        passOver(walk, memtable.sequenceOf(row));
        continue;
      }
      const parts = partsOfRow(memtable, condition, row);
      const document = documentInMemtable(memtable, row, parts, verdict === yes);
      const visited = visit(walk, document);
      const end = visited instanceof Promise ? await visited : visited;
      if (end !== null) return end;
      walk.visited++;
      if (isTimeToLook(walk, document) && (await look(walk))) return timedOut(walk);
    }
    below = count < target.length ? 0 : (target[count - 1] as number);
  }
  return null;
}

/** Whether documents are so short that judging a few of them takes less than indexing others. */
function isOfShortTexts({ documentBytes, rowCount }: Memtable): boolean {
  return documentBytes <= rowCount * shortDocumentBytes;
}

/** Has the filter settle a row of a memtable; answers false where the query's time was over, and some row was looked at. */
async function settleRow(walk: Walk, filter: MemtableFilter, row: number): Promise<boolean> {
  if (filter.isSettled(row)) return true;
  await filter.settle(row);
  return !walk.slice.timedOut || walk.lastSequence === walk.below;
}

/** Notes that rows of a sequence and newer ones were looked at, or don't pass: the next page begins below. */
function passOver(walk: Walk, sequence: number): void {
  walk.lastSequence = Math.min(walk.lastSequence, sequence);
}

/** Looks through the blocks of segments. Hot where each block has one row or two: nothing is waited for but what is not there. */
async function scanSegments(walk: Walk, blocks: BlocksAhead): Promise<ScanEnd> {
  try {
    for (;;) {
      const next = blocks.next();
      const read = next instanceof Promise ? await next : next;
      if (read === null) return { kind: 'complete' };
      walk.sinceLook = 0;
      // However late the first ones came, they are looked at: the next page would begin, and wait, where this one did.
      const isLate = walk.slice.due() && (await look(walk));
      if (isLate && (walk.lastSequence !== walk.below || ++walk.lateBlocks > lateBlocksMax))
        return timedOut(walk);
      if (isTakenWhole(walk, read)) continue;
      const end = await scanBlock(walk, read);
      if (end !== null) return end;
    }
  } finally {
    blocks.stop();
  }
}

/** Answers whether `takeBlock` has dealt with all wanted documents of the block. */
function isTakenWhole(walk: Walk, read: ReadBlock): boolean {
  if (walk.below !== Number.POSITIVE_INFINITY || walk.takeBlock?.(read) !== true) return false;
  const { block, ranges } = read;
  walk.lastSequence = block.sequences[(ranges.at(-2) as number) - block.firstRow] as number;
  return true;
}

async function scanBlock(walk: Walk, read: ReadBlock): Promise<ScanEnd | null> {
  const { block, tombstones, ranges, parts, passes = false } = read;
  for (let at = 0; at < ranges.length; at += 2) {
    const first = (ranges[at] as number) - block.firstRow;
    for (let i = (ranges[at + 1] as number) - block.firstRow - 1; i >= first; i--) {
      const sequence = block.sequences[i] ?? 0;
      if (sequence >= walk.below || isDeleted(tombstones, block.firstRow + i)) continue;
      const document = documentInBlock(block, i, parts?.get(block.firstRow + i) ?? null, passes);
      const visited = visit(walk, document);
      const end = visited instanceof Promise ? await visited : visited;
      if (end !== null) return end;
      if (isTimeToLook(walk, document) && (await look(walk))) return timedOut(walk);
    }
  }
  return null;
}

export function documentInMemtable(
  memtable: Memtable,
  row: number,
  parts: ScannedDocument['parts'],
  passes = false,
): ScannedDocument {
  return {
    buffer: memtable.bufferOf(row),
    offset: memtable.offsetOf(row),
    row,
    sequence: memtable.sequenceOf(row),
    writtenAt: memtable.writtenAtOf(row),
    parts,
    passes,
  };
}

/** The `index`-th of the block. */
export function documentInBlock(
  block: DocumentBlock,
  index: number,
  parts: ScannedDocument['parts'],
  passes = false,
): ScannedDocument {
  return {
    buffer: block.buffer,
    offset: block.entryOffset(index),
    row: block.firstRow + index,
    sequence: block.sequences[index] ?? 0,
    writtenAt: block.writtenAt[index] ?? 0,
    parts,
    passes,
  };
}

/** Null where the walk goes on. */
function visit(walk: Walk, document: ScannedDocument): ScanEnd | null | Promise<ScanEnd | null> {
  const visited = walk.visit(document);
  return visited instanceof Promise
    ? visited.then((goesOn) => endOfVisit(walk, document, goesOn))
    : endOfVisit(walk, document, visited);
}

function endOfVisit(walk: Walk, { sequence }: ScannedDocument, goesOn: boolean | 'late'): ScanEnd | null {
  if (goesOn === false) return { kind: 'stopped' };
  // One that takes longer than a whole query may is left out: the next page would begin with it again, for ever.
  if (goesOn !== 'late' || walk.lastSequence === walk.below) walk.lastSequence = sequence;
  return goesOn === 'late' ? timedOut(walk) : null;
}

/** Often enough for small documents, and after each large one: matching 2 MB takes longer than a slice. */
function isTimeToLook(walk: Walk, { buffer, offset }: ScannedDocument): boolean {
  walk.sinceLook += 1 + Math.floor(documentEntryLength(buffer, offset) / bytesPerCount);
  return walk.sinceLook >= documentsPerLook;
}

/** Whether the deadline has passed; gives way where the slice is over. */
async function look(walk: Walk): Promise<boolean> {
  walk.sinceLook = 0;
  if (!walk.slice.due()) return false;
  await walk.slice.giveWay();
  return walk.slice.timedOut;
}

function timedOut(walk: Walk): ScanEnd {
  return { kind: 'timed-out', sequence: walk.lastSequence };
}
