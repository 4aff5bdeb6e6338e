/** A server among several on one store: the channel to the others, the view that it follows, and its own standing in it. */

import { ApiError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { ClusterTask, Owners, Standing } from '../protocol/placement.ts';
import type { LogControl } from '../protocol/worker-tasks.ts';
import type { Cached } from './auth/key-cache.ts';
import { DataError, must } from './base/assert.ts';
import { ByteGate } from './base/byte-gate.ts';
import { systemClock } from './base/clock.ts';
import type { Remote } from './base/control.ts';
import { counter, type Family, gauge } from './base/exposition.ts';
import { describeError, type Logger } from './base/log.ts';
import { systemRandom } from './base/random.ts';
import { settledWithin } from './base/settled-within.ts';
import { SingleFlight } from './base/single-flight.ts';
import { refuseSkewedClock } from './cluster/clock-skew.ts';
import { ViewFollower } from './cluster/follow-view.ts';
import type { Joined } from './cluster/join.ts';
import { OwnMembership } from './cluster/own-membership.ts';
import {
  type ClusterMember,
  type ClusterView,
  decodeView,
  encodeView,
  ownersOf,
  ownersWith,
  ownersWithout,
  readView,
  standingOf,
} from './cluster/view.ts';
import { CannotListen } from './front/door.ts';
import type { AttemptCounts, CountAttempt } from './identity/attempt-counts.ts';
import type { ObjectStore } from './object-store/object-store.ts';
import { tlsTransport } from './peers/node-tls.ts';
import { parsePeerAddress } from './peers/peer-address.ts';
import { Peers } from './peers/peers.ts';
import type { PeerTransport } from './peers/transport.ts';
import { tryKey } from './peers/try-key.ts';
import type { ActorThread } from './router/actor-threads.ts';
import { ForwardMetrics } from './router/forward-metrics.ts';
import { KnownMembers, type Membership } from './router/members.ts';
import { OtherServers } from './router/other-servers.ts';
import type { Router } from './router/router.ts';
import { type ReceiveFile, ServedCalls } from './router/served-calls.ts';
import { sharedAttempts } from './router/shared-attempts.ts';
import type { Settings } from './settings.ts';
import type { PeerSettings } from './settings-peers.ts';
import { SettingsError } from './settings-values.ts';

export interface ServerClusterParts {
  readonly settings: Settings;
  readonly peers: PeerSettings;
  readonly serverId: string;
  readonly store: ObjectStore;
  readonly router: Router;
  /** A tenant or a person changed: what this server's front has cached of them is void. */
  readonly forget: (cached: Cached) => void;
  /** What this server counts of attempts, for all where it owns the key. */
  readonly attempts: AttemptCounts;
  readonly logger: Logger;
}

/** What this server does with what it hears of the others. */
export interface JoinedParts {
  readonly joined: Joined;
  readonly threads: readonly ActorThread[];
  readonly log: Remote<LogControl>;
  /** The view does not name this process any more. */
  readonly onRemoved: () => void;
}

const memberStates = ['joining', 'active', 'leaving'] as const;
/** How long a stopping server looks for answers to what others have asked of it. */
const servingMsMax = 2_000;
const servingLookMs = 10;

export class ServerCluster {
  readonly #parts: ServerClusterParts;
  readonly #transport: PeerTransport;
  /** The name of this process; its log is known once it has joined. */
  readonly #self: { readonly serverId: string; logId: string };
  readonly #members: KnownMembers;
  readonly #peers: Peers;
  readonly #others: OtherServers;
  /** Counts attempts once for all servers. */
  readonly countAttempt: CountAttempt;
  readonly #looking = new SingleFlight<string, void>();
  #receiveFile: ReceiveFile = () => Promise.reject(stillStarting());
  #threads: readonly ActorThread[] = [];
  #follower: ViewFollower | null = null;
  #membership: OwnMembership | null = null;
  #stopFollowing = () => {};
  #stopKeeping = () => {};
  #isEnding = false;
  #joinedMs = 0;
  #returns = false;

  constructor(parts: ServerClusterParts) {
    this.#parts = parts;
    const { settings, peers, serverId, router, forget, attempts, logger } = parts;
    this.#self = { serverId, logId: '' };
    this.#transport = tlsTransport(peers.clusterKeys, systemClock);
    const nobody = { owners: { placement: 0, servers: [], self: serverId }, logs: new Map<string, string>() };
    this.#members = new KnownMembers(nobody, systemClock);
    const metrics = new ForwardMetrics();
    const common = { router, members: this.#members, clock: systemClock, logger, metrics };
    const handler = new ServedCalls({
      ...common,
      bodies: gateOf(settings),
      receiveFile: (...asked) => this.#receiveFile(...asked),
      forget,
      onView: (bytes) => this.#hear(bytes),
      onPrepare: (logId) => this.#prepareFor(logId),
      onAttempt: (ask) => attempts.take(ask),
      onBehind: () => void this.#look(),
    });
    const self = this.#self;
    const transport = this.#transport;
    this.#peers = new Peers({ self, transport, handler, clock: systemClock, random: systemRandom, logger });
    this.#others = new OtherServers({ ...common, peers: this.#peers, answers: gateOf(settings) });
    this.countAttempt = sharedAttempts({ members: this.#members, peers: this.#peers, own: attempts });
    router.join(this.#others);
  }

  /**
   * Opens the port to others, and shows the key to those that are there. Throws where the port is taken, or the key or the clock is wrong: before
   * anything is joined, so that neither costs a log each time it is tried. The port comes first: others that find it open know
   * that this server is starting again, and wait longer before they evict its last process.
   */
  async open(): Promise<void> {
    const { settings, peers, store } = this.#parts;
    const { host } = settings;
    try {
      await this.#peers.listen({ host, port: peers.port });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CannotListen(
        `port ${peers.port} on ${host} can't be listened on (${reason}): set TIDEBASE_PEER_PORT to a free one`,
      );
    }
    await refuseSkewedClock({ store, clock: systemClock, random: systemRandom });
    const { members } = await readView(store);
    const addresses = members
      .filter(({ serverId }) => serverId !== this.#self.serverId)
      .flatMap(({ address }) => parsePeerAddress(address) ?? []);
    if ((await tryKey(this.#transport, addresses)) !== 'wrong-key') return;
    throw new SettingsError(
      'wrong cluster key: set the TIDEBASE_CLUSTER_KEY of the other servers, which do not know the one that is set here',
    );
  }

  /** Follows the view from the one on with which this process has joined. Its threads may still be starting. */
  follow({ joined, threads, log, onRemoved }: JoinedParts): void {
    const { store, logger } = this.#parts;
    const { logId } = joined.identity;
    this.#self.logId = logId;
    this.#joinedMs = systemClock.monotonic();
    this.#returns = joined.returns;
    this.#threads = threads;
    const components = { store, clock: systemClock, random: systemRandom, logger };
    const adopting = (adopt: (standing: Standing) => Promise<unknown>) => async (view: ClusterView) => {
      const standing = standingOf(view, logId);
      if (standing !== null) await adopt(standing);
    };
    const follower = new ViewFollower(
      components,
      {
        everyMs: limits.viewPollMs,
        logId,
        subscribers: [
          adopting((standing) => Promise.all(threads.map((thread) => thread.adopt(standing)))),
          (view) => this.#use(view),
          adopting((standing) => log.adopt(standing)),
        ],
        onRemoved: () => {
          if (!this.#isEnding) onRemoved();
        },
      },
      joined.view,
    );
    this.#follower = follower;
    this.#use(joined.view);
    const push = (view: ClusterView) => this.#others.pushView(encodeView(view));
    this.#membership = new OwnMembership({
      ...components,
      log,
      follower,
      logId,
      reachability: (other) => this.#peers.reachability(other),
      push,
      prepare: () => this.#prepare(),
    });
    this.#stopFollowing = follower.follow();
    void this.#followLogs(log);
    push(joined.view);
  }

  /** Asks for this server's part, and looks after the others from now on. Call it once this server can serve. */
  keep(receiveFile: ReceiveFile): void {
    this.#receiveFile = receiveFile;
    this.#stopKeeping = this.#membership?.keep() ?? (() => {});
  }

  get state(): ClusterMember['state'] {
    const { logId } = this.#self;
    const self = this.#follower?.view.members.find((member) => member.logId === logId);
    return self?.state ?? 'joining';
  }

  /** Whether this server does the work for all of them, as far as it knows now. */
  doesTask(task: ClusterTask): boolean {
    return this.#members.doesTask(task);
  }

  /** Flushes what this server owns while it serves it, so that those it is left to replay little. */
  async flushBeforeLeave(): Promise<void> {
    const owners = ownersWithout(must(this.#follower, 'a view').view, this.#self.serverId);
    if (owners.servers.length > 0) await this.#flushMoving(owners, limits.leaveFlushMs);
  }

  async #flushMoving(owners: Owners, withinMs: number): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.flushMoving(owners, withinMs)));
  }

  /** Gives up what this server owns, unless it is the last of all: from the answer on, calls that come go to others. */
  async leave(): Promise<void> {
    this.#stopKeeping();
    await this.#membership?.leave();
  }

  /** Ends the membership, once nothing is written to the own log any more. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#stopFollowing();
    // Others close their connections once the view names this process no more, and what was not answered by then is lost to them.
    await this.#untilAllIsAnswered();
    await this.#membership?.end();
    this.#peers.stopServing();
    await this.#untilAllIsAnswered();
  }

  async #untilAllIsAnswered(): Promise<void> {
    const untilMs = systemClock.monotonic() + servingMsMax;
    while (this.#peers.serving > 0 && systemClock.monotonic() < untilMs)
      await systemClock.sleep(servingLookMs);
  }

  close(): void {
    this.#peers.close();
  }

  /** Whether a later process of this very server has taken its place; false where the store does not tell within a second. */
  async isReplaced(): Promise<boolean> {
    const { serverId, logId } = this.#self;
    let isReplaced = false;
    const looked = readView(this.#parts.store).then(({ members }) => {
      isReplaced = members.some((member) => member.serverId === serverId && member.logId !== logId);
    });
    await settledWithin(systemClock, looked, limits.viewPollMs);
    return isReplaced;
  }

  families(): Family[] {
    const { version, members } = must(this.#follower, 'a view').view;
    return [
      gauge('tidebase_cluster_view_version', 'Version of the cluster view that this server knows', version),
      gauge(
        'tidebase_cluster_members',
        'Servers of the cluster by state, as this one knows them',
        memberStates.map((state) => ({
          labels: { state },
          value: members.filter((member) => member.state === state).length,
        })),
      ),
      counter(
        'tidebase_cluster_evictions_total',
        'Servers that this one has removed because they had died',
        this.#membership?.evictions ?? 0,
      ),
      ...this.#others.families(),
      ...this.#peers.families(),
    ];
  }

  #use(view: ClusterView): void {
    const { serverId } = this.#self;
    this.#members.use(knownOf(view, serverId));
    this.#peers.use(
      view.members.flatMap((member) => {
        const address = parsePeerAddress(member.address);
        return address === null ? [] : [{ serverId: member.serverId, logId: member.logId, address }];
      }),
    );
  }

  #hear(bytes: Uint8Array): void {
    try {
      void this.#follower?.offer(decodeView(bytes));
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      this.#parts.logger.error('a view of another server was not understood', {
        error: describeError(error),
      });
    }
  }

  /**
   * What a server does before it becomes active: others flush what it will own, and reads of processes that were sealed before it came are
   * waited out. Afterwards clients would wait for that, and until then others answer them. Where this server's process before owned its part until
   * this one joined, nobody answers for that part before those reads are over: the sooner this one is active the better.
   */
  async #prepare(): Promise<void> {
    const leftMs = this.#joinedMs + limits.readsOutliveSealMs - systemClock.monotonic();
    if (this.#returns && leftMs > 0) return;
    await Promise.all([this.#others.prepare(), systemClock.sleep(Math.max(0, leftMs))]);
  }

  /** Flushes what another server, which is joining, will own: what it asks for before it becomes active. */
  async #prepareFor(logId: string): Promise<void> {
    const follower = this.#follower;
    if (follower === null) return;
    if (!follower.view.members.some((member) => member.logId === logId)) await this.#look();
    const { view } = follower;
    const isActive = view.members.some(
      ({ logId, state }) => logId === this.#self.logId && state === 'active',
    );
    if (!isActive || !view.members.some((member) => member.logId === logId)) return;
    await this.#flushMoving(ownersWith(view, logId, this.#self.serverId), limits.joinFlushMs);
  }

  #look(): Promise<void> {
    return this.#looking.run('', async () => this.#follower?.look());
  }

  /** Looks at the view as soon as another member's log shows that there is a later one, which may be before the next look is due. */
  async #followLogs(log: Remote<LogControl>): Promise<void> {
    while (!this.#isEnding) {
      await log.whenLaterView();
      await this.#look();
    }
  }
}

function knownOf(view: ClusterView, serverId: string): Membership {
  const logs = new Map(view.members.map((member) => [member.serverId, member.logId]));
  return { owners: ownersOf(view, serverId), logs };
}

/** Memory for bodies that are on their way between servers, one way. */
function gateOf({ memoryBytes }: Settings): ByteGate {
  const max = Math.max(memoryBytes / limits.peerBodiesPart, limits.peerBodiesBytesMin);
  return new ByteGate({ max, clock: systemClock, waitersMax: limits.roomWaitersMax });
}

function stillStarting(): ApiError {
  return new ApiError('unavailable', 'the server is starting; nothing was done', { retryAfter: 1 });
}
