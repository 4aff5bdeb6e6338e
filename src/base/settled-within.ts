import type { Clock } from './clock.ts';

/** Resolves when the work has ended, however it did (true), or when the time is over (false). Leaves no timer behind. */
export async function settledWithin(clock: Clock, work: Promise<unknown>, ms: number): Promise<boolean> {
  let cancel = () => {};
  const over = new Promise<boolean>((resolve) => {
    cancel = clock.after(ms, () => resolve(false));
  });
  const ended = () => true;
  const isEnded = await Promise.race([work.then(ended, ended), over]);
  cancel();
  return isEnded;
}
