/**
 * Watches one transfer, of a body that comes or of an answer that goes: whether it keeps the least pace, and when it will
 * be done. A slow line is no attack; one that holds memory and hardly moves may be.
 */

/** The least pace: 16 KB a second, over each window. */
const floorBytesPerMs = 16;
/** The pace of the last seconds is what counts, not that of the whole transfer. */
const sampleMs = 1_000;

/** A transfer that others may need to end: the body that a handler waits for, or the answer that its client reads. */
interface Transfer {
  readonly phase: string;
  readonly pace: Pace | null;
  readonly intake: {
    readonly waiting: boolean;
    readonly isHeldUp: boolean;
    readonly expectedBytes: number;
  } | null;
  readonly answerBytes: number;
}

/** Seconds until an exchange's transfer is done at its present pace; 0 where none is under way, or we hold it up ourselves. */
export function secondsLeftOf({ phase, pace, intake, answerBytes }: Transfer, nowMs: number): number {
  if (pace === null) return 0;
  if (phase === 'writing') return pace.secondsLeft(answerBytes, nowMs);
  if (phase !== 'handling' || intake?.waiting !== true || intake.isHeldUp) return 0;
  return pace.secondsLeft(intake.expectedBytes, nowMs);
}

export class Pace {
  readonly #windowMs: number;
  #windowBeganMs: number;
  #windowBytes = 0;
  #sampleBeganMs: number;
  #sampleBytes = 0;
  #lastBeganMs: number;
  #lastBytes = 0;
  #bytes = 0;

  /** `windowMs`: what a transfer of any size may take; a larger one gets as much again for each window's worth of bytes. */
  constructor(windowMs: number, nowMs: number) {
    this.#windowMs = windowMs;
    this.#windowBeganMs = nowMs;
    this.#sampleBeganMs = nowMs;
    this.#lastBeganMs = nowMs;
  }

  /** When it must have moved on, or be over. */
  get dueMs(): number {
    return this.#windowBeganMs + this.#windowMs;
  }

  /** Notes how many bytes have come or gone since the transfer began. */
  moved(bytes: number, nowMs: number): void {
    this.#bytes = bytes;
    if (nowMs - this.#sampleBeganMs < sampleMs) return;
    this.#lastBeganMs = this.#sampleBeganMs;
    this.#lastBytes = this.#sampleBytes;
    this.#sampleBeganMs = nowMs;
    this.#sampleBytes = bytes;
  }

  /** Call when it is due: answers whether it has kept the pace, and then gives it another window. */
  kept(nowMs: number): boolean {
    const moved = this.#bytes - this.#windowBytes;
    if (moved < floorBytesPerMs * this.#windowMs) return false;
    this.#windowBeganMs = nowMs;
    this.#windowBytes = this.#bytes;
    return true;
  }

  /** The time in which it was not its fault that nothing moved does not count. */
  restart(nowMs: number): void {
    this.#windowBeganMs = nowMs;
    this.#windowBytes = this.#bytes;
    this.#lastBeganMs = nowMs;
    this.#lastBytes = this.#bytes;
    this.#sampleBeganMs = nowMs;
    this.#sampleBytes = this.#bytes;
  }

  /**
   * Seconds until the transfer is done, at the pace since it was last asked, or of the last seconds; 0 in its first second, of
   * which nothing is known, infinite where nothing moves.
   */
  secondsLeft(totalBytes: number, nowMs: number): number {
    this.moved(this.#bytes, nowMs);
    const elapsedMs = nowMs - this.#lastBeganMs;
    if (elapsedMs < sampleMs) return 0;
    const perMs = (this.#bytes - this.#lastBytes) / elapsedMs;
    return (totalBytes - this.#bytes) / perMs / 1_000;
  }
}
