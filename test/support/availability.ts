/** Whether something that is asked again and again answers: for how long it did not, and how long its answers took. */
export class Availability {
  readonly #now: () => number;
  #inFlight = 0;
  /** Since when something was asked that no answer has followed; null where there is nothing. */
  #waitingSinceMs: number | null = null;
  #longestMs = 0;
  #tookMs: number[] = [];
  #answers = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Answers since the beginning. */
  get answers(): number {
    return this.#answers;
  }

  /** How long each answer since `restart` took, in milliseconds. */
  get tookMs(): readonly number[] {
    return this.#tookMs;
  }

  /** The longest time since `restart` from a question to the next answer, to whichever question, in milliseconds. */
  get longestMs(): number {
    if (this.#waitingSinceMs === null) return this.#longestMs;
    return Math.max(this.#longestMs, this.#now() - this.#waitingSinceMs);
  }

  /** Asks. Rejects as `ask` does. */
  async asked<T>(ask: () => Promise<T>): Promise<T> {
    const askedMs = this.#now();
    this.#inFlight++;
    this.#waitingSinceMs ??= askedMs;
    let isAnswered = false;
    try {
      const answer = await ask();
      isAnswered = true;
      return answer;
    } finally {
      this.#inFlight--;
      if (isAnswered) this.#answered(askedMs);
    }
  }

  /** Counts anew from here on. */
  restart(): void {
    this.#longestMs = 0;
    this.#tookMs = [];
    if (this.#waitingSinceMs !== null) this.#waitingSinceMs = this.#now();
  }

  #answered(askedMs: number): void {
    const now = this.#now();
    this.#longestMs = this.longestMs;
    this.#waitingSinceMs = this.#inFlight > 0 ? now : null;
    this.#tookMs.push(now - askedMs);
    this.#answers++;
  }
}
