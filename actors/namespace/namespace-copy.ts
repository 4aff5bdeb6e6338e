import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ReadLink, ResolvedNamespace } from '../../protocol/messages.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { targetRecords } from '../log/target-records.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { MemoryAccount } from '../thread/memory-budget.ts';
import { NamespaceQueries } from './namespace-queries.ts';
import type { NamespaceState } from './namespace-state.ts';
import { openNamespace } from './open.ts';
import { closeReaders } from './open-built.ts';
import { manifestBytes, openNamespaceBytes, readerBytes } from './resident.ts';

/**
 * A namespace as the store has it, on a server that may not own it: manifest and logs, read once. It is only read, it changes nothing, and
 * nobody may take it for the present: `asOfMs` says how old it is.
 */
export class NamespaceCopy {
  readonly identity: NamespaceIdentity;
  /** The link, where it is a namespace that stays at a version of its source. */
  readonly link: ReadLink | null;
  readonly queries: NamespaceQueries;
  /** What was acknowledged before this is in it; by the clock's `monotonic`. */
  readonly asOfMs: number;
  readonly #state: NamespaceState;
  readonly #account: MemoryAccount;
  #readers = 0;
  #isClosed = false;

  private constructor(
    components: ActorComponents,
    made: {
      readonly state: NamespaceState;
      readonly resolved: ResolvedNamespace;
      readonly link: ReadLink | null;
      readonly asOfMs: number;
    },
  ) {
    const { state, resolved, link, asOfMs } = made;
    this.identity = state.identity;
    this.link = link;
    this.asOfMs = asOfMs;
    this.#state = state;
    const { branched } = resolved;
    // The owner builds its graphs.
    this.queries = new NamespaceQueries(components, state, { branched, indexVectors: () => {} });
    this.#account = new MemoryAccount(components.memory);
    this.#account.set('actors', openNamespaceBytes);
    this.#account.set('memtables', state.memtableBytes);
    this.#account.set('manifests', manifestBytes(state, state.segments));
    this.#account.set('readers', readerBytes(state.segments));
  }

  /** Throws 503 where what is stored does not show the namespace as a whole. */
  static async open(
    components: ActorComponents,
    identity: NamespaceIdentity,
    {
      resolved,
      link,
      tally,
    }: { readonly resolved: ResolvedNamespace; readonly link: ReadLink | null; readonly tally: ReadTally },
  ): Promise<NamespaceCopy> {
    const { ownership } = components;
    const { placement, logs, sealedLogs } = ownership;
    const read = await Promise.all(
      logs.map((logId) => targetRecords(components, { logId, placement }, identity.namespaceId)),
    );
    // A log that the view knows to be sealed is no owner's any more.
    const asOfMs = Math.min(
      components.clock.monotonic(),
      ...read.filter((_, at) => !sealedLogs.includes(logs[at] ?? '')).map((each) => each.asOfMs),
    );
    const { vector, embed, documentsKnown, branched } = resolved;
    const state = await openNamespace(components, identity, {
      isNew: false,
      hasManifest: link !== null || branched !== null,
      vector,
      embed,
      replayed: inOrder(read.flatMap(({ records }) => records)),
      documentsKnown,
      again: true,
      putAwayVersion: null,
      tally,
    });
    return new NamespaceCopy(components, { state, resolved, link, asOfMs });
  }

  /** Answers what ends the reading. */
  read(): () => void {
    this.#readers++;
    return () => {
      this.#readers--;
      this.#closeUnread();
    };
  }

  /** It is closed once nobody reads it any more. */
  close(): void {
    this.#isClosed = true;
    this.#closeUnread();
  }

  #closeUnread(): void {
    if (!this.#isClosed || this.#readers > 0) return;
    this.#account.release();
    closeReaders(this.#state);
  }
}

/** Records of several logs in the order in which they were written, which is that of their versions. */
function inOrder(records: readonly ReplayedRecord[]): readonly ReplayedRecord[] {
  const sorted = [...records].sort((one, other) => one.head.version - other.head.version);
  let before: number | null = null;
  for (const { head } of sorted) {
    if (before !== null && head.version !== before + 1) throw notWhole();
    before = head.version;
  }
  return sorted;
}

function notWhole(): ApiError {
  const sentence = `what is stored of this namespace is changing; ask again after ${limits.copyKeptMs} ms`;
  return new ApiError('unavailable', sentence, { retryAfter: 1 });
}
