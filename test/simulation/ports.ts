import type { ChannelPort } from '../../src/base/port-channel.ts';
import type { Chance } from './chance.ts';
import type { Owner, Scheduler } from './scheduler.ts';

type Batch = [Uint8Array, (ArrayBuffer | SharedArrayBuffer)[]];

/** How long a message is on its way between two threads, at most. */
const deliveryMsMax = 0.2;

/**
 * The two ends of a channel between two threads of one simulated process. As between real ones, messages arrive in order
 * and some time later, and what was moved is gone from the sender.
 */
export function portPair(
  scheduler: Scheduler,
  owner: Owner,
  chance: Chance,
): { readonly log: ChannelPort; readonly actors: ChannelPort } {
  const log = new SimulatedPort(scheduler, owner, chance);
  const actors = new SimulatedPort(scheduler, owner, chance);
  log.peer = actors;
  actors.peer = log;
  return { log, actors };
}

class SimulatedPort implements ChannelPort {
  readonly #scheduler: Scheduler;
  readonly #owner: Owner;
  readonly #chance: Chance;
  readonly #arriving: Batch[] = [];
  #take: (batch: Batch) => void = () => {};
  #onClose: () => void = () => {};
  #closed = false;
  peer: SimulatedPort | null = null;

  constructor(scheduler: Scheduler, owner: Owner, chance: Chance) {
    this.#scheduler = scheduler;
    this.#owner = owner;
    this.#chance = chance;
  }

  postMessage(message: unknown, transfer: ArrayBuffer[]): void {
    const [packed, bodies] = message as Batch;
    // The packed batch was made for this message alone; what the sender had before must be gone from it.
    const moved = transfer.filter((buffer) => buffer !== packed.buffer);
    const arrived = moved.length === 0 ? bodies : structuredClone(bodies, { transfer: moved });
    this.peer?.arrive([packed, arrived]);
  }

  /** Each delivery takes the oldest message, so that they arrive in order whatever the delays are. */
  arrive(batch: Batch): void {
    this.#arriving.push(batch);
    this.#scheduler.after(this.#chance.fraction() * deliveryMsMax, this.#owner, () => {
      const oldest = this.#arriving.shift();
      if (oldest !== undefined && !this.#closed) this.#take(oldest);
    });
  }

  on(event: 'message', take: (batch: Batch) => void): unknown;
  on(event: 'close', take: () => void): unknown;
  on(event: 'message' | 'close', take: ((batch: Batch) => void) | (() => void)): void {
    if (event === 'message') this.#take = take;
    else this.#onClose = take as () => void;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onClose();
    this.peer?.close();
  }

  atEndOfTurn(run: () => void): void {
    this.#scheduler.after(0, this.#owner, run);
  }
}
