import type { Random } from '../../src/base/random.ts';
import { mayPass, type ProviderFailure } from './provider-errors.ts';

/** Sends of one call, the first among them. */
export const callAttemptsMax = 3;
const backoffMs = 400;
/** A longer wait is the caller's: it holds a place in a queue here, and can do something else there. */
const waitMsMax = 5_000;
/** A try with less time than this is not worth its price. */
const tryMsMin = 200;

export interface RetryQuestion {
  readonly failure: ProviderFailure;
  /** Sends so far. */
  readonly attempts: number;
  readonly msLeft: number;
}

/** How long to wait before the call is sent again; null: not at all. */
export function retryInMs({ failure, attempts, msLeft }: RetryQuestion, random: Random): number | null {
  if (attempts >= callAttemptsMax || !mayPass(failure)) return null;
  // Spread over half of the time, so that those refused together do not come back together.
  const backoff = backoffMs * 2 ** (attempts - 1) * (0.5 + fraction(random) / 2);
  const asked = failure.kind === 'refused' ? failure.retryAfterMs : null;
  const wait = asked === null ? backoff : asked + backoff / 4;
  return wait <= waitMsMax && wait + tryMsMin <= msLeft ? wait : null;
}

/** 0 to under 1. */
function fraction(random: Random): number {
  const [high = 0, low = 0] = random.bytes(2);
  return (high * 256 + low) / 65_536;
}
