import type { FlowLimits } from '../protocol/limits.ts';
import type { ResolvedNamespace } from '../protocol/messages.ts';
import type { Clock } from '../src/base/clock.ts';
import type { Logger } from '../src/base/log.ts';
import type { Random } from '../src/base/random.ts';
import type { ObjectStore } from '../src/object-store/object-store.ts';
import type { ComputeLanes } from './compute/lanes.ts';
import type { LogClient } from './log/log-client.ts';
import type { BlockFetcher } from './storage/block-fetch.ts';
import type { WarmCache } from './storage/warm-cache.ts';

/** What an actor is built with: the thread makes one of these, top to bottom, in worker.ts. */
export interface ActorComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly limits: FlowLimits;
  readonly log: LogClient;
  readonly lanes: ComputeLanes;
  readonly fetcher: BlockFetcher;
  readonly warmCache: WarmCache | null;
  readonly directory: NamespaceDirectory;
  /** Logs of this server's own earlier processes that ended in order: manifests cached under them are current. */
  readonly predecessors: ReadonlySet<string>;
  /** Signs cursors; the same on every server. */
  readonly cursorKey: Uint8Array;
}

/** Actors of other kinds, wherever they live: calls go through the router. */
export interface NamespaceDirectory {
  /** The name's namespace; `create` makes it where it is missing. Null: no such name. */
  resolve(tenantId: number, name: string, create: boolean): Promise<ResolvedNamespace | null>;
  /** Resolves once the name is durable; rejects where it was not made after all. */
  confirm(tenantId: number, name: string, namespaceId: string): Promise<void>;
  report(tenantId: number, name: string, report: NamespaceReportFields): void;
  /** Ends the open namespace, if any, and deletes its objects. */
  drop(tenantId: number, name: string, namespaceId: string): Promise<void>;
  /** The namespace deletes what it has retired, where that is due; nothing where the name leads elsewhere. */
  collect(tenantId: number, name: string, namespaceId: string): Promise<void>;
  /** Every front forgets what it has cached of the tenant. */
  forget(tenantId: number): Promise<void>;
}

export interface NamespaceReportFields {
  readonly namespaceId: string;
  readonly docsWritten: number;
  readonly bytesWritten: number;
  readonly storedBytes: number;
}
