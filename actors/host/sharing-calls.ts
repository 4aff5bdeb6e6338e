import { ApiError } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import type { ActorCall, ShareRequest } from '../../protocol/messages.ts';
import { placementKey } from '../../protocol/placement.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type ActorReply, reply } from '../actor/actor-reply.ts';
import type { ActorComponents, StoredManifest } from '../actor/components.ts';
import { answerNearBlocks } from '../actor/parent-blocks.ts';
import { releaseBuried } from '../namespace/drop.ts';
import type { NamespaceActor } from '../namespace/namespace-actor.ts';
import { decodeManifest, encodeManifest, type Manifest } from '../storage/manifest.ts';
import { ActorClosed, type Committed, Deposed } from '../storage/manifest-store.ts';
import type { WantedBlocks } from '../storage/near-blocks.ts';
import { NamespaceIsLink } from './read-link.ts';

/** What these calls need of the host. */
export interface SharingHost {
  /** Runs work with the open actor of the name, and closes it where the work breaks. */
  withActor<T>(work: (actor: NamespaceActor) => Promise<T>): Promise<T>;
  isDropping(namespaceId: string): boolean;
  /** Hears of a manifest that was stored for a namespace which nobody knows yet. */
  remember(child: Committed<Manifest>): void;
}

/**
 * Does what links and branches need of a namespace: tells its version, has another one begin as it is, lets go what was held of it. The
 * call's argument is the namespace's id. Null where it is another call.
 */
export async function answerSharing(
  components: ActorComponents,
  call: ActorCall,
  body: Uint8Array | null,
  host: SharingHost,
): Promise<ActorReply | null> {
  const isMeant = ({ identity }: NamespaceActor) => identity.namespaceId === call.argument;
  switch (call.operation) {
    case internalCalls.namespaceVersion:
      return packed(
        await host.withActor(async (actor) => (isMeant(actor) ? actor.version : null)).catch(nullWhereGone),
      );
    case internalCalls.namespaceBegan: {
      const { bytes, etag } = unpackMessage(body ?? new Uint8Array()) as StoredManifest;
      const value = decodeManifest(bytes, paths.namespaceManifest(call.argument));
      host.remember({ value, etag, size: bytes.byteLength });
      return reply('', { status: 204 });
    }
    case internalCalls.nearBlocks: {
      const wanted = unpackMessage(body ?? new Uint8Array()) as WantedBlocks;
      return packed(answerNearBlocks(components.fetcher.options, wanted));
    }
    case internalCalls.shareNamespace: {
      const request = unpackMessage(body ?? new Uint8Array()) as ShareRequest;
      const began = (child: Committed<Manifest>) => tellItsThread(components, host, child);
      return packed(
        await host
          .withActor(async (actor) => (isMeant(actor) ? actor.share(request, began) : null))
          .catch(nullWhereGone),
      );
    }
    case internalCalls.releaseNamespace:
      await release(components, call, host);
      return reply('', { status: 204 });
    default:
      return null;
  }
}

/** Has the thread that a new namespace will live on know its manifest, where it is one of this server. */
async function tellItsThread(
  { directory, isOnOtherThread }: ActorComponents,
  host: SharingHost,
  child: Committed<Manifest>,
): Promise<void> {
  const { value, etag } = child;
  const { tenantId, name, namespaceId } = value;
  if (!isOnOtherThread(placementKey(tenantId, name))) return host.remember(child);
  // It is waited for, and fails the branch: what came to that thread later than the name could be older than what is there by then.
  await directory.began(tenantId, name, namespaceId, { bytes: encodeManifest(value), etag });
}

/** The query is the holder's id. */
async function release(components: ActorComponents, call: ActorCall, host: SharingHost): Promise<void> {
  const { tenantId, namespace, argument: namespaceId, query: holderId } = call;
  const { directory, ownership } = components;
  const resolved = await directory.resolve(tenantId, namespace, null);
  if (resolved?.namespaceId === namespaceId)
    return host.withActor(async (actor) => {
      if (actor.identity.namespaceId !== namespaceId) throw new ActorClosed('it was deleted meanwhile');
      await actor.release(holderId);
    });
  ownership.require(placementKey(tenantId, namespace));
  if (host.isDropping(namespaceId)) throw new ActorClosed('it is being deleted');
  try {
    await releaseBuried(components, namespaceId, holderId);
  } catch (error) {
    if (!(error instanceof Deposed)) throw error;
    throw new ActorClosed('another holder let go at the same moment', { cause: error });
  }
}

function packed(value: unknown): ActorReply {
  return reply('', { packed: packMessage(value) });
}

function nullWhereGone(error: unknown): null {
  if (error instanceof NamespaceIsLink || (error instanceof ApiError && error.code === 'not_found'))
    return null;
  throw error;
}
