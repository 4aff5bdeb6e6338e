/**
 * Work that would hold up an actor thread, done on compute threads. The front side owns the threads; an actor asks for
 * a task by a control call. Tasks and results hold only what may cross a thread.
 */
import type { MessagePort } from 'node:worker_threads';
import type { ApiErrorWire } from '../../protocol/messages.ts';
import type { LaneClaim, PrepareTask } from '../../protocol/worker-tasks.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import type { EmbedByProviderTask, Embedded, EmbedHereTask } from '../embedding/embed-request.ts';
import type { ImportQuestion } from '../import/import-request.ts';
import type { ImportedRows, ImportRequest } from '../import/import-rows.ts';
import type { FindRowsElsewhere, FindRowsTask } from '../search/find-rows-task.ts';
import type { DecodeElsewhere, DecodeTask } from '../storage/decode-blocks.ts';
import type { RowStamp } from '../storage/document-block.ts';
import type { ParsedBody, WriteKind } from '../storage/parse-write.ts';
import type { SegmentToc } from '../storage/segment-format.ts';
import type { SegmentGraph } from '../storage/segment-graph.ts';
import type { MatchElsewhere, MatchTask } from '../text/match-task.ts';
import type { Metric } from '../vector/distance.ts';

/** What a task that stores something is given. */
export interface ComputeComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
}

/** For graphs, which become files before they are objects. */
export interface GraphComponents extends ComputeComponents {
  /** On the disk of the local cache; made where it is missing. */
  readonly scratchFolder: string;
}

export interface BuildGraphsComponents extends GraphComponents {
  /** Whether the thread will be ended: what is built is given up then. */
  readonly isEnding: () => boolean;
}

export interface ParseTask {
  readonly task: 'parse';
  readonly kind: WriteKind;
  readonly body: Uint8Array;
}

/** Rows of a frozen memtable, oldest first. Buffers are shared memory, so nothing is copied. */
export interface BuildSegmentTask {
  readonly task: 'build-segment';
  readonly key: string;
  readonly buffers: readonly Uint8Array[];
  readonly bufferOf: Uint32Array;
  readonly offsets: Uint32Array;
  readonly sequences: Float64Array;
  readonly writtenAt: Float64Array;
  /** Keys of metas that hold dates or times. */
  readonly temporalKeys?: readonly string[];
}

/** Neighbouring segments, oldest first, with the tombstones that the merge leaves out. */
export interface MergeSegmentsTask {
  readonly task: 'merge-segments';
  readonly key: string;
  readonly inputs: readonly {
    readonly key: string;
    readonly toc: SegmentToc;
    /** As `tombstonesToWire` makes them. */
    readonly tombstones: unknown;
  }[];
  readonly temporalKeys?: readonly string[];
}

/** Graphs over the vectors of one segment. */
export interface BuildGraphsTask {
  readonly task: 'build-graphs';
  readonly segmentKey: string;
  readonly toc: SegmentToc;
  /** Rows that the graphs leave out, as `tombstonesToWire` makes them. */
  readonly tombstones: unknown;
  readonly metric: Metric;
  /** The graphs' ids begin with it; an object's key is the prefix and the id. */
  readonly id: string;
  readonly keyPrefix: string;
}

export interface BuiltGraph {
  readonly graph: SegmentGraph;
  /** A file with the same bytes, whose it is that asked. */
  readonly path: string;
}

/** Rows of a received file, for whoever has the other end of `parts`: those of ranges that no other reader of the file takes. */
export interface ReadImportTask
  extends ImportQuestion,
    Pick<ImportRequest, 'dims' | 'looksAtAll' | 'rangeRows' | 'rowByRow'>,
    RowStamp {
  readonly task: 'read-import';
  readonly path: string;
  /** The shared memory of FileRanges, which all readers of the file have. */
  readonly ranges: SharedArrayBuffer;
  readonly parts: MessagePort;
  /** Hears that this import's turn has come; null for who helps the first reader. */
  readonly begun: MessagePort | null;
}

/** A whole import: what its readers and the builder of its segment are told. */
export type ImportFileTask = Pick<BuildImportTask, 'key'> &
  Pick<ReadImportTask, 'path' | 'dims' | keyof RowStamp> &
  ImportQuestion & {
    /** How long the received file is, in bytes. */
    readonly bytes: number;
  };

export interface BuildImportTask extends Pick<RowStamp, 'firstSequence'> {
  readonly task: 'build-import';
  readonly key: string;
  /** Whether the readers infer kinds of columns from all rows: this is the import's second try. */
  readonly looksAtAll: boolean;
  /** Ports of the first reader, and of those that may help it, who are told on theirs that the building has begun. */
  readonly parts: readonly [MessagePort, ...MessagePort[]];
}

export interface BuiltImport extends StoredSegment, ImportedRows {
  /** Whether two rows may have one id. */
  readonly hasEqualIds: boolean;
}

export interface ReplacedRowsTask {
  readonly task: 'replaced-rows';
  readonly imported: { readonly key: string; readonly toc: SegmentToc };
  readonly segments: readonly { readonly key: string; readonly toc: SegmentToc }[];
}

export interface ReplacedRows {
  /** In the imported segment itself. */
  readonly own: Uint32Array;
  /** In the segments of the task, in their order. */
  readonly others: readonly Uint32Array[];
}

export type ComputeTask =
  | ParseTask
  | BuildSegmentTask
  | MergeSegmentsTask
  | BuildGraphsTask
  | MatchTask
  | FindRowsTask
  | DecodeTask
  | EmbedByProviderTask
  | EmbedHereTask
  | ReadImportTask
  | BuildImportTask
  | ReplacedRowsTask
  | PrepareTask;

/** A segment that is in the store: `size` in bytes, and its table of contents. */
export interface StoredSegment {
  readonly size: number;
  readonly toc: SegmentToc;
}

/** A segment that a flush or a merge has made. */
export interface BuiltSegment extends StoredSegment {
  /** The whole object, in shared memory, where it is small; null for larger ones. */
  readonly stored: Uint8Array | null;
}

export type ComputeResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ApiErrorWire };

/** Each task is somebody's: `claim` says who pays for it, and until when it is worth beginning. */
export interface ComputeLanes {
  /** The body's batch, in shared memory. The body is moved. */
  parse(task: ParseTask, claim: LaneClaim): Promise<ParsedBody>;
  buildSegment(task: BuildSegmentTask, claim: LaneClaim): Promise<BuiltSegment>;
  /** Null where no row lives. */
  mergeSegments(task: MergeSegmentsTask, claim: LaneClaim): Promise<BuiltSegment | null>;
  /** The files are the caller's to take or to delete. None where graphs would not find what they should. */
  buildGraphs(task: BuildGraphsTask, claim: LaneClaim): Promise<BuiltGraph[]>;
  /** Vectors of texts, in shared memory. Throws ApiError with one of the `embedding_…` codes. */
  embed(task: EmbedByProviderTask | EmbedHereTask, claim: LaneClaim): Promise<Embedded>;
  /** The segment of a file, stored; it takes the ports. Throws ApiError where the file is wrong. */
  importFile(task: ImportFileTask, claim: LaneClaim): Promise<BuiltImport>;
  replacedRows(task: ReplacedRowsTask, claim: LaneClaim): Promise<ReplacedRows>;
  /** What RE2 says of a piece of a text. The text is moved. Rejects with ApiError 429 where too many wait. */
  match(task: MatchTask, claim: LaneClaim): ReturnType<MatchElsewhere>;
  /** Rows of blocks that have a literal. Rejects with ApiError where too many wait. */
  findRows(task: FindRowsTask, claim: LaneClaim): ReturnType<FindRowsElsewhere>;
  /** Answers raw forms of stored blocks. The stored bytes are moved. Rejects with ApiError where too many wait. */
  decodeBlocks(task: DecodeTask, claim: LaneClaim): ReturnType<DecodeElsewhere>;
}
