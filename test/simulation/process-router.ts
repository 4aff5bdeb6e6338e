import { type ActorReply, reply } from '../../actors/actor/actor-reply.ts';
import { MovedAway } from '../../actors/actor/ownership.ts';
import type { ActorHost } from '../../actors/host/actor-host.ts';
import { ApiError, apiErrorFromBody } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import {
  type ActorCall,
  actorAnswerFromWire,
  actorAnswerToWire,
  movedToWire,
  noMeter,
} from '../../protocol/messages.ts';
import { must } from '../../src/base/assert.ts';
import { ByteGate } from '../../src/base/byte-gate.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Message } from '../../src/base/port-channel.ts';
import type { ViewFollower } from '../../src/cluster/follow-view.ts';
import {
  type ClusterView,
  decodeView,
  encodeView,
  ownersOf,
  ownersWith,
  ownersWithout,
} from '../../src/cluster/view.ts';
import type { Reachability } from '../../src/peers/dialled-peer.ts';
import type { Delivery } from '../../src/router/delivery.ts';
import { ForwardMetrics } from '../../src/router/forward-metrics.ts';
import { KnownMembers } from '../../src/router/members.ts';
import { OtherServers } from '../../src/router/other-servers.ts';
import { Router } from '../../src/router/router.ts';
import { ServedCalls } from '../../src/router/served-calls.ts';
import { type ClusterLinks, quiet } from '../support/in-process.ts';
import { type NetworkEnd, type PeerNetwork, SimulatedPeers } from './peer-network.ts';

/** More than all clients of a world can ask for at once. */
const gateBytes = 64_000_000;

/** What a router needs of its process. */
export interface RoutedProcess {
  readonly end: NetworkEnd;
  readonly clock: Clock;
  readonly host: ActorHost;
  readonly follower: ViewFollower;
  /** Whether what will move is flushed before it does: where not, everything is replayed. */
  readonly preparesMoves: boolean;
}

/** A call and its answer cross no thread: what went wrong inside goes with the answer, for the records. */
const errorsOf = new WeakMap<object, unknown>();

/** The error inside that an answer does not tell; null for most. */
export function innerErrorOf({ head }: Pick<Message, 'head'>): unknown {
  return errorsOf.get(head as object) ?? null;
}

/** The router of one simulated process: the production code of routing, forwarding and serving, over a simulated network. */
export class ProcessRouter extends Router implements ClusterLinks {
  readonly #process: RoutedProcess;
  readonly #members: KnownMembers;
  readonly #others: OtherServers;
  readonly #served: ServedCalls;
  readonly #peers: SimulatedPeers;
  readonly #network: PeerNetwork;

  constructor(network: PeerNetwork, process: RoutedProcess) {
    super({ forget: () => {}, clock: process.clock, recentOwners: null });
    this.#network = network;
    this.#process = process;
    const { clock, end } = process;
    const nobody = { owners: { placement: 0, servers: [], self: end.serverId }, logs: new Map() };
    this.#members = new KnownMembers(nobody, clock);
    this.#peers = new SimulatedPeers(network, end);
    const gate = () => new ByteGate({ max: gateBytes, clock, waitersMax: limits.roomWaitersMax });
    const common = {
      router: this,
      members: this.#members,
      clock,
      logger: quiet,
      metrics: new ForwardMetrics(),
    };
    this.#others = new OtherServers({ ...common, peers: this.#peers, answers: gate() });
    this.#served = new ServedCalls({
      ...common,
      bodies: gate(),
      receiveFile: () => Promise.reject(new Error('no world sends files')),
      forget: () => {},
      onPrepare: (logId) => this.#prepareFor(logId),
      onView: (bytes) => void process.follower.offer(decodeView(bytes)),
      onAttempt: () => ({ waitMs: 0, areTooMany: false }),
      onBehind: () => void process.follower.look(),
    });
    this.join(this.#others);
  }

  /** Takes a view, in the order of views. */
  useView(view: ClusterView): void {
    const logs = new Map(view.members.map((member) => [member.serverId, member.logId]));
    const { end, clock } = this.#process;
    if (this.#network.find(end.logId) === undefined) this.#network.join(end, this.#served, clock);
    this.#members.use({ owners: ownersOf(view, end.serverId), logs });
  }

  pushView(view: ClusterView): void {
    this.#others.pushView(encodeView(view));
  }

  reachability(logId: string): Reachability | null {
    return this.#peers.reachability(logId);
  }

  async prepare(): Promise<void> {
    if (this.#process.preparesMoves) await this.#others.prepare();
  }

  /** Flushes what this process owns, so that those it is left to replay little. */
  async flushBeforeLeave(): Promise<void> {
    const { host, follower, end, preparesMoves } = this.#process;
    const owners = ownersWithout(follower.view, end.serverId);
    if (preparesMoves && owners.servers.length > 0) await host.flushMoving(owners, limits.leaveFlushMs);
  }

  /** As server-cluster.ts does it. */
  async #prepareFor(logId: string): Promise<void> {
    const { host, follower, end } = this.#process;
    const isMember = () => follower.view.members.some((member) => member.logId === logId);
    if (!isMember()) await follower.look();
    const own = follower.view.members.find((member) => member.logId === end.logId);
    if (own?.state !== 'active' || !isMember()) return;
    await host.flushMoving(ownersWith(follower.view, logId, end.serverId), limits.joinFlushMs);
  }

  override deliverHere(
    call: ActorCall,
    body: Uint8Array | null,
    answer: (message: Message) => void,
  ): Delivery | null {
    const { host } = this.#process;
    // What the actor takes must not be what a moved call gives back.
    const copy = body === null ? null : Uint8Array.from(body);
    const handle = async () => {
      const packed = call.operation === 'getDocument' ? host.getWarm(call) : null;
      return packed === null ? host.handle(call, copy) : reply('', { packed });
    };
    handle().then(
      ({ status, headers, packed, json }) =>
        answer({
          head: actorAnswerToWire({ status, headers, meter: noMeter }),
          body: packed ?? Buffer.from(json),
        }),
      (error: unknown) => {
        if (error instanceof MovedAway) answer({ head: movedToWire(error.placement), body });
        else answer(answerOfError(error));
      },
    );
    return null;
  }

  /** What actors ask of each other goes the same way as what clients ask. Rejects with what was refused. */
  async ask(call: ActorCall, body: Uint8Array | null): Promise<ActorReply> {
    const message = await this.call(call, body === null ? null : Uint8Array.from(body));
    const { status, headers } = actorAnswerFromWire(message.head);
    const packed = must(message.body, 'the bytes of an answer');
    if (status < 400) return reply('', { status, headers, packed });
    const error = apiErrorFromBody(packed);
    const cause = innerErrorOf(message);
    throw cause === null ? error : new ApiError(error.code, error.message, { retryAfter: 1, cause });
  }
}

function answerOfError(error: unknown): Message {
  const shown = error instanceof ApiError ? error : new ApiError('internal', 'a request failed');
  const head = actorAnswerToWire({ status: shown.status, headers: [...shown.headers], meter: noMeter });
  const inner = error instanceof ApiError ? error.cause : error;
  if (inner !== undefined && inner !== null) errorsOf.set(head, inner);
  return { head, body: shown.toBody() };
}
