import { limits } from '../../protocol/limits.ts';
import type { LogControl } from '../../protocol/worker-tasks.ts';
import { DataError } from '../base/assert.ts';
import { describeError, type Logger } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import { StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import type { Reachability } from '../peers/dialled-peer.ts';
import { changeView, type ViewComponents } from './change-view.ts';
import type { ViewFollower } from './follow-view.ts';
import { planActivation, planForgetting, planLeave, planRemoval } from './plan-view.ts';
import { Suspicion } from './suspicion.ts';
import type { ClusterMember, ClusterView } from './view.ts';

/**
 * What a member of a view of several does for its own standing and for that of others: it becomes active once it has
 * entered, looks at the leases of the others, and removes one that has died, by its log: sealed first, then out of the view. Who was suspected
 * wrongly meets the seal, ends, and comes back as a new member.
 */
export interface MembershipComponents extends ViewComponents {
  readonly logger: Logger;
  readonly log: Pick<LogControl, 'seal' | 'doneAmong'>;
  readonly follower: ViewFollower;
  readonly logId: string;
  /** How the process of a log can be reached; null where nobody knows. */
  readonly reachability?: (logId: string) => Reachability | null;
  /** Tells the other members of a view that was made here, which is sooner than they would find it. */
  readonly push?: (view: ClusterView) => void;
  /** Has the other members flush what this one will own, or gives that up after a while; does nothing where nobody else has come to own it. Never rejects. */
  readonly prepare?: () => Promise<void>;
}

/** Between two looks at which sealed logs are done, in milliseconds. */
const forgetEveryMs = 30_000;

export class OwnMembership {
  readonly #components: MembershipComponents;
  readonly #suspicion: Suspicion;
  #ownLease: string | null = null;
  #isLeaving = false;
  #forgotAtMs = Number.NEGATIVE_INFINITY;
  #evictions = 0;

  constructor(components: MembershipComponents) {
    this.#components = components;
    this.#suspicion = new Suspicion(components.clock.monotonic());
  }

  /** Members that were evicted from here. */
  get evictions(): number {
    return this.#evictions;
  }

  /** The answer stops it. */
  keep(): () => void {
    const { clock } = this.#components;
    return repeat(clock, 0, async () => {
      await this.round();
      return this.#suspicion.refusesAny ? limits.suspectLookMs : limits.viewPollMs;
    });
  }

  /** One round. What fails is done by the next. */
  async round(): Promise<void> {
    const { logger } = this.#components;
    try {
      await this.#activate();
      await this.#look();
      this.#noteRefusals();
      await this.#evict();
      await this.#forgetDone();
    } catch (error) {
      if (!(error instanceof StoreError) && !(error instanceof DataError)) throw error;
      this.#suspicion.ownLease(false, this.#components.clock.monotonic());
      logger.error('the other members were not looked at', { error: describeError(error) });
    }
  }

  /** From the answer on this process owns nothing, but for the last of all. Resolves once its threads have heard. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    const { logId } = this.#components;
    const view = await changeView(this.#components, (view) => planLeave(view, logId));
    if (view !== null) await this.#made(view);
  }

  /** Seals the own log and takes it out of the view, when nothing is written to it any more. False where there is no heir: then the next start does it. */
  async end(): Promise<boolean> {
    const { logId, log, follower, push } = this.#components;
    const { members, placement } = follower.view;
    if (!members.some((member) => member.logId !== logId && member.state === 'active')) return false;
    const sealSeq = await log.seal(logId, placement);
    const view = await changeView(this.#components, (view) => planRemoval(view, { logId, sealSeq }));
    // The own threads have no view to hear of any more.
    if (view !== null) push?.(view);
    return true;
  }

  async #made(view: ClusterView): Promise<void> {
    this.#components.push?.(view);
    await this.#components.follower.offer(view);
  }

  async #activate(): Promise<void> {
    const { follower, logId } = this.#components;
    const isJoining = follower.view.members.some(
      (member) => member.logId === logId && member.state === 'joining',
    );
    if (!isJoining || this.#isLeaving) return;
    await this.#components.prepare?.();
    if (this.#isLeaving) return;
    const view = await changeView(this.#components, (view) => planActivation(view, logId));
    if (view !== null) await this.#made(view);
  }

  /** Reads the leases of all members. The own one tells whether it is the store that is away. */
  async #look(): Promise<void> {
    const { store, clock, logId } = this.#components;
    for (const { logId: other } of this.#others) {
      const etag = (await store.get(paths.lease(other)))?.etag ?? null;
      this.#suspicion.lease(other, etag, clock.monotonic());
    }
    const own = (await store.get(paths.lease(logId)))?.etag ?? null;
    if (own !== null && own !== this.#ownLease) this.#suspicion.ownLease(true, clock.monotonic());
    this.#ownLease = own;
  }

  /** A process that has ended is known sooner by its host, which refuses connections to it. */
  #noteRefusals(): void {
    const { reachability, clock } = this.#components;
    this.#suspicion.members(this.#others.map(({ logId }) => logId));
    for (const { logId } of this.#others) {
      const reached = reachability?.(logId) ?? null;
      if (reached === null || !reached.hasAnswered) continue;
      const { refusedSinceMs, comesBack } = reached;
      if (refusedSinceMs === null) this.#suspicion.answered(logId);
      else this.#suspicion.refused(logId, Math.min(refusedSinceMs, clock.monotonic()), comesBack);
    }
  }

  async #evict(): Promise<void> {
    const { clock, log, logger, follower } = this.#components;
    const suspect = this.#suspicion.whom(this.#others, clock.monotonic());
    if (suspect === null) return;
    const whom = suspect.logId;
    logger.info('a member is evicted: its lease has not changed for too long', { logId: whom });
    const sealSeq = await log.seal(whom, follower.view.placement + 1);
    this.#suspicion.evicted(suspect, clock.monotonic());
    this.#evictions++;
    const { logId } = this.#components;
    // Two who suspect each other do not both go.
    const isMember = (view: ClusterView) => view.members.some((member) => member.logId === logId);
    const view = await changeView(this.#components, (view) =>
      isMember(view) ? planRemoval(view, { logId: whom, sealSeq }) : null,
    );
    if (view !== null) await this.#made(view);
  }

  /** One member takes logs out of the view whose records are all in manifests. */
  async #forgetDone(): Promise<void> {
    const { clock, log, follower, logId } = this.#components;
    const { members, removed } = follower.view;
    if (removed.length === 0 || members.find(({ state }) => state === 'active')?.logId !== logId) return;
    if (clock.monotonic() - this.#forgotAtMs < forgetEveryMs) return;
    this.#forgotAtMs = clock.monotonic();
    const done = await log.doneAmong(removed.map((each) => each.logId));
    const view = await changeView(this.#components, (view) => planForgetting(view, done));
    if (view !== null) await this.#made(view);
  }

  get #others(): readonly ClusterMember[] {
    const { follower, logId } = this.#components;
    return follower.view.members.filter((member) => member.logId !== logId);
  }
}
