import { takesFile } from '../../protocol/effect-of.ts';
import type { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import type { Cached } from '../auth/key-cache.ts';
import type { ByteGate } from '../base/byte-gate.ts';
import type { Clock } from '../base/clock.ts';
import type { Family } from '../base/exposition.ts';
import type { Logger } from '../base/log.ts';
import type { Message } from '../base/port-channel.ts';
import type { StreamedBody } from '../peers/message.ts';
import type { Peers } from '../peers/peers.ts';
import { BodyRoom } from './body-room.ts';
import { CallBudgets, limitsToPeer } from './call-budgets.ts';
import type { Delivery } from './delivery.ts';
import { Forward, type ForwardedCall, type ForwardParts } from './forward.ts';
import type { ForwardMetrics } from './forward-metrics.ts';
import type { KnownMembers } from './members.ts';
import { forgetAsk, prepareAsk, viewAsk } from './peer-messages.ts';
import type { Others, Router } from './router.ts';
import { movedMeanwhile } from './served-calls.ts';

export interface OtherServersOptions {
  readonly router: Pick<Router, 'deliverHere'>;
  readonly members: KnownMembers;
  readonly peers: Pick<Peers, 'call' | 'newName' | 'cancel' | 'thirdBeside' | 'reachability' | 'isSilent'>;
  /** Room for answers that other servers owe; one of its own, so that nobody waits for what waits for it. */
  readonly answers: ByteGate;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: ForwardMetrics;
}

/** The other servers of the cluster, as the router asks them: what they own, what they must forget, and which view there is. */
export class OtherServers implements Others {
  readonly #options: OtherServersOptions;
  readonly #budgets = new CallBudgets(limitsToPeer);
  readonly #room: BodyRoom;
  readonly #parts: ForwardParts;

  constructor(options: OtherServersOptions) {
    this.#options = options;
    const { router, answers } = options;
    this.#room = new BodyRoom(answers);
    this.#parts = {
      ...options,
      here: (call, body, answer, fail) => router.deliverHere(call, body, answer, fail),
      budgets: this.#budgets,
      room: this.#room,
    };
  }

  isOwn(tenantId: number, namespace: string): boolean {
    return this.#options.members.isOwn(tenantId, namespace);
  }

  forward(
    call: ActorCall,
    body: Uint8Array | null,
    answer: (message: Message) => void,
    fail: (error: ApiError) => void,
  ): Delivery | null {
    // Its body is a path on this server's disk, of a file that came while this server owned the namespace.
    if (takesFile(call.operation)) {
      fail(movedMeanwhile());
      return null;
    }
    return this.#begin({ call, body, answer, fail });
  }

  forwardMoved(
    placement: number,
    call: ActorCall,
    body: Uint8Array | null,
    answer: (message: Message) => void,
    fail: (error: ApiError) => void,
  ): void {
    if (takesFile(call.operation)) fail(movedMeanwhile());
    else new Forward(this.#parts, { call, body, answer, fail }).beginMoved(placement);
  }

  forwardFile(
    call: ActorCall,
    body: StreamedBody,
    answer: (message: Message) => void,
    fail: (error: ApiError) => void,
  ): void {
    this.#begin({ call, body, answer, fail });
  }

  async forget(cached: Cached): Promise<void> {
    const { members, clock } = this.#options;
    const untilMs = clock.monotonic() + limits.revocationWaitMs;
    await Promise.all(members.otherLogs().map((logId) => this.#forgetAt(logId, cached, untilMs)));
  }

  /** Tells all others of a view, which is sooner than they would find it in the store. Who does not hear of it finds it there. */
  pushView(bytes: Uint8Array): void {
    const { members, peers } = this.#options;
    const { placement } = members.now.owners;
    const deadlineMs = limits.revocationWaitMs;
    for (const logId of members.otherLogs())
      peers.call(logId, { head: viewAsk, body: bytes, deadlineMs, placement }, ignore, ignore);
  }

  /** Has all others flush what this server will own. Resolves when each has answered, could not be asked, or had its time. */
  async prepare(): Promise<void> {
    const { members, peers } = this.#options;
    const { placement } = members.now.owners;
    const call = {
      head: prepareAsk,
      body: null,
      deadlineMs: limits.joinFlushMs + limits.forwardAgainMs,
      placement,
    };
    const ask = (logId: string) =>
      new Promise<void>((resolve) => {
        const done = () => resolve();
        peers.call(logId, call, done, done);
      });
    await Promise.all(members.otherLogs().map(ask));
  }

  families(): Family[] {
    const { metrics, members } = this.#options;
    const { heldBytes } = this.#room;
    return metrics.families({ inFlight: this.#budgets.total, waiting: members.waiting, heldBytes });
  }

  #begin(asked: ForwardedCall): Delivery {
    const forward = new Forward(this.#parts, asked);
    forward.begin();
    return forward;
  }

  /** Asks until it is confirmed or the time is over; that it is asked twice does not matter. */
  #forgetAt(logId: string, cached: Cached, untilMs: number): Promise<void> {
    const { members, peers, clock, logger, metrics } = this.#options;
    return new Promise((resolve) => {
      const ask = () => {
        const deadlineMs = untilMs - clock.monotonic();
        if (deadlineMs <= 0) {
          metrics.unconfirmed();
          logger.info(`a server did not confirm in time that it forgot a ${cached.of}`, { logId });
          return resolve();
        }
        const { placement } = members.now.owners;
        const head = forgetAsk(cached);
        const again = () => clock.after(Math.min(limits.forwardAgainMs, untilMs - clock.monotonic()), ask);
        peers.call(logId, { head, body: null, deadlineMs, placement }, () => resolve(), again);
      };
      ask();
    });
  }
}

function ignore(): void {}
