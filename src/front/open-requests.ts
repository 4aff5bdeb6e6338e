import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { networkOf } from '../identity/attempts.ts';

/**
 * Counts requests without credentials that are under way, from the moment before their body is read: altogether, and of one
 * network, clients on this machine too. It bounds what their bodies hold, and keeps one network from taking all places
 * with bodies that never end. How many there may be in a minute is `Attempts.openRequest`.
 */
export class OpenRequests {
  #underWay = 0;
  #signed = 0;
  readonly #ofNetwork = new Map<string, number>();

  /** Takes a place until the answer, which `leave` gives back. Throws 429 `rate_limited` where none is free. */
  enter(address: string): { leave(): void } {
    const network = networkOf(address);
    const ofNetwork = this.#ofNetwork.get(network) ?? 0;
    if (ofNetwork >= limits.openRequestsOfNetworkMax) throw tooMany('from your network');
    if (this.#underWay >= limits.openRequestsMax) throw tooMany('to this server');
    this.#underWay += 1;
    this.#ofNetwork.set(network, ofNetwork + 1);
    return { leave: () => this.#leave(network) };
  }

  /** As `enter`, for events that are signed, whose bodies are larger. */
  enterSigned(): { leave(): void } {
    if (this.#signed >= limits.webhooksAtOnceMax) throw tooMany('to this server');
    this.#signed += 1;
    return {
      leave: () => {
        this.#signed -= 1;
      },
    };
  }

  get underWay(): number {
    return this.#underWay;
  }

  #leave(network: string): void {
    this.#underWay -= 1;
    const left = (this.#ofNetwork.get(network) ?? 0) - 1;
    if (left > 0) this.#ofNetwork.set(network, left);
    else this.#ofNetwork.delete(network);
  }
}

function tooMany(where: string): ApiError {
  const sentence = `too many sign-ups, logins, events and the like ${where} are under way: try again in a second`;
  return new ApiError('rate_limited', sentence, { retryAfter: 1 });
}
