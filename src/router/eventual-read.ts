import { effectOf } from '../../protocol/effect-of.ts';
import type { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { type ActorCall, actorAnswerFromWire, movedFromWire } from '../../protocol/messages.ts';
import type { Clock } from '../base/clock.ts';
import type { Message } from '../base/port-channel.ts';
import type { Deliver, Delivery } from './delivery.ts';

export interface EventualReadParts {
  /** Asks whoever owns the data. */
  readonly owner: Deliver;
  /** Asks a thread of this server, which makes a copy of the data from the store. */
  readonly here: Deliver;
  readonly clock: Clock;
}

interface Asked {
  readonly call: ActorCall;
  readonly body: Uint8Array | null;
  readonly answer: (message: Message) => void;
  readonly fail: (error: ApiError) => void;
}

/**
 * A read that prefers an old answer to none. Its owner is asked first, whose answer is the present. Where that is a 503, or does not come within
 * a second, a copy is read here as well, and whoever answers first is believed. Where both fail it ends as the owner did.
 */
export class EventualRead implements Delivery {
  readonly #parts: EventualReadParts;
  readonly #asked: Asked;
  /** Those that are under way. */
  readonly #deliveries: { owner: Delivery | null; copy: Delivery | null } = { owner: null, copy: null };
  #cancelTimer: () => void = () => {};
  /** What ends the read as the owner did, once it did. */
  #owner: 'asked' | (() => void) = 'asked';
  #copy: 'not-asked' | 'asked' | 'failed' = 'not-asked';
  #isOver = false;

  constructor(parts: EventualReadParts, asked: Asked) {
    this.#parts = parts;
    this.#asked = asked;
  }

  begin(): void {
    const { owner, clock } = this.#parts;
    const { call, body, answer, fail } = this.#asked;
    this.#cancelTimer = clock.after(limits.eventualOwnerWaitMs, () => this.#readCopy());
    // A body that was handed over may be gone.
    const own = body === null ? null : new Uint8Array(body);
    const delivery = owner(
      call,
      own,
      (message) => {
        if (isRefusal(message)) this.#ownerFailed(() => answer(message));
        else this.#end('owner', () => answer(message));
      },
      (error) => {
        if (error.code === 'unavailable') this.#ownerFailed(() => fail(error));
        else this.#end('owner', () => fail(error));
      },
    );
    if (this.#owner === 'asked') this.#deliveries.owner = delivery;
  }

  cancel(): void {
    this.#deliveries.owner?.cancel();
    this.#deliveries.copy?.cancel();
  }

  #ownerFailed(end: () => void): void {
    this.#owner = end;
    this.#deliveries.owner = null;
    if (this.#copy === 'failed') this.#end('owner', end);
    else this.#readCopy();
  }

  #readCopy(): void {
    if (this.#isOver || this.#copy !== 'not-asked') return;
    this.#copy = 'asked';
    const { call, body, answer } = this.#asked;
    const delivery = this.#parts.here(
      { ...call, fromCopy: true },
      body,
      (message) => {
        if (isRefusal(message)) this.#copyFailed();
        else this.#end('copy', () => answer(message));
      },
      () => this.#copyFailed(),
    );
    if (this.#copy === 'asked') this.#deliveries.copy = delivery;
  }

  #copyFailed(): void {
    this.#copy = 'failed';
    this.#deliveries.copy = null;
    if (this.#owner !== 'asked') this.#end('owner', this.#owner);
  }

  /** The first end counts; the other one, if it is still at it, is told that nobody waits. */
  #end(by: 'owner' | 'copy', how: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelTimer();
    this.#deliveries[by] = null;
    if (by === 'owner') this.#owner = how;
    how();
    this.cancel();
  }
}

const unavailable = 503;

function isRefusal({ head }: Message): boolean {
  return movedFromWire(head) !== null || actorAnswerFromWire(head).status === unavailable;
}

const marks = { query: 'consistency=eventual', body: '"eventual"' } as const;

/**
 * Whether a call may be a read that prefers an old answer to none. It is a guess by its bytes, since nothing is parsed here, and never wrong about a
 * read that is one and writes its JSON plainly; whoever makes the copy reads what was asked.
 */
export function mayBeEventual({ operation, namespace, query }: ActorCall, body: Uint8Array | null): boolean {
  if (namespace === '') return false;
  if (query.includes(marks.query)) return effectOf(operation).does === 'read';
  if (body === null || effectOf(operation).does !== 'read') return false;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(marks.body);
}
