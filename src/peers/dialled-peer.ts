import { limits } from '../../protocol/limits.ts';
import { peerVersions } from '../../protocol/version.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { CallingSide, failUnsent, type WaitingCall } from './calling-side.ts';
import type { Hello, PeerIdentity, PeerUse } from './hello.ts';
import type { PeerAddress } from './peer-address.ts';
import { type ConnectionEnd, PeerConnection } from './peer-connection.ts';
import type { PeerMetrics } from './peer-metrics.ts';
import type { DialFailure, PeerTransport } from './transport.ts';

/** A process that can be asked: who it is, and where. */
export interface PeerMember extends PeerIdentity {
  readonly address: PeerAddress;
}

export interface DialledOptions {
  readonly self: PeerIdentity;
  readonly member: PeerMember;
  readonly use: PeerUse;
  readonly transport: PeerTransport;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: PeerMetrics;
}

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'dialling'; readonly giveUp: () => void; readonly calls: Set<MadeCall> }
  | { readonly kind: 'ready'; readonly connection: PeerConnection; readonly side: CallingSide }
  | { readonly kind: 'pausing'; readonly reason: string; readonly cancel: () => void }
  | { readonly kind: 'closed'; readonly reason: string };

/** A call that was made: where it is, for `cancel`. */
export interface MadeCall {
  readonly call: WaitingCall;
  /** Null while it waits for a connection, and where it has failed already. */
  sentOn: { readonly side: CallingSide; readonly id: number } | null;
}

/** What is known of whether a process can be reached. */
export interface Reachability {
  /** Whether this very process has said who it is, with the key of the cluster, at any time. */
  readonly hasAnswered: boolean;
  readonly isConnected: boolean;
  /** Since when each try met a host on which nothing listens, by the monotonic clock; null where the last did not. */
  readonly refusedSinceMs: number | null;
  /** Whether its host has refused connections, and by now another process of the same server answers there: the server is coming back. */
  readonly comesBack: boolean;
  /** Whether it is connected, and does not answer: what waits for an answer may go another way. */
  readonly isSilent: boolean;
}

/** The version of the protocol from which on a ping is answered. */
const pingsAnsweredSince = 2;

/**
 * One connection to another process, made again whenever it is lost, after a pause that grows. Calls wait while it is first
 * made, and fail at once while it is lost: nothing of them was sent.
 */
export class DialledPeer {
  readonly #options: DialledOptions;
  #state: State = { kind: 'idle' };
  #pauseMs: number = limits.peerPauseFirstMs;
  #loggedReason: string | null = null;
  /** Why there is no connection, since the last one ended; null where all is well, or none was tried. */
  #lostReason: string | null = null;
  #hasAnswered = false;
  #refusedSinceMs: number | null = null;
  #comesBack = false;
  #stopIdling: (() => void) | null = null;

  constructor(options: DialledOptions) {
    this.#options = options;
  }

  get reachability(): Reachability {
    return {
      hasAnswered: this.#hasAnswered,
      isConnected: this.#state.kind === 'ready' && this.#state.side.takesCalls,
      refusedSinceMs: this.#refusedSinceMs,
      comesBack: this.#comesBack,
      isSilent: this.isSilent,
    };
  }

  get isSilent(): boolean {
    return this.#state.kind === 'ready' && this.#state.side.isSilent;
  }

  /** Calls that wait for an answer, or for the connection. */
  get waiting(): number {
    if (this.#state.kind === 'dialling') return this.#state.calls.size;
    return this.#state.kind === 'ready' ? this.#state.side.waiting : 0;
  }

  /** Connects, where it is not connected and does not try to. */
  connect(): void {
    if (this.#state.kind === 'idle') this.#dial();
  }

  /** One of the call's two callbacks is called once, now or later. */
  call(call: WaitingCall): MadeCall {
    if (this.#state.kind === 'idle') this.#dial();
    const made: MadeCall = { call, sentOn: null };
    const state = this.#state;
    switch (state.kind) {
      case 'ready':
        made.sentOn = { side: state.side, id: state.side.call(call) };
        break;
      case 'dialling':
        // There may be another way to a server that has just not been reached: nobody waits for one more try.
        if (this.#lostReason !== null) failUnsent(call, this.#lostReason);
        else if (state.calls.size < limits.peerCallsMax) state.calls.add(made);
        else failUnsent(call, 'too many requests wait for the other server', 'full');
        break;
      case 'idle':
        failUnsent(call, 'the other server is not connected');
        break;
      default:
        failUnsent(call, state.reason);
    }
    return made;
  }

  /** Nobody waits for the answer any more. What was not sent fails; an answer comes all the same. */
  cancel(made: MadeCall): void {
    if (made.sentOn !== null) made.sentOn.side.cancel(made.sentOn.id);
    else if (this.#state.kind === 'dialling' && this.#state.calls.delete(made))
      failUnsent(made.call, 'nobody waits for it any more');
  }

  close(reason: string): void {
    const state = this.#state;
    this.#state = { kind: 'closed', reason };
    this.#stopIdling?.();
    if (state.kind === 'ready') state.connection.close(reason);
    if (state.kind === 'pausing') state.cancel();
    if (state.kind !== 'dialling') return;
    state.giveUp();
    for (const { call } of state.calls) failUnsent(call, reason);
  }

  #dial(): void {
    const { transport, member } = this.#options;
    // Set by the first event, which may come before `dial` has returned.
    const state = { kind: 'dialling', giveUp: () => {}, calls: new Set<MadeCall>() } as const;
    this.#state = state;
    let isNextProcess = false;
    const giveUp = transport.dial(member.address, {
      secured: (link) => {
        const connection: PeerConnection = new PeerConnection({
          link,
          clock: this.#options.clock,
          ownHello: () => this.#hello(),
          speaksFirst: true,
          refusalOf: (theirs) => {
            if (theirs.logId === member.logId) return null;
            isNextProcess = theirs.serverId === member.serverId;
            return 'another process answers at its address';
          },
          ready: (_, writer, version) => {
            const asksPings = this.#options.use === 'calls' && version >= pingsAnsweredSince;
            const side = new CallingSide(writer, this.#options.clock, asksPings);
            this.#ready(connection, side, state.calls);
            return side;
          },
          ended: (end) => this.#ended(end, isNextProcess),
        });
        if (this.#state === state) this.#state = { ...state, giveUp: () => connection.close('given up') };
      },
      failed: (failure, reason) => this.#failed(failure, reason),
    });
    if (this.#state === state) this.#state = { ...state, giveUp };
  }

  #hello(): Hello {
    const { self, member, use } = this.#options;
    const { least, greatest } = peerVersions;
    return { tidebase: 'peer', least, greatest, ...self, wants: member.logId, use };
  }

  #ready(connection: PeerConnection, side: CallingSide, calls: Set<MadeCall>): void {
    const { logger, clock, member } = this.#options;
    this.#pauseMs = limits.peerPauseFirstMs;
    this.#hasAnswered = true;
    this.#refusedSinceMs = null;
    this.#comesBack = false;
    if (this.#loggedReason !== null)
      logger.info('another server is connected again', { serverId: member.serverId });
    this.#loggedReason = null;
    this.#lostReason = null;
    // The side is the connection's once this turn has gone on; what it is given until then goes out with it.
    this.#state = { kind: 'ready', connection, side };
    const now = clock.monotonic();
    for (const made of calls) {
      const { call } = made;
      const leftMs = call.deadlineAt - now;
      if (leftMs <= 0) failUnsent(call, 'it took longer than it may');
      else made.sentOn = { side, id: side.call({ ...call, asked: { ...call.asked, deadlineMs: leftMs } }) };
    }
    this.#endWhenIdle();
  }

  #failed(failure: DialFailure, reason: string): void {
    const { metrics, clock } = this.#options;
    metrics.dialFailed();
    const isRefused = failure === 'refused';
    this.#refusedSinceMs = isRefused ? (this.#refusedSinceMs ?? clock.monotonic()) : null;
    this.#comesBack = false;
    this.#tellOnce(reason, failure === 'wrong-key');
    this.#pause(reason, isRefused ? limits.peerRefusedPauseMsMax : limits.peerPauseMsMax);
  }

  #ended(end: ConnectionEnd, isNextProcess: boolean): void {
    this.#options.metrics.connectionLost();
    if (this.#state.kind === 'closed' || this.#state.kind === 'idle') return;
    this.#comesBack = isNextProcess && this.#refusedSinceMs !== null;
    this.#tellOnce(end.reason, end.kind === 'broken' || end.kind === 'apart');
    this.#pause(end.reason);
  }

  /** Each reason once, until it is another one or all is well again. */
  #tellOnce(reason: string, needsSomebody: boolean): void {
    if (this.#state.kind === 'closed' || this.#loggedReason === reason) return;
    this.#loggedReason = reason;
    const { logger, member } = this.#options;
    const { host, port } = member.address;
    const fields = { serverId: member.serverId, address: `${host}:${port}`, reason };
    if (needsSomebody) logger.error('another server cannot be asked', fields);
    else logger.info('another server cannot be reached', fields);
  }

  #pause(reason: string, mostMs: number = limits.peerPauseMsMax): void {
    const state = this.#state;
    if (state.kind === 'closed') return;
    this.#lostReason = reason;
    const { clock, random } = this.#options;
    // Half of it is chance, so that servers that lost one another do not meet in step.
    const chance = (random.bytes(1)[0] ?? 0) / 255;
    const cancel = clock.after(Math.min(this.#pauseMs, mostMs) * (0.5 + chance / 2), () => this.#dial());
    this.#pauseMs = Math.min(this.#pauseMs * 2, limits.peerPauseMsMax);
    this.#state = { kind: 'pausing', reason, cancel };
    if (state.kind === 'dialling') for (const { call } of state.calls) failUnsent(call, reason);
  }

  /** A connection for large bodies that nobody uses is closed. */
  #endWhenIdle(): void {
    const { use, clock } = this.#options;
    if (use !== 'bulk') return;
    let idleBefore = false;
    const look = () => {
      const state = this.#state;
      if (state.kind !== 'ready') return;
      const idle = state.side.isIdle;
      if (idle && idleBefore) {
        this.#state = { kind: 'idle' };
        state.connection.close('it was not used');
        return;
      }
      idleBefore = idle;
      this.#stopIdling = clock.after(limits.peerBulkIdleMs / 2, look);
    };
    look();
  }
}
