import { effectOf } from '../../protocol/effect-of.ts';
import { ApiError } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import { limits } from '../../protocol/limits.ts';
import {
  type ActorCall,
  actorAnswerToWire,
  actorCallFromWire,
  actorCallToWire,
  movedFromWire,
  noMeter,
} from '../../protocol/messages.ts';
import { actorThreadNames, placementKey } from '../../protocol/placement.ts';
import type { Cached } from '../auth/key-cache.ts';
import { must } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';
import type { ChannelHandler, Message } from '../base/port-channel.ts';
import { rendezvousPick } from '../base/rendezvous-hash.ts';
import type { StreamedBody } from '../peers/message.ts';
import type { ActorThread } from './actor-threads.ts';
import { type Deliver, type Delivery, LocalDelivery } from './delivery.ts';
import { EventualRead, mayBeEventual } from './eventual-read.ts';
import type { RecentOwners } from './recent-owners.ts';

export interface RouterOptions {
  /** A tenant or a person changed: what the front has cached of them is void when this returns. */
  readonly forget: (cached: Cached) => void;
  readonly clock: Clock;
  /** Is told of every call that is done here; null where nobody asks. */
  readonly recentOwners: RecentOwners | null;
}

/** A thread as the router knows it: the channel to it, null while it starts or restarts. */
type Channelled = Pick<ActorThread, 'channel'>;

/** What the router needs of a cluster: who else there is. */
export interface Others {
  /** Whether the actor of that name lives on this server. */
  isOwn(tenantId: number, namespace: string): boolean;
  /** Has another server do it. */
  forward: Deliver;
  /** Forwards a call to the server that owns its data by this placement or a later one: an actor of this server has found that it moved. */
  forwardMoved(placement: number, ...asked: Parameters<Deliver>): void;
  /** Has another server do what takes a file, which it receives while this one reads it. It calls back exactly once. */
  forwardFile(
    call: ActorCall,
    body: StreamedBody,
    answer: (message: Message) => void,
    fail: (error: ApiError) => void,
  ): void;
  /** Resolves when all other servers have forgotten what they had cached of a tenant or person, or have had their time. */
  forget(cached: Cached): Promise<void>;
}

/** Placements remembered, so that a request costs one look-up instead of a hash for each thread. */
const placementsMax = 100_000;

/**
 * One call: deliver this message to that namespace's or tenant's actor. Placement is a hint: an actor that finds itself
 * in the wrong place is fenced by the log and by its manifest, never by this table.
 */
export class Router {
  readonly #options: RouterOptions;
  readonly #placements = new LruMap<string, number>(placementsMax);
  #threads: readonly Channelled[] = [];
  #names: readonly string[] = [];
  /** Null where this server is alone. */
  #others: Others | null = null;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /** Before the first delivery. */
  use(threads: readonly Channelled[]): void {
    this.#threads = threads;
    this.#names = actorThreadNames(threads.length);
  }

  /** Before the first delivery, where there may be other servers. */
  join(others: Others): void {
    this.#others = others;
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
    const others = this.#others;
    if (others === null) return this.deliverHere(call, body, answer, fail);
    if (!mayBeEventual(call, body)) return this.#deliverToOwner(others, call, body, answer, fail);
    const read = new EventualRead(
      {
        owner: (...asked) => this.#deliverToOwner(others, ...asked),
        here: (...asked) => this.deliverHere(...asked),
        clock: this.#options.clock,
      },
      { call, body, answer, fail },
    );
    read.begin();
    return read;
  }

  #deliverToOwner(
    others: Others,
    call: ActorCall,
    body: Uint8Array | null,
    answer: (message: Message) => void,
    fail: (error: ApiError) => void,
  ): Delivery | null {
    if (!others.isOwn(call.tenantId, call.namespace)) {
      this.#options.recentOwners?.note(call.caller.owner);
      return others.forward(call, body, answer, fail);
    }
    const unlessMoved = (message: Message) => {
      const placement = movedFromWire(message.head);
      if (placement === null) answer(message);
      else others.forwardMoved(placement, call, message.body, answer, fail);
    };
    return this.deliverHere(call, body, unlessMoved, fail);
  }

  /** Delivers a call to an actor of this server, whoever owns its data: the answer may be that the data has moved (`movedFromWire`). */
  deliverHere(
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
    this.#options.recentOwners?.note(call.caller.owner);
    const id = channel.callWith(actorCallToWire(call), body, answer, () => fail(lostOnTheWay(call)));
    return new LocalDelivery(channel, id);
  }

  /** Nobody waits for the answer any more. It comes all the same, and may come sooner. */
  cancel(delivery: Delivery): void {
    delivery.cancel();
  }

  /** As `deliver`, as a promise. */
  call(call: ActorCall, body: Uint8Array | null = null): Promise<Message> {
    return new Promise((resolve, reject) => this.deliver(call, body, resolve, reject));
  }

  /** Whether another server owns what the call is about: then a file goes there by `callWithFile`, without being received here. */
  isElsewhere({ tenantId, namespace }: Pick<ActorCall, 'tenantId' | 'namespace'>): boolean {
    return this.#others !== null && !this.#others.isOwn(tenantId, namespace);
  }

  /**
   * Has the other server that owns it do a call with a file. The end of the body is what lets it begin: until then nothing is done. Rejects
   * with `ApiError`.
   */
  callWithFile(call: ActorCall, file: StreamedBody): Promise<Message> {
    const others = must(this.#others, 'another server');
    return new Promise((resolve, reject) => others.forwardFile(call, file, resolve, reject));
  }

  /** Has every front forget what it has cached of a tenant or a person, also those of other servers; these have had their time when it resolves. */
  async forget(cached: Cached): Promise<void> {
    this.#options.forget(cached);
    await this.#others?.forget(cached);
  }

  /** Makes the handler of what actors ask of others: it goes the same way as what clients ask. */
  handler(): ChannelHandler {
    return {
      call: (message, respond) => {
        const call = actorCallFromWire(message.head);
        if (call.operation === internalCalls.forgetTenant) {
          const forgotten = () => respond(actorAnswerToWire({ status: 200, headers: [], meter: noMeter }));
          void this.forget({ of: 'tenant', id: call.tenantId }).then(forgotten);
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
