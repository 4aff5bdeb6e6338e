import type { Clock } from './clock.ts';

/** Resolves when the work has ended, however it did, or when the time is over. Leaves no timer behind. */
export async function settledWithin(clock: Clock, work: Promise<unknown>, ms: number): Promise<void> {
  let cancel = () => {};
  const over = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  await Promise.race([work.catch(() => {}), over]);
  cancel();
}
