import { actorThreadNames, placementKey } from '../../protocol/placement.ts';
import type { PortChannel } from '../../src/base/port-channel.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import type { LogTarget } from './unflushed.ts';

/** Which of how many actor threads one is. */
export interface ThreadNumber {
  readonly index: number;
  readonly count: number;
}

/** The actor threads as the log thread knows them. */
export class ActorChannels {
  readonly #channels = new Map<number, PortChannel>();
  #names: readonly string[] = [];

  /** Whether no thread has been attached yet. */
  get isEmpty(): boolean {
    return this.#channels.size === 0;
  }

  /** A thread takes the place of an earlier one with its index. */
  set(channel: PortChannel, { index, count }: ThreadNumber): void {
    this.#names = actorThreadNames(count);
    this.#channels.set(index, channel);
  }

  close(index: number): void {
    this.#channels.get(index)?.close();
  }

  all(): Iterable<PortChannel> {
    return this.#channels.values();
  }

  /** The thread whose actor the target's is; null where it was never there. */
  of({ tenantId, namespace }: Pick<LogTarget, 'tenantId' | 'namespace'>): PortChannel | null {
    const index = rendezvousPick(placementKey(tenantId, namespace), this.#names);
    return this.#channels.get(index) ?? null;
  }
}
