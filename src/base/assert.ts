/** A broken assertion is our bug: the actor that meets it closes and reopens from durable state. */
export class AssertionError extends Error {
  override name = 'AssertionError';
}

/** The message is a function so that a passing check costs nothing but the test itself. */
export function assert(condition: unknown, message: () => string): asserts condition {
  if (!condition) throw new AssertionError(message());
}

/** The value, or an assertion failure naming what should have been there. */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new AssertionError(`missing: ${what}`);
  return value;
}

/** Closes a switch over a union: the compiler proves that nothing is left. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value)}`);
}

/** Stored bytes that do not read back as they were written. Never skipped over, never retried blindly. */
export class DataError extends Error {
  override name = 'DataError';
  readonly place: string;
  readonly offset: number;
  readonly reason: string;
  constructor(place: string, offset: number, reason: string) {
    super(`damaged data in ${place} at byte ${offset}: ${reason}`);
    this.place = place;
    this.offset = offset;
    this.reason = reason;
  }
}
