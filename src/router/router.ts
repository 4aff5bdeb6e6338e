import { effectOf } from '../../protocol/effect-of.ts';
import { ApiError } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import { limits } from '../../protocol/limits.ts';
import {
  type ActorCall,
  actorAnswerToWire,
  actorCallFromWire,
  actorCallToWire,
  noMeter,
} from '../../protocol/messages.ts';
import { actorThreadNames, placementKey } from '../../protocol/placement.ts';
import { must } from '../base/assert.ts';
import { LruMap } from '../base/lru.ts';
import type { ChannelHandler, Message, PortChannel } from '../base/port-channel.ts';
import { rendezvousPick } from '../base/rendezvous-hash.ts';
import type { ActorThread } from './actor-threads.ts';

/**
 * One call: deliver this message to that namespace's or tenant's actor. Placement is a hint: an actor that finds itself
 * in the wrong place is fenced by the log and by its manifest, never by this table.
 */
export interface RouterOptions {
  /** A tenant changed: what the front has cached of it is void. */
  readonly forgetTenant: (tenantId: number) => void;
}

/** A thread as the router knows it: the channel to it, null while it starts or restarts. */
type Channelled = Pick<ActorThread, 'channel'>;

/** A call that is under way. */
export interface Delivery {
  readonly channel: PortChannel;
  readonly id: number;
}

/** Placements remembered, so that a request costs one look-up instead of a hash for each thread. */
const placementsMax = 100_000;

export class Router {
  readonly #options: RouterOptions;
  readonly #placements = new LruMap<string, number>(placementsMax);
  #threads: readonly Channelled[] = [];
  #names: readonly string[] = [];

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /** Before the first delivery. */
  use(threads: readonly Channelled[]): void {
    this.#threads = threads;
    this.#names = actorThreadNames(threads.length);
  }

  /**
   * Calls back exactly once. A body is handed over: the caller may not touch it afterwards. Answers what `cancel` takes; null
   * where nothing is under way.
   */
  deliver(
    call: ActorCall,
    body: Uint8Array | null,
    answer: (message: Message) => void,
    fail: (error: ApiError) => void,
  ): Delivery | null {
    const channel = this.#threadOf(call).channel;
    if (channel === null) {
      fail(restarting());
      return null;
    }
    if (channel.waiting >= limits.callsInFlightMax) {
      fail(new ApiError('rate_limited', 'this server has too many requests in flight', { retryAfter: 1 }));
      return null;
    }
    const id = channel.callWith(actorCallToWire(call), body, answer, () => fail(lostOnTheWay(call)));
    return { channel, id };
  }

  /** Nobody waits for the answer any more. It comes all the same, and may come sooner. */
  cancel({ channel, id }: Delivery): void {
    channel.cancel(id);
  }

  /** As `deliver`, as a promise. */
  call(call: ActorCall, body: Uint8Array | null = null): Promise<Message> {
    return new Promise((resolve, reject) => this.deliver(call, body, resolve, reject));
  }

  /** What actors ask of others goes the same way as what clients ask. */
  handler(): ChannelHandler {
    return {
      call: (message, respond) => {
        const call = actorCallFromWire(message.head);
        if (call.operation === internalCalls.forgetTenant) {
          this.#options.forgetTenant(call.tenantId);
          respond(actorAnswerToWire({ status: 200, headers: [], meter: noMeter }));
          return;
        }
        this.deliver(
          call,
          message.body,
          (answer) => respond(answer.head, answer.body),
          (error) =>
            respond(actorAnswerToWire({ status: error.status, headers: [], meter: noMeter }), error.toBody()),
        );
      },
      notice() {},
    };
  }

  #threadOf(call: ActorCall): Channelled {
    if (this.#threads.length === 1) return must(this.#threads[0], 'an actor thread');
    const key = placementKey(call.tenantId, call.namespace);
    let index = this.#placements.get(key);
    if (index === undefined) {
      index = rendezvousPick(key, this.#names);
      this.#placements.set(key, index);
    }
    return must(this.#threads[index], 'an actor thread');
  }
}

function restarting(): ApiError {
  return new ApiError('unavailable', 'the part of the server that holds this data is restarting', {
    retryAfter: 1,
  });
}

/** The error for a call whose thread died with it: `write_unknown` where it may have been done. */
function lostOnTheWay(call: ActorCall): ApiError {
  if (effectOf(call.operation).lost === 'unavailable') return restarting();
  return new ApiError(
    'write_unknown',
    'the server restarted while it was writing: the write may or may not be applied',
    {
      retryAfter: 1,
    },
  );
}
