/**
 * A segment that was made of a file becomes part of a namespace, by one record of the log that names it.
 *
 * 1. What the namespace holds in memory is flushed: the record's segment is newer than all segments, and a memtable newer than it.
 * 2. Rows that it replaces are found by the ids of both sides, beside reads.
 * 3. The record is appended. Once it is durable its segment and its tombstones are there, in one step.
 * 4. A manifest that contains it is committed before any other: whoever replays the record finds it applied, or not at all.
 *
 * Writes wait meanwhile, in turn, and so does every other commit.
 *
 * Sequences of its rows were given when the segment was made, so far above the namespace's that nothing could come between.
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { assert } from '../../src/base/assert.ts';
import { toShared } from '../../src/base/garbage.ts';
import { decodePayload, encodeValue } from '../../src/base/record.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { BuiltImport } from '../compute/lanes.ts';
import type { LogPosition } from '../log/replay.ts';
import { segmentTocSchema } from '../storage/segment-format.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { noTombstones, withDeleted } from '../storage/tombstones.ts';
import { commitReached, flushEverything, reachOf } from './flush.ts';
import type { NamespaceState, WriteStamp } from './namespace-state.ts';

const importedSegmentSchema = z.strictObject({
  id: z.string(),
  /** Bytes of the whole object. */
  size: z.int(),
  toc: segmentTocSchema,
  /** Bytes of the file, which are metered. */
  bytes: z.int(),
  /** Keys of metas that hold dates or times, and keys that hold texts, from now on. */
  temporalKeys: z.array(z.string()).readonly(),
  textKeys: z.array(z.string()).readonly(),
  /** Whether two of its rows may have one id. */
  hasEqualIds: z.boolean(),
});
export type ImportedSegment = Readonly<z.output<typeof importedSegmentSchema>>;
const checkImported = storedCheck(importedSegmentSchema);

/** What the answer says of an import beside what was stored. */
export interface ImportFigures {
  /** Rows whose meta leaves out some of the columns that are their text. */
  readonly textOnly: number;
  readonly tookMs: () => number;
}

/** How far an import's sequences lie above those that there are when it begins: what is written meanwhile goes between. */
const sequencesAhead = 2 ** 33;

/** Answers where the sequences of an import that begins now begin. Throws ApiError 422 where there have been too many imports. */
export function firstSequenceOfImport(lastSequence: number): number {
  const firstSequence = lastSequence + sequencesAhead;
  if (firstSequence > limits.importSequenceMax) {
    const sentence =
      'this namespace has taken as many imports as one can: import the file into a new namespace';
    throw new ApiError('invalid', `nothing was imported: ${sentence}`);
  }
  return firstSequence;
}

export function importedSegment(id: string, built: BuiltImport, bytes: number): ImportedSegment {
  const { size, toc, temporalKeys, textKeys, hasEqualIds } = built;
  return { id, size, toc, bytes, temporalKeys, textKeys, hasEqualIds };
}

/** The payload of an import's record, in shared memory. */
export function encodeImport(segment: ImportedSegment): Buffer {
  return toShared(encodeValue(segment));
}

/** The segment that an import's record names. Throws `DataError`. */
export function decodeImport(payload: Uint8Array): ImportedSegment {
  return decodePayload(payload, 'the record of an import', checkImported);
}

export interface ImportWrite {
  readonly segment: ImportedSegment;
  readonly stamp: WriteStamp;
  readonly position: LogPosition;
  /** What the record takes in the log. */
  readonly payloadBytes: number;
}

/**
 * Makes a segment part of the namespace. Called in turn with every other commit, and with no write under way. `append` resolves
 * when the record is durable.
 */
export async function commitImport(
  components: ActorComponents,
  state: NamespaceState,
  segment: ImportedSegment,
  append: () => Promise<Omit<ImportWrite, 'segment'>>,
): Promise<void> {
  refuseKeys(state, segment);
  await flushEverything(components, state);
  assertNewest(state, segment);
  const replaced = await findReplaced(components, state, segment);
  const write = { segment, ...(await append()) };
  replaced(write);
  await commitReached(components, state);
}

/**
 * Asserts that the segment is newer than all that the namespace holds, and that its rows have sequences without a gap: the log and the
 * manifests after it say no more of them than where they begin and how many they are.
 */
function assertNewest(state: NamespaceState, { toc }: ImportedSegment): void {
  const inMemory = state.memtable.rowCount + state.frozen.length;
  assert(inMemory === 0, () => `an import meets ${inMemory} rows or memtables that are not in segments`);
  const newest = state.segments.at(-1)?.reader.toc.maxSequence ?? 0;
  assert(toc.minSequence > newest, () => `an import begins at ${toc.minSequence}, and ${newest} is there`);
  assert(
    toc.maxSequence - toc.minSequence + 1 === toc.rowCount,
    () => `an import of ${toc.rowCount} rows has sequences ${toc.minSequence} to ${toc.maxSequence}`,
  );
}

/** Applies the record of an import that the manifest does not contain: it is the first of those, so nothing is in memory. */
export async function replayImport(
  components: ActorComponents,
  state: NamespaceState,
  write: ImportWrite,
): Promise<void> {
  assertNewest(state, write.segment);
  const apply = await findReplaced(components, state, write.segment);
  apply(write);
  state.importReach = reachOf(state);
}

/** Answers what applies it, in one step. */
async function findReplaced(
  { lanes, fetcher, shares }: Pick<ActorComponents, 'lanes' | 'fetcher' | 'shares'>,
  state: NamespaceState,
  { id, size, toc, hasEqualIds }: ImportedSegment,
): Promise<(write: ImportWrite) => void> {
  const key = paths.namespaceSegment(state.identity.namespaceId, id);
  const before = state.segments;
  const { own, others } =
    before.length === 0 && !hasEqualIds
      ? { own: [], others: [] }
      : await lanes.replacedRows(
          {
            task: 'replaced-rows',
            imported: { key, toc },
            segments: before.map(({ reader }) => ({ key: reader.objectKey, toc: reader.toc })),
          },
          shares.claim(state.identity.tenantId),
        );
  assert(others.length === before.length, () => `${others.length} of ${before.length} segments were asked`);
  return ({ segment, stamp, position, payloadBytes }) => {
    assert(state.segments === before, () => 'segments have changed while an import looked for replaced rows');
    const replaced = before.map((other, at): OpenSegment => {
      const rows = others[at] as Uint32Array;
      return rows.length === 0 ? other : { ...other, tombstones: withDeleted(other.tombstones, rows) };
    });
    const reader = new SegmentReader(key, toc, fetcher, shares.of(state.identity.tenantId).owner);
    const added = { id, size, reader, tombstones: withDeleted(noTombstones, own), graphs: null };
    state.segments = [...replaced, added];
    state.generation++;
    state.temporalKeys = keysAfter(state.temporalKeys, segment);
    const lastSequence = stamp.baseSequence + toc.rowCount;
    state.countWrite(stamp, { lastSequence, docs: toc.rowCount, bytes: segment.bytes });
    state.noteApplied(position, payloadBytes);
  };
}

/** The last import that has a column says what it is. */
function keysAfter(
  keys: ReadonlySet<string>,
  { temporalKeys, textKeys }: ImportedSegment,
): ReadonlySet<string> {
  const texts = new Set(textKeys);
  return new Set([...[...keys].filter((key) => !texts.has(key)), ...temporalKeys]);
}

function refuseKeys(state: NamespaceState, segment: ImportedSegment): void {
  if (keysAfter(state.temporalKeys, segment).size <= limits.temporalKeysMax) return;
  throw new ApiError(
    'invalid',
    `nothing was imported: a namespace has at most ${limits.temporalKeysMax} keys that hold dates or times`,
  );
}
