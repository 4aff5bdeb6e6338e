import type { ApiError } from '../../protocol/errors.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import type { Message, PortChannel } from '../base/port-channel.ts';

/** A call that is under way. */
export interface Delivery {
  /** Nobody waits for the answer any more. It comes all the same, and may come sooner. */
  cancel(): void;
}

/**
 * Hands a call to its actor. Calls back exactly once. A body is handed over: the caller may not touch it afterwards. Null where nothing
 * is under way.
 */
export type Deliver = (
  call: ActorCall,
  body: Uint8Array | null,
  answer: (message: Message) => void,
  fail: (error: ApiError) => void,
) => Delivery | null;

/** A call that a thread of this server has. */
export class LocalDelivery implements Delivery {
  readonly #channel: PortChannel;
  readonly #id: number;

  constructor(channel: PortChannel, id: number) {
    this.#channel = channel;
    this.#id = id;
  }

  cancel(): void {
    this.#channel.cancel(this.#id);
  }
}
