/** What a namespace consists of: the one object that is changed by compare-and-set. Edits are pure. */
import { storedBytes, storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { DataError } from '../../src/base/assert.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { paths } from '../../src/object-store/paths.ts';
import { homeField, type ObjectKind, type ObjectRef, type Parent, type Pin } from './object-ref.ts';
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
  /** The namespace in whose folder the segment lies; absent for the manifest's own. See shared-objects.ts. */
  readonly home?: string;
  /** Its deleted rows. A manifest that was just decoded has only their count where `tombstonesObject` names the object that has them. */
  readonly tombstones: Tombstones;
  /** The object of a set that is too large for the manifest. */
  readonly tombstonesObject: { readonly id: string; readonly size: number; readonly home?: string } | null;
  /** When a manifest first had tombstones of it, in milliseconds since 1970; null where it has none. */
  readonly deletedAtMs: number | null;
  /** Over its vectors, by their rows. Null where none were built; empty where they would not find what they should. */
  readonly graphs: readonly SegmentGraph[] | null;
  /** The namespace in whose folder the segment's graphs lie; absent for the manifest's own. */
  readonly graphsHome?: string;
}

/** An object that the manifest named before and that reads may still need, or others hold. */
export interface RetiredObject extends ObjectRef {
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
  /** What other namespaces hold of the objects that this manifest names or has retired. */
  readonly pins?: readonly Pin[];
  /** The namespace whose manifest has a pin for this one; absent or null where none has. */
  readonly parent?: Parent | null;
}

export function encodeManifest(manifest: Manifest): Uint8Array {
  const { pins, parent, ...rest } = manifest;
  const wire = {
    ...rest,
    ...(pins === undefined || pins.length === 0 ? {} : { shared: pinsToWire(pins) }),
    ...(parent === undefined || parent === null ? {} : { parent }),
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
      ...homesToWire(s),
    ]),
  };
  return encodeRecord(manifestFormat, wire, paths.namespaceManifest(manifest.namespaceId));
}

/** Where the segment, its set of deleted rows and its graphs lie, null for its own folder; nothing where all of them do. */
function homesToWire({ home, tombstonesObject, graphsHome }: ManifestSegment): [] | [(string | null)[]] {
  const homes = [home ?? null, tombstonesObject?.home ?? null, graphsHome ?? null];
  return homes.every((each) => each === null) ? [] : [homes];
}

const objectKinds = ['segment', 'deletes', 'graph'] as const satisfies readonly ObjectKind[];

/** Pins of one namespace mostly hold the same objects: they are listed once, and each pin has their places in the list. */
function pinsToWire(pins: readonly Pin[]): z.output<typeof sharedSchema> {
  const places = new Map<string, number>();
  const objects: z.output<typeof sharedSchema>['objects'] = [];
  const placeOf = ({ kind, id, size, home }: ObjectRef) => {
    const key = `${kind} ${id}`;
    const known = places.get(key);
    if (known !== undefined) return known;
    places.set(key, objects.length);
    return objects.push([objectKinds.indexOf(kind), id, size ?? 0, home ?? null]) - 1;
  };
  const wire = pins.map(
    ({ name, namespaceId, atMs, objects: held }) => [name, namespaceId, atMs, held.map(placeOf)] as const,
  );
  return { objects, pins: wire.map(([name, id, atMs, held]) => [name, id, atMs, held]) };
}

function pinsFromWire({ objects, pins }: z.output<typeof sharedSchema>, place: string): Pin[] {
  const refs = objects.map(([kind, id, size, home]): ObjectRef => {
    const named = objectKinds[kind];
    if (named === undefined) throw new DataError(place, 0, `there is no kind ${kind} of objects`);
    return { kind: named, id, size, ...(home === null ? {} : { home }) };
  });
  const refAt = (at: number) => {
    const ref = refs[at];
    if (ref === undefined) throw new DataError(place, 0, `a pin holds object ${at} of ${refs.length}`);
    return ref;
  };
  return pins.map(([name, namespaceId, atMs, held]) => ({
    name,
    namespaceId,
    atMs,
    objects: held.map(refAt),
  }));
}

/** What others hold: each object once, by kind, id, bytes, and home or null; and who holds which of them. */
const sharedSchema = z.strictObject({
  objects: z.array(z.tuple([z.int().min(0), z.string(), z.int(), z.string().nullable()])),
  /** Name and id of the holder, since when in milliseconds since 1970, places in `objects`. */
  pins: z.array(z.tuple([z.string(), z.string(), z.number(), z.array(z.int().min(0))])),
});

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
      /** Whose folders the segment, its set of deleted rows and its graphs lie in; null: this one's. Absent where all do. */
      z.tuple([z.string().nullable(), z.string().nullable(), z.string().nullable()]).optional(),
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
      z.strictObject({
        kind: z.enum(objectKinds),
        id: z.string(),
        atMs: z.number(),
        size: z.int().optional(),
        home: z.string().optional(),
      }),
    )
    .readonly(),
  counters: namespaceCountersSchema,
  temporalKeys: z.array(z.string()).readonly(),
  shared: sharedSchema.optional(),
  parent: z.strictObject({ name: z.string(), namespaceId: z.string() }).optional(),
});

/** Version 7 knows nothing that is shared; in version 6 segments do not say since when they have deleted rows either. */
const manifestFormat = {
  magic: 'TBMF',
  versions: [formats.manifest.version, 7, 6],
  check: storedCheck(manifestWireSchema),
} as const;

type ManifestWire = z.output<typeof manifestWireSchema>;

export function decodeManifest(bytes: Uint8Array, place: string): Manifest {
  const { shared, parent, ...wire } = decodeRecord(bytes, place, manifestFormat);
  return {
    ...wire,
    ...(shared === undefined ? {} : { pins: pinsFromWire(shared, place) }),
    ...(parent === undefined ? {} : { parent }),
    retired: wire.retired.map(retiredFromWire),
    applied: new Map(wire.applied.map(([logId, slot, index]) => [logId, { slot, index }])),
    segments: wire.segments.map(([id, size, toc, wireTombstones, graphs, deletedAtMs, homes]) => {
      const [home, setHome, graphsHome] = homes ?? [];
      const { tombstones, tombstonesObject } = tombstonesFromWire(wireTombstones, setHome ?? undefined);
      return {
        ...homeField(home ?? undefined),
        ...(typeof graphsHome === 'string' ? { graphsHome } : {}),
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

function retiredFromWire({ size, home, ...rest }: ManifestWire['retired'][number]): RetiredObject {
  return { ...rest, ...(size === undefined ? {} : { size }), ...homeField(home) };
}

function tombstonesFromWire(
  wire: ManifestWire['segments'][number][3],
  home: string | undefined,
): Pick<ManifestSegment, 'tombstones' | 'tombstonesObject'> {
  if (wire instanceof Uint8Array) return { tombstones: decodeTombstones(wire), tombstonesObject: null };
  const [count, id, size] = wire;
  return { tombstones: { count, chunks: new Map() }, tombstonesObject: { id, size, ...homeField(home) } };
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
