import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';

/**
 * So many sign-ups and logins at once as can wait for the one thread that hashes. The others are refused before anything
 * is read for them: of 200 who log in at once the 167 who have to come back would otherwise each cost the thread that
 * answers everybody two reads of the object store.
 */
export class PasswordGate {
  #inside = 0;

  /** Throws 429 `rate_limited` where it is full, without running `work`. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside >= limits.passwordsAtOnceMax) throw tooManyPasswords();
    this.#inside += 1;
    try {
      return await work();
    } finally {
      this.#inside -= 1;
    }
  }
}

/** By when a full queue is empty, at 20 to 110 ms each. */
const retrySeconds = 3;

export function tooManyPasswords(): ApiError {
  const sentence = 'Too many people sign up and log in at once: try again in a moment.';
  return new ApiError('rate_limited', sentence, { retryAfter: retrySeconds });
}
