import type { Temperature } from '../../protocol/document.ts';
import type { Filter } from '../../protocol/filter.ts';
import type { VectorConfig } from '../../protocol/namespace.ts';
import type { CountRequest, SearchRequest } from '../../protocol/search.ts';
import type { KeyRing } from '../../src/accounts/key-ring.ts';
import { assert } from '../../src/base/assert.ts';
import type { Holding, LargeBuffers } from '../sql/room.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { ReadTimedOut } from '../storage/read-deadline.ts';
import type { ReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { type Found, Judge } from '../text/judge.ts';
import type { MatchElsewhere } from '../text/match-task.ts';
import type { QueryPatterns } from '../text/query-pattern.ts';
import { noCondition, type TextCondition } from '../text/trigram-query.ts';
import type { AnswerRoom } from './answer-room.ts';
import { figuresJson, type QueryFigures, tookJson } from './answers.ts';
import type { DocumentTest } from './find-in-document.ts';
import type { FindRowsElsewhere } from './find-rows-task.ts';
import type { GraphSource } from './graph-source.ts';
import { type AnswerPart, bytesOfPart, writePart } from './page.ts';
import type { ReadBlock } from './read-ahead.ts';
import { type ScanEnd, scanNewestFirst } from './scan.ts';
import type { ScanRoom } from './scan-room.ts';
import type { KeptColumns } from './sql/kept-columns.ts';
import type { TimeSlice } from './time-slice.ts';

/** What all queries over documents have in common: where they read, what a document must be, and the answer's frame. */
export interface QueryContext {
  readonly identity: NamespaceIdentity;
  /** Null where the namespace has no vectors. */
  readonly vector: VectorConfig | null;
  readonly snapshot: Snapshot;
  readonly slice: TimeSlice;
  readonly tally: ReadTally;
  /** How the namespace was found: open, or opened from the local disk or the object store. */
  readonly foundAs: Temperature;
  readonly cursorKeys: KeyRing;
  readonly graphs: GraphSource;
  /** The patterns that the thread has compiled. */
  readonly patterns: QueryPatterns;
  /** Runs RE2 on another thread, for pieces of texts that it may be long about. */
  readonly match: MatchElsewhere;
  /** Looks through blocks on another thread, for scans of many. */
  readonly findRows: FindRowsElsewhere;
  /** Bounds the blocks that all scans of the thread have sent. */
  readonly scanRoom: ScanRoom;
  /** Counts the memory that the answer takes. */
  readonly room: AnswerRoom;
  /** What an SQL query may hold; it is given back by whoever made it. */
  readonly sqlHolding: Holding;
  /** Null: nothing is kept. */
  readonly keptColumns: KeptColumns | null;
  /** Memory for what queries count, used again; null where all of it is new. */
  readonly buffers: LargeBuffers | null;
  readonly monotonic: () => number;
  readonly beganAt: number;
  /**
   * Called where the answer will be partial. Throws the failure where the snapshot may be old and the query should begin
   * again with another.
   */
  readonly readFailed: (failure: ReadFailure) => void;
}

/** The coldest place that a query had to read from, the opening of its namespace included. */
export function temperatureOf(foundAs: Temperature, { storeGets, diskReads }: ReadTally): Temperature {
  if (storeGets > 0 || foundAs === 'cold') return 'cold';
  return diskReads > 0 ? 'local' : foundAs;
}

export function isCutShort(end: ScanEnd): end is Extract<ScanEnd, { sequence: number }> {
  return end.kind === 'timed-out' || end.kind === 'failed';
}

/** Waits for what is not known at once, for as long as the query may take. */
export async function late(
  { slice }: QueryContext,
  found: Promise<Found | 'late'>,
  take: (found: Found) => boolean | Promise<boolean>,
): Promise<boolean | 'late'> {
  const judged = await slice.waitUntilDeadline(found);
  return judged === 'late' ? 'late' : take(judged);
}

/** What a query asks of documents, and what the index knows of it. Throws 422 for a pattern that is wrong. */
export function testOf(
  context: QueryContext,
  { filter, q, regex, scan }: SearchRequest | CountRequest,
): Test {
  if (q === '') return { filter, judge: null, condition: noCondition, mustBeNarrowed: false };
  const pattern = context.patterns.of(q, regex);
  const judge = new Judge(pattern, { elsewhere: context.match, turns: context.slice });
  const mustBeNarrowed = regex && !scan && pattern.condition.query.kind === 'all';
  return { filter, judge, condition: pattern.condition, mustBeNarrowed };
}

export interface Test extends DocumentTest {
  readonly condition: TextCondition;
  /** A regex that the index knows nothing of: its filter must leave little (refuse-large-scan.ts). */
  readonly mustBeNarrowed: boolean;
}

export function isEverything(test: DocumentTest): boolean {
  return test.filter === null && test.judge === null;
}

export async function scan(
  context: QueryContext,
  wanted: {
    readonly below: number;
    readonly enough: number | undefined;
    readonly condition: TextCondition;
    readonly filter: Filter | null;
    readonly unsureOnly?: boolean;
    readonly takeBlock?: (block: ReadBlock) => boolean;
  },
  visit: Parameters<typeof scanNewestFirst>[2],
): Promise<ScanEnd> {
  const { enough = Number.POSITIVE_INFINITY } = wanted;
  const options = { ...wanted, enough, slice: context.slice, tally: context.tally };
  const end = await scanNewestFirst(context.snapshot, options, visit);
  if (end.kind === 'failed') context.readFailed(end.cause);
  return end;
}

export function figuresOf(context: QueryContext, timedOut: boolean): QueryFigures {
  const { foundAs, tally, slice } = context;
  return {
    temperature: temperatureOf(foundAs, tally),
    storeGets: tally.storeGets,
    storeBytes: tally.storeBytes,
    cpuMs: slice.cpuMs,
    timedOut,
  };
}

export function answer(context: QueryContext, end: ScanEnd, found: string): string {
  return framed(context, end, `${found},${ofSnapshot(context)}`);
}

function ofSnapshot({ snapshot }: QueryContext): string {
  return `"docs":${snapshot.documents},"version":${snapshot.version}`;
}

/** An answer's JSON, as text, or as UTF-8 where it is long. */
export type JsonAnswer = string | Buffer;

/** An answer of hits, followed by `fields`. Where it is long, others have their turn while it is put together. */
export async function answerOfHits(
  context: QueryContext,
  end: ScanEnd,
  { hits, fields }: { readonly hits: readonly AnswerPart[]; readonly fields: string },
): Promise<JsonAnswer> {
  if (areShort(hits)) return answer(context, end, `"hits":[${hits.join(',')}],${fields}`);
  const { slice } = context;
  const first = `${opening(context)}"hits":[`;
  const last = `],${fields},${ofSnapshot(context)},`;
  const around = Buffer.byteLength(first) + Buffer.byteLength(last) + closingBytesMax;
  const whole = Buffer.allocUnsafeSlow(hits.reduce((sum, hit) => sum + bytesOfPart(hit) + 1, around));
  let at = whole.write(first);
  for (const [index, hit] of hits.entries()) {
    if (index > 0) at += whole.write(',', at, 'latin1');
    at = await writePart(hit, { target: whole, start: at, turns: slice });
    if (slice.due()) await slice.giveWay();
  }
  at += whole.write(last, at);
  const figures = closing(context, end);
  assert(figures.length <= closingBytesMax, () => `${figures.length} bytes of figures`);
  at += whole.write(figures, at);
  return whole.subarray(0, at);
}

function areShort(hits: readonly AnswerPart[]): hits is readonly string[] {
  let length = 0;
  for (const hit of hits) {
    if (typeof hit !== 'string') return false;
    length += hit.length;
  }
  return length <= shortAnswerLength;
}

/** An answer of so many characters is made of strings in less than a millisecond. */
const shortAnswerLength = 256 * 1024;
/** Names and numbers of a known count. */
const closingBytesMax = 512;

/** Whether the time limit cut the answer, be it that the store was silent until then. */
function isTimedOut(end: ScanEnd): boolean {
  return end.kind === 'timed-out' || (end.kind === 'failed' && end.cause instanceof ReadTimedOut);
}

/** What every answer says of itself, around what this one says. */
export function framed(context: QueryContext, end: ScanEnd, found: string): string {
  return `${opening(context)}${found},${closing(context, end)}`;
}

function opening({ identity }: QueryContext): string {
  return `{"namespace":${JSON.stringify(identity.name)},`;
}

function closing(context: QueryContext, end: ScanEnd): string {
  return (
    `${tookJson(context.monotonic() - context.beganAt)},"partial":${isCutShort(end)},` +
    `${figuresJson(figuresOf(context, isTimedOut(end)))}}`
  );
}
