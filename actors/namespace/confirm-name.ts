/** What becomes of a namespace whose name its tenant does not confirm. */
import { ApiError } from '../../protocol/errors.ts';
import { ActorClosed } from '../storage/manifest-store.ts';

/**
 * Says whether the tenant's answer means that it does not know a new namespace's name: the tenant moved to another server before
 * the name was in the log, or somebody deleted the name before it was confirmed.
 */
export function isNameLost(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'not_found';
}

/**
 * Makes the error that has a write done again, under another id, after the namespace's name was lost: nobody will ever find what was
 * written under an id that has no name.
 */
export function nameLost(cause: unknown): ActorClosed {
  return new ActorClosed('the name was lost before it was confirmed', { cause });
}

/** Answers the error of a write into a namespace whose name the tenant did not confirm; `error` is the tenant's. */
export function notConfirmed(error: unknown): unknown {
  if (isNameLost(error)) return nameLost(error);
  if (!(error instanceof ApiError)) return error;
  if (error.code === 'write_busy') return error;
  const sentence = 'the namespace may or may not have been made, with this write in it';
  return new ApiError('write_unknown', sentence, { retryAfter: 1 });
}
