import type { CountAnswer, SearchAnswer } from '../protocol/search.ts';
import type { Measurement } from './bench-report.ts';
import { Connections, type MeasuredServer } from './measured-server.ts';
import { latencyText, percentile } from './open-loop.ts';
import type { CountedPattern } from './search-patterns.ts';

/** How long one client waits for searches and counts, one after the other, over a connection that stays open. */
export interface Timed {
  /** From the request to its whole answer, all patterns together. */
  readonly timesMs: readonly number[];
  /** Sentences: answers that are not what was counted in the texts. */
  readonly wrong: readonly string[];
}

/**
 * Not timed: they fill caches, the server's code is compiled while it runs, and searches index a memtable bit by bit. Rounds
 * of all patterns, until there were that many and they took that long.
 */
const warmUps = { rounds: 10, ms: 1_000 };

export class SearchClient {
  static readonly pageHits = 20;
  readonly #client: Connections;
  readonly #path: string;

  constructor({ process: server, key }: MeasuredServer, namespace: string) {
    this.#client = new Connections(server.url, key, 1);
    this.#path = `/v1/namespaces/${namespace}`;
  }

  search(pattern: CountedPattern): Promise<SearchAnswer> {
    return this.#ask('search', { q: pattern.query, regex: pattern.isRegex, limit: SearchClient.pageHits });
  }

  count(pattern: CountedPattern): Promise<CountAnswer> {
    return this.#ask('count', { q: pattern.query, regex: pattern.isRegex, scan: true });
  }

  /** At least `repetitions` requests in all, the patterns in turn. */
  async timeSearches(patterns: readonly CountedPattern[], repetitions: number): Promise<Timed> {
    return timed(patterns, repetitions, async (pattern) => {
      const { hits, partial } = await this.search(pattern);
      const wanted = Math.min(pattern.documents, SearchClient.pageHits);
      return hits.length === wanted && !partial
        ? null
        : `${hits.length} hits, not ${wanted}, partial: ${partial}`;
    });
  }

  async timeCounts(patterns: readonly CountedPattern[], repetitions: number): Promise<Timed> {
    return timed(patterns, repetitions, async (pattern) => {
      const { count, exact } = await this.count(pattern);
      return count === pattern.documents && exact ? null : `counts ${count}, not ${pattern.documents}`;
    });
  }

  close(): void {
    this.#client.close();
  }

  async #ask<Answer>(operation: string, body: object): Promise<Answer> {
    const answer = await this.#client.post(`${this.#path}/${operation}`, Buffer.from(JSON.stringify(body)));
    return JSON.parse(answer) as Answer;
  }
}

async function timed(
  patterns: readonly CountedPattern[],
  repetitions: number,
  ask: (pattern: CountedPattern) => Promise<string | null>,
): Promise<Timed> {
  const timesMs: number[] = [];
  const wrong = new Set<string>();
  const askAll = async (times: number[]) => {
    for (const pattern of patterns) {
      const began = performance.now();
      const problem = await ask(pattern);
      times.push(performance.now() - began);
      if (problem !== null) wrong.add(`${JSON.stringify(pattern.query)}: ${problem}`);
    }
  };
  const warmSince = performance.now();
  for (let round = 0; round < warmUps.rounds || performance.now() - warmSince < warmUps.ms; round++)
    await askAll([]);
  for (let round = 0; round < Math.ceil(repetitions / patterns.length); round++) await askAll(timesMs);
  return { timesMs, wrong: [...wrong] };
}

/** A line of the report. `also` holds what else must be true, and says it. */
export function timedMeasurement(
  name: string,
  { timesMs, wrong }: Timed,
  bar: { readonly p50MsMax?: number; readonly also?: { readonly text: string; readonly ok: boolean } },
): Measurement {
  const { p50MsMax = Number.POSITIVE_INFINITY, also } = bar;
  const p50 = percentile(timesMs, 0.5);
  const bars = [
    ...(bar.p50MsMax === undefined ? [] : [`≤ ${p50MsMax} ms`]),
    ...(also === undefined ? [] : [also.text]),
  ];
  return {
    name,
    value: `p50 ${p50.toFixed(2)} ms`,
    bar: bars.join(', '),
    ok: p50 <= p50MsMax && (also?.ok ?? true) && wrong.length === 0,
    note: [
      `${timesMs.length} requests: ${latencyText(timesMs)}`,
      ...wrong.slice(0, 3).map((each) => `WRONG ${each}`),
    ].join('\n    '),
  };
}
