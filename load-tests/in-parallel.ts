/** Does the work for each number below `count`, in order, `lanes` at a time. */
export async function inParallel(
  count: number,
  lanes: number,
  work: (number: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(lanes, count) }, async () => {
      while (next < count) await work(next++);
    }),
  );
}
