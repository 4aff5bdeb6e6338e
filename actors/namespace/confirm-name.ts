/** What becomes of a namespace whose name its tenant does not confirm. */
import { ApiError } from '../../protocol/errors.ts';
import { ActorClosed } from '../storage/manifest-store.ts';

/**
 * The name that this namespace was made under is not there: its tenant moved to another server before the name was in the log, or
 * somebody deleted the name before it was confirmed.
 */
export function isNameLost(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'not_found';
}

/** Nobody will ever find what was written under an id that has no name, so it is written again, under another one. */
export function nameLost(cause: unknown): ActorClosed {
  return new ActorClosed('the name was lost before it was confirmed', { cause });
}

/** Why nothing of a namespace whose name was not confirmed can be acknowledged. */
export function notConfirmed(error: unknown): unknown {
  if (isNameLost(error)) return nameLost(error);
  if (!(error instanceof ApiError)) return error;
  switch (error.code) {
    case 'write_busy':
      return error;
    default:
      return new ApiError(
        'write_unknown',
        'the namespace may or may not have been made, with this write in it',
        {
          retryAfter: 1,
        },
      );
  }
}
