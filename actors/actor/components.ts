import { ApiError } from '../../protocol/errors.ts';
import type { FlowLimits } from '../../protocol/limits.ts';
import type {
  ActorAnswer,
  ActorCall,
  EmbedChange,
  NewNamespace,
  ResolvedNamespace,
  SharedNamespace,
  ShareRequest,
} from '../../protocol/messages.ts';
import type { NamespaceReport, ProviderKeyRecord } from '../../protocol/stored-tenant.ts';
import type { KeyRing } from '../../src/accounts/key-ring.ts';
import type { Plans } from '../../src/accounts/plans.ts';
import type { ByteGate } from '../../src/base/byte-gate.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/log.ts';
import type { Random } from '../../src/base/random.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import type { ComputeLanes } from '../compute/lanes.ts';
import type { LogClient } from '../log/log-client.ts';
import type { ScanRoom } from '../search/scan-room.ts';
import type { SqlComponents } from '../search/sql/sql-components.ts';
import type { BlockFetcher } from '../storage/block-fetch.ts';
import type { OrderlyEnd } from '../storage/manifest-cache.ts';
import type { WantedBlocks } from '../storage/near-blocks.ts';
import type { WarmCache } from '../storage/warm-cache.ts';
import type { QueryPatterns } from '../text/query-pattern.ts';
import type { KnownShares } from '../thread/known-shares.ts';
import type { MemoryBudget } from '../thread/memory-budget.ts';
import type { GraphFiles } from '../vector/graph-files.ts';
import type { Ownership } from './ownership.ts';
import type { ReadEvidence } from './read-evidence.ts';

/** What an actor is built with: the thread makes one of these, top to bottom, in worker.ts. */
export interface ActorComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly limits: FlowLimits;
  readonly log: LogClient;
  readonly lanes: ComputeLanes;
  readonly shares: KnownShares;
  readonly fetcher: BlockFetcher;
  readonly warmCache: WarmCache | null;
  readonly graphFiles: GraphFiles;
  /** Patterns that this thread's queries have asked for lately. */
  readonly patterns: QueryPatterns;
  /** Bounds the blocks that scans of this thread have other threads look through. */
  readonly scanRoom: ScanRoom;
  /** What this thread's data may take; everything that stays in memory is counted there. */
  readonly memory: MemoryBudget;
  /** What running queries hold beside that: shared by owner. */
  readonly queryMemory: ByteGate;
  /** What this thread's SQL queries share: memory, decoded columns, large buffers. */
  readonly sql: SqlComponents;
  readonly directory: NamespaceDirectory;
  /** Tells what this thread has put into its cache from what was put there by those before it. */
  readonly threadLife: string;
  /** How the thread before this one ended, in the server's process before: null where it died, or is not known. */
  readonly orderlyEnd: OrderlyEnd | null;
  readonly ownership: Ownership;
  /** Whether the actor of this placement key lives on another thread of this server. */
  readonly isOnOtherThread: (key: string) => boolean;
  /** Null where no other server can take over. */
  readonly evidence: ReadEvidence | null;
  /** Limits and prices: a tenant's record names its plan. */
  readonly plans: Plans;
  /** Whether there is a payment provider to subscribe at. */
  readonly hasPayments: boolean;
  /** Signs cursors; the same on every server. */
  readonly cursorKeys: KeyRing;
  /** Opens the sealed keys of embedding providers. */
  readonly keyEncryptionKeys: KeyRing;
}

/** A manifest as it was stored. */
export interface StoredManifest {
  readonly bytes: Uint8Array;
  readonly etag: string;
}

/** Actors of other kinds, wherever they live: calls go through the router. */
export interface NamespaceDirectory {
  /** The name's namespace; `create` makes it where it is missing. Null: no such name, or a link whose source is gone. */
  resolve(tenantId: number, name: string, create: NewNamespace | null): Promise<ResolvedNamespace | null>;
  /** As `resolve`, for a client who named it: throws 404 where it is a link whose source is gone. */
  lookUp(tenantId: number, name: string, create: NewNamespace | null): Promise<ResolvedNamespace | null>;
  /** Resolves once the name is durable; rejects where it was not made after all. */
  confirm(tenantId: number, name: string, namespaceId: string): Promise<void>;
  /** Resolves once the tenant has heard; of a namespace whose name is gone, once that is durable. */
  report(tenantId: number, name: string, report: NamespaceReport): Promise<void>;
  /** Resolves once it is durable how many bytes others hold of a namespace that was deleted. */
  reportHeld(tenantId: number, namespaceId: string, bytes: number): Promise<void>;
  /** What all namespaces of the tenant take in the store, as far as it has heard. */
  storedBytes(tenantId: number): Promise<number>;
  /** Throws 402 where the tenant's allowance of the hosted embedding model has no room for `tokens`. */
  admitHosted(tenantId: number, tokens: number): Promise<void>;
  /** The tenant's sealed key of an embedding provider. */
  providerKey(tenantId: number, provider: string): Promise<ProviderKeyRecord | null>;
  /** Resolves once the change is durable; rejects where the name leads elsewhere. */
  setEmbed(tenantId: number, name: string, change: EmbedChange): Promise<void>;
  /** Ends the open namespace, if any, and deletes its objects. Rejects with NotErasedYet where it lets nobody in any more, but they may be there. */
  drop(tenantId: number, name: string, namespaceId: string): Promise<void>;
  /** The version of the namespace of that name and id; null where the name does not lead to it. */
  versionOf(tenantId: number, name: string, namespaceId: string): Promise<number | null>;
  /** The thread of a namespace that nobody knows yet has its first manifest; rejects where it may come to it later, or never. */
  began(tenantId: number, name: string, namespaceId: string, stored: StoredManifest): Promise<void>;
  /** Blocks that the thread of the namespace has on its part of the local disk, as asked for; null for others. */
  nearBlocks(tenantId: number, name: string, wanted: WantedBlocks): Promise<readonly (Uint8Array | null)[]>;
  /** The namespace of that name and id has another one begin as it is; null where it has another version, or the name is another's. */
  share(
    tenantId: number,
    name: string,
    namespaceId: string,
    request: ShareRequest,
  ): Promise<SharedNamespace | null>;
  /** The namespace, whose name may be gone, lets go what `holderId` holds of it. */
  release(tenantId: number, name: string, namespaceId: string, holderId: string): Promise<void>;
  /** What the owner of the namespace that is named answers to a client's read: refusals are answers too. */
  read(
    call: ActorCall,
    body: Uint8Array | null,
  ): Promise<{ readonly answer: ActorAnswer; readonly bytes: Uint8Array }>;
  /** The namespace deletes what it has retired, where that is due; nothing where the name leads elsewhere. */
  collect(tenantId: number, name: string, namespaceId: string): Promise<void>;
  /** Every front forgets what it has cached of the tenant. */
  forget(tenantId: number): Promise<void>;
}

/**
 * Whether nobody will ever replay the log again, so that a watermark of it may be forgotten. `owner`: of the manifest
 * that holds the watermark.
 *
 * Every log of that manifest was a member of some view up to the owner's, and a log leaves the views only when it is done:
 * sealed, and all its records in manifests. So one that a view as new as the owner's does not name any more is done.
 */
export function isGoneLog(
  { ownership }: Pick<ActorComponents, 'ownership'>,
  owner: { readonly view: number },
  logId: string,
): boolean {
  return owner.view <= ownership.placement && !ownership.namesLog(logId);
}

/**
 * Throws 503 where the manifest's owner knows a newer view than this process, which was taken over and has not heard.
 * What it holds of older logs must not be applied to that manifest: their watermarks may be forgotten there already.
 */
export function refuseNewerOwner(
  { ownership }: Pick<ActorComponents, 'ownership'>,
  owner: { readonly view: number },
): void {
  if (owner.view <= ownership.placement) return;
  throw new ApiError('unavailable', 'this data is served by another process now; nothing was written', {
    retryAfter: 1,
  });
}
