import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import type { Family } from '../base/exposition.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { AcceptedPeers } from './accepted-peers.ts';
import {
  type Asked,
  type PassedOnEvents,
  type PassOn,
  type PeerAnswer,
  type PeerCall,
  PeerCallError,
  type PeerHandler,
} from './call.ts';
import { failUnsent, type WaitingCall } from './calling-side.ts';
import { DialledPeer, type MadeCall, type PeerMember, type Reachability } from './dialled-peer.ts';
import type { PeerIdentity } from './hello.ts';
import type { SentBody } from './message.ts';
import { PeerMetrics } from './peer-metrics.ts';
import type { RequestName } from './request-names.ts';
import type { PeerPort, PeerTransport } from './transport.ts';

export interface PeersOptions {
  readonly self: PeerIdentity;
  readonly transport: PeerTransport;
  /** Does what other servers ask. */
  readonly handler: PeerHandler;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** A call under way, for `cancel`. */
export interface PeerDelivery {
  readonly peer: DialledPeer;
  readonly made: MadeCall;
}

interface CallEvents {
  readonly answered: (answer: PeerAnswer) => void;
  readonly failed: (error: PeerCallError) => void;
  readonly silent: (() => void) | undefined;
}

/** A process and this one's two connections to it: large bodies have one of their own, so that they hold up no small call. */
interface Peer {
  readonly member: PeerMember;
  readonly calls: DialledPeer;
  readonly bulk: DialledPeer;
}

/** The other servers of the cluster: who they are, what they are asked, and what they ask. */
export class Peers {
  readonly #options: PeersOptions;
  readonly #metrics = new PeerMetrics();
  readonly #accepted: AcceptedPeers;
  /** By their logs. */
  readonly #peers = new Map<string, Peer>();
  #port: PeerPort | null = null;
  #sequence = 0;
  /** Requests of others that were passed on and not answered yet. */
  #passedOn = 0;

  constructor(options: PeersOptions) {
    this.#options = options;
    const { self, handler, clock, logger } = options;
    const counted: PeerHandler = {
      call: (call, respond) => {
        this.#metrics.served();
        handler.call(call, respond);
      },
    };
    const passOn: PassOn = (asked, body, events) => this.#passOn(asked, body, events);
    const metrics = this.#metrics;
    this.#accepted = new AcceptedPeers({ self, handler: counted, passOn, clock, logger, metrics });
  }

  /** Opens the port to others; answers which it is. Throws where it is taken. */
  async listen(address: { readonly host: string; readonly port: number }): Promise<number> {
    this.#port = await this.#options.transport.listen(address, this.#accepted);
    return this.#port.port;
  }

  /** Who the others are from now on. Connections to those who are not among them end. */
  use(members: readonly PeerMember[]): void {
    const others = members.filter(({ logId }) => logId !== this.#options.self.logId);
    const staying = new Set(others.map(({ logId }) => logId));
    for (const [logId, peer] of this.#peers) if (!staying.has(logId)) this.#drop(logId, peer);
    for (const member of others) {
      if (this.#peers.has(member.logId)) continue;
      const peer = { member, calls: this.#dialled(member, 'calls'), bulk: this.#dialled(member, 'bulk') };
      this.#peers.set(member.logId, peer);
      peer.calls.connect();
    }
  }

  /** Makes a name for a request of which copies may be sent. */
  newName(): RequestName {
    return { origin: this.#options.self.logId, sequence: ++this.#sequence };
  }

  /**
   * Calls back exactly once: with the answer's head and what is there of its body, or with an error that says what has left. Before that
   * `silent` may be called once: the line has become silent, and whoever has another way may send a copy.
   */
  call(
    logId: string,
    call: PeerCall,
    answered: (answer: PeerAnswer) => void,
    failed: (error: PeerCallError) => void,
    silent?: () => void,
  ): PeerDelivery | null {
    const { via } = call;
    const waiting = this.#waitingCall(call, via === undefined ? '' : logId, { answered, failed, silent });
    const peer = this.#peers.get(via ?? logId);
    if (peer === undefined) {
      failUnsent(waiting, 'it is no member of the cluster');
      return null;
    }
    const dialled = isBulk(call.body) ? peer.bulk : peer.calls;
    return { peer: dialled, made: dialled.call(waiting) };
  }

  /** The log of a server that is connected, and may pass on what is for this one; null where there is none. */
  thirdBeside(logId: string): string | null {
    for (const [third, { calls }] of this.#peers) {
      const { isConnected, isSilent } = calls.reachability;
      if (third !== logId && isConnected && !isSilent) return third;
    }
    return null;
  }

  /** Nobody waits for the answer any more, which comes all the same; what was not sent fails as `not-sent`. */
  cancel({ peer, made }: PeerDelivery): void {
    peer.cancel(made);
  }

  /** How the process of this log can be reached, as far as is known; null where it is no member. */
  reachability(logId: string): Reachability | null {
    return this.#peers.get(logId)?.calls.reachability ?? null;
  }

  /** Whether the line to the process is connected and does not answer. Asked for each forwarded call. */
  isSilent(logId: string): boolean {
    return this.#peers.get(logId)?.calls.isSilent === true;
  }

  /** Calls of others that were not answered yet. */
  get serving(): number {
    return this.#accepted.waiting;
  }

  /** Takes no more calls of others, and tells them; what runs is answered. */
  stopServing(): void {
    this.#port?.close();
    this.#accepted.leave();
  }

  close(): void {
    this.stopServing();
    const reason = 'this server stops';
    for (const [logId, peer] of this.#peers) this.#drop(logId, peer, reason);
    this.#accepted.close(reason);
  }

  families(): Family[] {
    const dialled = [...this.#peers.values()].flatMap(({ calls, bulk }) => [calls, bulk]);
    const connected = dialled.filter(({ reachability }) => reachability.isConnected);
    return this.#metrics.families({
      connections: connected.length + this.#accepted.connections,
      waiting: dialled.reduce((sum, { waiting }) => sum + waiting, 0),
    });
  }

  /** Passes on once, and only to whom this server is connected itself: so nothing goes in circles. */
  #passOn(asked: Asked, body: SentBody, events: PassedOnEvents): () => void {
    const peer = this.#peers.get(asked.to);
    const isFull = this.#passedOn >= limits.peerPassedOnMax;
    const reached = peer?.calls.reachability;
    if (isFull || peer === undefined || reached?.isConnected !== true || reached.isSilent) {
      const why = isFull ? 'full' : null;
      events.failed(new PeerCallError('not-sent', 'it is not connected here either', why));
      return () => {};
    }
    this.#passedOn++;
    this.#metrics.passedOn();
    const dialled = isBulk(body) ? peer.bulk : peer.calls;
    const made = dialled.call({
      asked: { ...asked, to: '' },
      body,
      deadlineAt: this.#options.clock.monotonic() + asked.deadlineMs,
      answered: (answer) => {
        this.#passedOn--;
        events.answered(answer);
      },
      failed: (error) => {
        this.#passedOn--;
        events.failed(error);
      },
    });
    return () => dialled.cancel(made);
  }

  #waitingCall(
    { head, body, deadlineMs, placement, name = this.newName() }: PeerCall,
    to: string,
    { answered, failed, silent }: CallEvents,
  ): WaitingCall {
    const { clock } = this.#options;
    const beganMs = clock.monotonic();
    const metrics = this.#metrics;
    return {
      asked: { name, deadlineMs, placement, to, head },
      body,
      deadlineAt: beganMs + deadlineMs,
      answered(answer) {
        metrics.called('answered', (clock.monotonic() - beganMs) / 1_000);
        answered(answer);
      },
      failed(error) {
        metrics.called(error.outcome, 0);
        failed(error);
      },
      silent,
    };
  }

  #dialled(member: PeerMember, use: 'calls' | 'bulk'): DialledPeer {
    const { self, transport, clock, random, logger } = this.#options;
    return new DialledPeer({ self, member, use, transport, clock, random, logger, metrics: this.#metrics });
  }

  #drop(logId: string, { calls, bulk }: Peer, reason = 'it is no member of the cluster any more'): void {
    this.#peers.delete(logId);
    calls.close(reason);
    bulk.close(reason);
  }
}

function isBulk(body: SentBody): boolean {
  if (body === null) return false;
  return !(body instanceof Uint8Array) || body.byteLength > limits.peerBulkBytesMin;
}

/**
 * What the client hears of a call that failed: `lost` says which code is right where it may have been done, and where nothing
 * was done the request may be sent again in any case.
 */
export function apiErrorOfPeer(error: PeerCallError, lost: 'unavailable' | 'write_unknown'): ApiError {
  const details = { retryAfter: 1, cause: error };
  if (error.outcome === 'lost' && lost === 'write_unknown') {
    const sentence =
      'the server that holds this data was lost while it was writing: the write may or may not be applied';
    return new ApiError('write_unknown', sentence, details);
  }
  return new ApiError('unavailable', 'the server that holds this data cannot be reached', details);
}
