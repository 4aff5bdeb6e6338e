/**
 * Imports a received file into a namespace, which may not exist yet:
 *
 * 1. The place is found: the namespace's id, and the sequences that its rows will have. A new namespace gets an id here and
 *    is made only in step 3, so that a file that is wrong makes none.
 * 2. A compute thread makes one segment of the file and stores it. Nothing names the segment yet.
 * 3. The namespace's actor commits it: one record of the log names it, and a manifest (commit-import.ts).
 *
 * If the actor closes between 1 and 3, or the name is made or deleted, the segment's place is wrong: the segment is deleted and all
 * three steps are done again, a few times at most.
 */
import { ApiError } from '../../protocol/errors.ts';
import type { ActorCall, NewNamespace, ReceivedFile } from '../../protocol/messages.ts';
import type { LaneClaim } from '../../protocol/worker-tasks.ts';
import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorReply } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { importRequest, refuseVectors } from '../import/import-request.ts';
import { ActorClosed } from '../storage/manifest-store.ts';
import { firstSequenceOfImport, type ImportedSegment, importedSegment } from './commit-import.ts';
import type { NamespaceActor } from './namespace-actor.ts';

export interface ImportHost {
  /** Throws ApiError 507 where the tenant's storage quota has no room for so many bytes, or for any. */
  admit(bytes: number): Promise<void>;
  /** Runs work with the namespace's open actor; `create` makes the namespace where the name is free. */
  withActor<T>(create: NewNamespace | null, work: (actor: NamespaceActor) => Promise<T>): Promise<T>;
}

/** An actor closes under an import once, hardly ever twice. */
const triesMax = 4;

/** Where the segment of an import goes. */
interface ImportPlace {
  readonly namespaceId: string;
  readonly firstSequence: number;
  /** How long its vectors are; null where it is new. */
  readonly dims: number | null;
  /** What the import makes the namespace with; null where the name had one. */
  readonly creates: NewNamespace | null;
}

/** Call it once at a time for each name: the sequences of an import are given when it begins. */
export async function importFile(
  components: ActorComponents,
  call: ActorCall,
  file: ReceivedFile,
  host: ImportHost,
): Promise<ActorReply> {
  const { clock, store, shares } = components;
  const claim = shares.claim(call.tenantId, call.deadlineMs);
  const beganAt = clock.monotonic();
  // The segment's size is known when it is made: the file may be compressed, or compress well.
  await host.admit(0);
  const asked = importRequest(call.query);
  for (let tries = 1; ; tries++) {
    const place = await findPlace(components, call, host);
    if (asked.vector !== null && place.dims === 0) refuseVectors();
    const { segment, key, textOnly, dims } = await buildSegment(components, { asked, file, place, claim });
    const figures = { textOnly, tookMs: () => Math.round(clock.monotonic() - beganAt) };
    try {
      if (tries === 1) await host.admit(segment.size);
      return await host.withActor(withVectors(place.creates, dims), async (actor) => {
        if (actor.identity.namespaceId !== place.namespaceId)
          throw new ActorClosed(`"${call.namespace}" is another namespace now`);
        return actor.import(segment, figures);
      });
    } catch (error) {
      // Nothing names the segment, so it may go at once. The sweep finds one whose deletion fails.
      if (isRefused(error)) await store.delete(key).catch(() => {});
      if (!isMisplaced(error)) throw error;
      if (tries === triesMax) throw tooUnsteady(error);
    }
  }
}

async function findPlace(
  { directory, random }: ActorComponents,
  { tenantId, namespace }: ActorCall,
  host: ImportHost,
): Promise<ImportPlace> {
  const known = await directory.lookUp(tenantId, namespace, null);
  if (known === null) {
    const namespaceId = randomHex(random, 16);
    const creates = { vector: null, embed: null, namespaceId };
    return { namespaceId, firstSequence: firstSequenceOfImport(0), dims: null, creates };
  }
  return host.withActor(null, async ({ identity, vectorDims, firstSequenceOfImport: firstSequence }) => ({
    namespaceId: identity.namespaceId,
    firstSequence,
    dims: vectorDims,
    creates: null,
  }));
}

/** What an import whose vectors have `dims` numbers makes its namespace with. */
function withVectors(creates: NewNamespace | null, dims: number): NewNamespace | null {
  if (creates === null || dims === 0) return creates;
  return { ...creates, vector: { dims, metric: 'cosine' } };
}

interface BuiltSegment {
  readonly segment: ImportedSegment;
  readonly key: string;
  readonly textOnly: number;
  readonly dims: number;
}

async function buildSegment(
  { clock, lanes, random }: ActorComponents,
  {
    asked,
    file,
    place,
    claim,
  }: {
    readonly asked: ReturnType<typeof importRequest>;
    readonly file: ReceivedFile;
    readonly place: ImportPlace;
    readonly claim: LaneClaim;
  },
): Promise<BuiltSegment> {
  const { namespaceId, firstSequence, dims } = place;
  const id = randomHex(random, 16);
  const key = paths.namespaceSegment(namespaceId, id);
  const writtenAt = Math.floor(clock.now() * 1_000);
  const { path, bytes } = file;
  const task = { ...asked, path, bytes, dims, key, firstSequence, writtenAt };
  const built = await lanes.importFile(task, claim);
  const segment = importedSegment(id, built, bytes);
  return { segment, key, textOnly: built.textOnly, dims: built.dims };
}

/** Whether the segment was surely not committed: after `write_unknown` the log may name it. */
function isRefused(error: unknown): boolean {
  return error instanceof ActorClosed || (error instanceof ApiError && error.code !== 'write_unknown');
}

/** Whether the namespace was closed, made or deleted while its segment was being made. */
function isMisplaced(error: unknown): boolean {
  return error instanceof ActorClosed || (error instanceof ApiError && error.code === 'not_found');
}

function tooUnsteady(cause: unknown): ApiError {
  const sentence =
    'the namespace was closed, made or deleted again and again meanwhile; nothing was imported: try again';
  return new ApiError('unavailable', sentence, { retryAfter: 1, cause });
}
