import { actorThreadNames } from '../../protocol/placement.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import type { Ownership } from '../actor/ownership.ts';

/** Where a name's actor lives, as the router decides it, seen from one thread. */
export class ThreadPlace {
  readonly #ownership: Pick<Ownership, 'isOwn'>;
  readonly #names: readonly string[];
  readonly #index: number;

  constructor(
    ownership: Pick<Ownership, 'isOwn'>,
    { threads = 1, index = 0 }: { readonly threads?: number; readonly index?: number },
  ) {
    this.#ownership = ownership;
    this.#names = actorThreadNames(threads);
    this.#index = index;
  }

  /** Whether the actor of this placement key lives on this thread of this server. */
  isHere(key: string): boolean {
    return this.#ownership.isOwn(key) && rendezvousPick(key, this.#names) === this.#index;
  }

  /** Whether it lives on another thread of this server. */
  isBeside(key: string): boolean {
    return this.#ownership.isOwn(key) && rendezvousPick(key, this.#names) !== this.#index;
  }
}
