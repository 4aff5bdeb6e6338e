import { sleep } from './judge.ts';

const lookMs = 200;
const waitMsMax = 600_000;

interface Metered {
  readonly metricsUrl: string;
  /** The addresses of several servers that are measured as one: counts are summed. */
  readonly metricsUrls?: readonly string[];
}

/** Vectors that graphs find, and those whose graphs are not built: from `GET /metrics`. */
export async function readVectorCounts({
  metricsUrl,
  metricsUrls = [metricsUrl],
}: Metered): Promise<{ readonly indexed: number; readonly waiting: number }> {
  const texts = await Promise.all(
    metricsUrls.map(async (url) => await (await fetch(`${url}/metrics`)).text()),
  );
  const sum = (name: string) => {
    const sample = new RegExp(`^tidebase_vectors_${name} (\\d+)$`, 'm');
    return texts.reduce((total, text) => total + Number(sample.exec(text)?.[1] ?? Number.NaN), 0);
  };
  return { indexed: sum('indexed'), waiting: sum('waiting') };
}

/** Resolves when at least so many are indexed and none waits. Rejects where that takes ten minutes. */
export async function whenVectorsIndexed(server: Metered, atLeast: number): Promise<void> {
  const until = performance.now() + waitMsMax;
  for (;;) {
    const { indexed, waiting } = await readVectorCounts(server);
    if (indexed >= atLeast && waiting === 0) return;
    if (performance.now() > until) throw new Error(`${indexed} vectors are indexed and ${waiting} wait`);
    await sleep(lookMs);
  }
}
