import { Worker } from 'node:worker_threads';

/** One request of a stream. */
export interface LoopRequest {
  /** Index in the loop's clients. */
  readonly client: number;
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Requests of one kind at a set rate, asked for in turn. */
export interface RequestStream {
  readonly kind: string;
  readonly ratePerSecond: number;
  readonly requests: readonly LoopRequest[];
}

/** Several streams at once, from a thread of their own: neither an attack nor the other streams delay their clocks. */
export interface RequestLoop {
  readonly url: string;
  /** A key for each client; an empty one sends none. */
  readonly clients: readonly string[];
  /** The connections of each client: more requests than this wait in the client, and their latency grows with it. */
  readonly connections: number;
  readonly streams: readonly RequestStream[];
  readonly seconds: number;
  /** How often a request is asked at most: again after 429, 503 or no answer, as clients are told to. Default 1. */
  readonly triesMax?: number;
}

export interface StreamResult {
  readonly kind: string;
  /** From the intended start to the whole answer, of every request that was answered in any way. */
  readonly latenciesMs: readonly number[];
  readonly sent: number;
  /** How often one of them was asked again. */
  readonly askedAgain: number;
  /** How much later than intended the loop itself began each: where it is behind, latencies are the loop's and not the server's. */
  readonly lateMs: readonly number[];
  /** What was no success, by status and code: `429 rate_limited`, `no answer: ECONNRESET`, `200 partial`. */
  readonly failures: Readonly<Record<string, number>>;
  /** Answers that had to read the disk or the store, by `temperature`. */
  readonly notWarm: Readonly<Record<string, number>>;
}

/** Resolves when every request is answered, or given up. */
export function runRequestLoop(loop: RequestLoop): Promise<readonly StreamResult[]> {
  const thread = new Worker(new URL('./request-loop-worker.js', import.meta.url), { workerData: loop });
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
}
