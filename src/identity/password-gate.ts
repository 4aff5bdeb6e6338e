import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { yieldTurn } from '../base/turns.ts';

/**
 * So many sign-ups and logins at once as can wait for the one thread that hashes. The others are refused before anything
 * is read for them: of 200 who log in at once the 167 who have to come back would otherwise each cost the thread that
 * answers everybody two reads of the object store.
 *
 * Of those who are let in a few begin, and the others when one of these has ended: the hashing thread is kept busy by two, and 33
 * who read and sign at once would hold up everybody's reads for some 50 ms. Whether one may come in is decided for one a turn: to
 * refuse 167 takes some 30 ms, in which reads that came later are answered too.
 */
export class PasswordGate {
  #inside = 0;
  #begun = 0;
  readonly #waiting: (() => void)[] = [];

  /** Rejects with 429 `rate_limited` where it is full, without running `work`. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await yieldTurn();
    if (this.#inside >= limits.passwordsAtOnceMax) throw tooManyPasswords();
    this.#inside += 1;
    if (this.#begun < limits.passwordsBegunMax) this.#begun += 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      this.#inside -= 1;
      const next = this.#waiting.shift();
      // The place is handed on, or given back.
      if (next === undefined) this.#begun -= 1;
      else next();
    }
  }
}

/** Seconds after which callers that were refused may come again: by when a full queue is empty, at 20 to 110 ms each; not for all the same, or all would come back at once. */
const retrySeconds = [2, 3, 4, 5, 6] as const;
let refused = 0;

export function tooManyPasswords(): ApiError {
  const sentence = 'too many people sign up and log in at once: try again in a moment';
  const retryAfter = retrySeconds[refused++ % retrySeconds.length] ?? retrySeconds[0];
  return new ApiError('rate_limited', sentence, { retryAfter });
}
