import type { Clock } from './clock.ts';

/**
 * Runs `round` in `firstAfterMs`, and each time again in as many milliseconds as it answered, counted from its end. It
 * must not reject. The answer stops it; a round that is under way ends.
 */
export function repeat(clock: Clock, firstAfterMs: number, round: () => Promise<number>): () => void {
  let stopped = false;
  let cancel = () => {};
  const wait = (ms: number) => {
    if (!stopped) cancel = clock.after(ms, () => void round().then(wait));
  };
  wait(firstAfterMs);
  return () => {
    stopped = true;
    cancel();
  };
}
