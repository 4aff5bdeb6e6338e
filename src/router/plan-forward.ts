import { limits } from '../../protocol/limits.ts';

/** Why a try to have a call done by another server did not end it. */
export type FailedTry =
  /** The other server does not own it, as far as it knows; it was not begun. */
  | { readonly kind: 'moved'; readonly placement: number }
  /** Nothing has left, or nobody could be named to send it to. */
  | { readonly kind: 'unreachable' }
  /** It arrived somewhere and was not begun: a server leaves, or a third does not reach the other either. */
  | { readonly kind: 'refused' }
  /** Too many others are under way; it was not begun. */
  | { readonly kind: 'full' }
  /** It has left, and nobody knows what became of it; `isForgotten`: not even who has it. */
  | { readonly kind: 'lost'; readonly isForgotten: boolean };

/** What has been tried of a call. */
export interface Tried {
  readonly does: 'read' | 'write';
  /** The placement by which this server chose the other one. */
  readonly placement: number;
  /** How many copies of this try have been sent to the same process after it was lost. */
  readonly copies: number;
  /** Whether the other process has ended, as far as is known. */
  readonly isGone: boolean;
  /** How often the other server did not own it, and how often its answer was lost, before this try. */
  readonly moves: number;
  readonly losses: number;
  /** Whether this try went through a third server, and whether one could be had. */
  readonly wentByThird: boolean;
  readonly hasThird: boolean;
  /** How long it may still wait for whatever changes. */
  readonly waitMsLeft: number;
  /** False where its body can be read only once. */
  readonly isRepeatable: boolean;
  /** False where nobody waits for the answer any more, or its time is over. */
  readonly isWanted: boolean;
}

export type NextStep =
  /** Send it by what is known now, or through a third server. */
  | { readonly kind: 'send'; readonly byThird: boolean }
  /** Send a copy to the same process, under the name of the first: it is done once, and its answer is that of the first. */
  | { readonly kind: 'copy'; readonly byThird: boolean; readonly afterMs: number }
  /** Wait for the placement so long. Then send it; where it did not come, `otherwise`. */
  | {
      readonly kind: 'wait';
      readonly placement: number;
      readonly ms: number;
      readonly otherwise: 'send' | 'fail';
    }
  | { readonly kind: 'fail' };

const fail: NextStep = { kind: 'fail' };

/**
 * Decides what follows a try. 1. What may have been begun is never sent again as another request, but for reads, once. Of a write the same
 * process is sent copies, through a third server where there is one, until it says what became of the first, or the wait is over. 2. Who does not own it any more says by
 * which placement: it is waited for, and the call goes once more. 3. Who is not reached is reached through a third, once; then it is tried
 * again until somebody else owns it, or the wait is over. 4. Who has too much to do is left alone.
 */
export function planForward(failed: FailedTry, tried: Tried): NextStep {
  if (!tried.isWanted || !tried.isRepeatable) return fail;
  switch (failed.kind) {
    case 'full':
      return fail;
    case 'lost':
      if (tried.does === 'write') return failed.isForgotten ? fail : copied(tried);
      return tried.losses === 0 ? { kind: 'send', byThird: false } : fail;
    case 'moved':
      return afterMove(failed.placement, tried);
    case 'refused':
      // Whoever leaves refuses what comes through others, too.
      return again(tried);
    default:
      return !tried.wentByThird && tried.hasThird ? { kind: 'send', byThird: true } : again(tried);
  }
}

function afterMove(placement: number, { moves, placement: sentBy, waitMsLeft }: Tried): NextStep {
  // Who knows less than this server has waited for it already.
  if (moves > 0 || placement <= sentBy || waitMsLeft <= 0) return fail;
  return { kind: 'wait', placement, ms: waitMsLeft, otherwise: 'fail' };
}

function copied({ copies, hasThird, isGone, waitMsLeft }: Tried): NextStep {
  // A third may know better whether it is gone: it is asked once in any case.
  if (waitMsLeft <= 0 || (isGone && (copies > 0 || !hasThird))) return fail;
  return { kind: 'copy', byThird: hasThird, afterMs: copies === 0 ? 0 : limits.forwardAgainMs };
}

function again({ placement, waitMsLeft }: Tried): NextStep {
  if (waitMsLeft <= 0) return fail;
  const ms = Math.min(limits.forwardAgainMs, waitMsLeft);
  return { kind: 'wait', placement: placement + 1, ms, otherwise: 'send' };
}
