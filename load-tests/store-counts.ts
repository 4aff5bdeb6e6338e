import { sleep } from './judge.ts';

/** What a running server asked of its object store, by kind of object: its own counters, from `GET /metrics`. */
export interface StoreCounts {
  readonly puts: number;
  readonly putBytes: number;
  readonly gets: number;
}

export type CountsByKind = ReadonlyMap<string, StoreCounts>;

const noCounts: StoreCounts = { puts: 0, putBytes: 0, gets: 0 };
const fields: ReadonlyMap<string, keyof StoreCounts> = new Map([
  ['puts', 'puts'],
  ['put_bytes', 'putBytes'],
  ['gets', 'gets'],
]);

interface Metered {
  readonly metricsUrl: string;
  /** The addresses of several servers that are measured as one: counts are summed. */
  readonly metricsUrls?: readonly string[];
}

/** Since the server's start. */
export async function readStoreCounts({ metricsUrl, metricsUrls }: Metered): Promise<CountsByKind> {
  const counts = new Map<string, StoreCounts>();
  for (const url of metricsUrls ?? [metricsUrl]) {
    const answer = await fetch(`${url}/metrics`);
    for (const [, name = '', kind = '', value] of (await answer.text()).matchAll(
      /^tidebase_store_(\w+)_total\{kind="([^"]+)"\} (\d+)$/gm,
    )) {
      const field = fields.get(name);
      const known = counts.get(kind) ?? noCounts;
      if (field !== undefined) counts.set(kind, { ...known, [field]: known[field] + Number(value) });
    }
  }
  if (counts.size === 0) throw new Error('the server tells no counters of its object store');
  return counts;
}

const restLookMs = 2_000;
const restMsMax = 180_000;

/** Flushes and compactions that a load caused go on for a while after it: resolves when no segment is put any more. */
export async function whenSegmentsRest(server: Metered): Promise<void> {
  const until = performance.now() + restMsMax;
  for (let before = await segmentPuts(server), still = 0; still < 2 && performance.now() < until; ) {
    await sleep(restLookMs);
    const now = await segmentPuts(server);
    still = now === before ? still + 1 : 0;
    before = now;
  }
}

/** Since the server's start. */
export async function segmentPuts(server: Metered): Promise<number> {
  return (await readStoreCounts(server)).get('ns/segment')?.puts ?? 0;
}

/** What came between two readings. */
export function countsBetween(before: CountsByKind, after: CountsByKind): CountsByKind {
  return new Map(
    [...after].map(([kind, now]) => {
      const then = before.get(kind) ?? noCounts;
      return [
        kind,
        { puts: now.puts - then.puts, putBytes: now.putBytes - then.putBytes, gets: now.gets - then.gets },
      ];
    }),
  );
}

export function totalCounts(counts: CountsByKind): StoreCounts {
  let { puts, putBytes, gets } = noCounts;
  for (const kind of counts.values()) {
    puts += kind.puts;
    putBytes += kind.putBytes;
    gets += kind.gets;
  }
  return { puts, putBytes, gets };
}

/** A table of the kinds that were put. */
export function putsTable(counts: CountsByKind, seconds: number): string[] {
  const row = (kind: string, { puts, putBytes }: StoreCounts) =>
    `    ${kind.padEnd(18)} ${String(puts).padStart(9)} PUTs ${(puts / seconds).toFixed(2).padStart(9)} a second ` +
    `${(putBytes / 1e6).toFixed(2).padStart(11)} MB`;
  const put = [...counts].filter(([, { puts }]) => puts > 0);
  return [...put.map(([kind, of]) => row(kind, of)), row('all', totalCounts(counts))];
}
