/** What a namespace consists of: the one object that is changed by compare-and-set. Edits are pure. */
import { storedBytes, storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type SegmentToc, segmentTocSchema } from './segment-format.ts';
import { graphFromWire, graphToWire, graphWireSchema, type SegmentGraph } from './segment-graph.ts';
import { decodeTombstones, encodeTombstones, type Tombstones } from './tombstones.ts';

export interface LogWatermark {
  readonly slot: number;
  readonly index: number;
}

export interface ManifestSegment {
  readonly id: string;
  /** How long the whole object is, in bytes. */
  readonly size: number;
  readonly toc: SegmentToc;
  /** Its deleted rows. A manifest that was just decoded has only their count where `tombstonesObject` names the object that has them. */
  readonly tombstones: Tombstones;
  /** The object of a set that is too large for the manifest. */
  readonly tombstonesObject: { readonly id: string; readonly size: number } | null;
  /** When a manifest first had tombstones of it, in milliseconds since 1970; null where it has none. */
  readonly deletedAtMs: number | null;
  /** Over its vectors, by their rows. Null where none were built; empty where they would not find what they should. */
  readonly graphs: readonly SegmentGraph[] | null;
}

/** An object that the manifest named before and that reads may still need. */
export interface RetiredObject {
  readonly kind: 'segment' | 'deletes' | 'graph';
  readonly id: string;
  readonly atMs: number;
}

/** Recent documents that the manifest carries itself, so that a small namespace has no segment object. */
export interface ManifestTail {
  readonly sequences: readonly number[];
  /** Microseconds since 1970. */
  readonly writtenAt: readonly number[];
  /** Document entries, one after the other. */
  readonly entries: Uint8Array;
}

const namespaceCountersSchema = z.strictObject({
  /** The namespace's version: plus one a write request. */
  version: z.int(),
  lastSequence: z.int(),
  /** Microseconds since 1970: the hybrid clock's last value. */
  lastWrittenAt: z.number(),
  docsWritten: z.int(),
  bytesWritten: z.number(),
});
export type NamespaceCounters = Readonly<z.output<typeof namespaceCountersSchema>>;

/** Who the namespace is; fixed for its life. */
export interface NamespaceIdentity {
  readonly tenantId: number;
  readonly name: string;
  readonly namespaceId: string;
  readonly createdAt: string;
}

export interface Manifest extends NamespaceIdentity {
  /** The version of the manifest itself, which rises by one with each commit. */
  readonly version: number;
  /** Random, new for each commit: tells one's own commit whose answer was lost, and makes every etag unique. */
  readonly nonce: string;
  readonly state: 'live' | 'deleted';
  readonly owner: { readonly logId: string; readonly view: number };
  /** Log id to the last record that is contained here. */
  readonly applied: ReadonlyMap<string, LogWatermark>;
  /** Oldest first; sequences of one lie wholly before those of the next. */
  readonly segments: readonly ManifestSegment[];
  readonly tail: ManifestTail | null;
  readonly retired: readonly RetiredObject[];
  readonly counters: NamespaceCounters;
  /** Keys of metas that hold dates or times. */
  readonly temporalKeys: readonly string[];
}

export function encodeManifest(manifest: Manifest): Uint8Array {
  const wire = {
    ...manifest,
    applied: [...manifest.applied].map(([logId, { slot, index }]) => [logId, slot, index]),
    segments: manifest.segments.map((s) => [
      s.id,
      s.size,
      s.toc,
      s.tombstonesObject === null
        ? encodeTombstones(s.tombstones)
        : [s.tombstones.count, s.tombstonesObject.id, s.tombstonesObject.size],
      s.graphs === null ? null : s.graphs.map(graphToWire),
      s.deletedAtMs,
    ]),
  };
  return encodeRecord(manifestFormat, wire, paths.namespaceManifest(manifest.namespaceId));
}

/** The manifest as it is encoded. */
const manifestWireSchema = z.strictObject({
  tenantId: z.int(),
  name: z.string(),
  namespaceId: z.string(),
  createdAt: z.string(),
  version: z.int(),
  nonce: z.string(),
  state: z.enum(['live', 'deleted']),
  owner: z.strictObject({ logId: z.string(), view: z.int() }),
  /** Log id, slot, and index within the slot. */
  applied: z.array(z.tuple([z.string(), z.int(), z.int()])),
  segments: z.array(
    z.tuple([
      /** Id, and bytes of the whole object. */
      z.string(),
      z.int(),
      segmentTocSchema,
      /** Tombstones as `encodeTombstones` makes them; or their count, and id and bytes of the object that has them. */
      z.union([storedBytes, z.tuple([z.int(), z.string(), z.int()])]),
      z.array(graphWireSchema).nullable(),
      /** Since when it has deleted rows; absent in version 6. */
      z.number().nullable().optional(),
    ]),
  ),
  tail: z
    .strictObject({
      sequences: z.array(z.int()).readonly(),
      writtenAt: z.array(z.number()).readonly(),
      entries: storedBytes,
    })
    .nullable(),
  retired: z
    .array(
      z.strictObject({ kind: z.enum(['segment', 'deletes', 'graph']), id: z.string(), atMs: z.number() }),
    )
    .readonly(),
  counters: namespaceCountersSchema,
  temporalKeys: z.array(z.string()).readonly(),
});

/** In version 6 segments do not say since when they have deleted rows. */
const manifestFormat = {
  magic: 'TBMF',
  versions: [formats.manifest.version, 6],
  check: storedCheck(manifestWireSchema),
} as const;

type ManifestWire = z.output<typeof manifestWireSchema>;

export function decodeManifest(bytes: Uint8Array, place: string): Manifest {
  const wire = decodeRecord(bytes, place, manifestFormat);
  return {
    ...wire,
    applied: new Map(wire.applied.map(([logId, slot, index]) => [logId, { slot, index }])),
    segments: wire.segments.map(([id, size, toc, wireTombstones, graphs, deletedAtMs]) => {
      const { tombstones, tombstonesObject } = tombstonesFromWire(wireTombstones);
      return {
        id,
        size,
        toc,
        tombstones,
        tombstonesObject,
        graphs: graphs === null ? null : graphs.map(graphFromWire),
        // Of format 6: nobody knows, so it may be long ago.
        deletedAtMs: deletedAtMs ?? (tombstones.count > 0 ? 0 : null),
      };
    }),
  };
}

function tombstonesFromWire(
  wire: ManifestWire['segments'][number][3],
): Pick<ManifestSegment, 'tombstones' | 'tombstonesObject'> {
  if (wire instanceof Uint8Array) return { tombstones: decodeTombstones(wire), tombstonesObject: null };
  const [count, id, size] = wire;
  return { tombstones: { count, chunks: new Map() }, tombstonesObject: { id, size } };
}

/** Whether its tombstones are there, not only counted. */
export function isWhole({ tombstones }: ManifestSegment): boolean {
  return tombstones.count === 0 || tombstones.chunks.size > 0;
}

/** Documents that are neither replaced nor deleted, as far as this manifest knows. */
export function liveDocumentsOf(manifest: Manifest): number {
  const inSegments = manifest.segments.reduce((sum, s) => sum + s.toc.rowCount - s.tombstones.count, 0);
  return inSegments + (manifest.tail?.sequences.length ?? 0);
}

export function isApplied(
  { applied }: { readonly applied: ReadonlyMap<string, LogWatermark> },
  at: LogWatermark & { readonly logId: string },
): boolean {
  const watermark = applied.get(at.logId);
  if (watermark === undefined) return false;
  return at.slot < watermark.slot || (at.slot === watermark.slot && at.index <= watermark.index);
}

/** Keys of all objects that the namespace owns as far as it says, those that are only waiting to be deleted among them. */
export function objectsOfManifest(
  manifest: Pick<Manifest, 'namespaceId' | 'segments' | 'retired'>,
): string[] {
  const { namespaceId, segments, retired } = manifest;
  return [
    paths.namespaceManifest(namespaceId),
    ...segments.map(({ id }) => paths.namespaceSegment(namespaceId, id)),
    ...segments.flatMap(({ tombstonesObject }) =>
      tombstonesObject === null ? [] : [paths.namespaceTombstones(namespaceId, tombstonesObject.id)],
    ),
    ...segments.flatMap(({ graphs }) =>
      (graphs ?? []).map((graph) => paths.namespaceGraph(namespaceId, graph.id)),
    ),
    ...retired.map((object) => keyOfRetired(namespaceId, object)),
  ];
}

export function keyOfRetired(namespaceId: string, { kind, id }: RetiredObject): string {
  switch (kind) {
    case 'segment':
      return paths.namespaceSegment(namespaceId, id);
    case 'deletes':
      return paths.namespaceTombstones(namespaceId, id);
    case 'graph':
      return paths.namespaceGraph(namespaceId, id);
  }
}
