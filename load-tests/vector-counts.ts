import { sleep } from './judge.ts';

const lookMs = 200;
const waitMsMax = 600_000;

/** Vectors that graphs find, and those whose graphs are not built: from `GET /metrics`. */
export async function readVectorCounts(server: {
  readonly metricsUrl: string;
}): Promise<{ readonly indexed: number; readonly waiting: number }> {
  const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  const [indexed, waiting] = ['indexed', 'waiting'].map((name) =>
    Number(new RegExp(`^tidebase_vectors_${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN),
  ) as [number, number];
  return { indexed, waiting };
}

/** Resolves when at least so many are indexed and none waits. Rejects where that takes ten minutes. */
export async function whenVectorsIndexed(
  server: { readonly metricsUrl: string },
  atLeast: number,
): Promise<void> {
  const until = performance.now() + waitMsMax;
  for (;;) {
    const { indexed, waiting } = await readVectorCounts(server);
    if (indexed >= atLeast && waiting === 0) return;
    if (performance.now() > until) throw new Error(`${indexed} vectors are indexed and ${waiting} wait`);
    await sleep(lookMs);
  }
}
