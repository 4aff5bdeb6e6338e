import { Connections } from './measured-server.ts';
import { postUntilTaken } from './put-texts.ts';
import { numberBatch, textBatches } from './text-batches.ts';

/** A closed loop of writers: each connection sends its next batch when the last one was answered. */
export interface BodyWriters {
  /** Acknowledged so far. */
  readonly documents: number;
  /** Answers of 429 so far; each is tried again after the time that it names. */
  readonly busy: number;
  /** The latencies of acknowledged batches, waiting for room included, since the last reset. */
  readonly latenciesMs: readonly number[];
  resetLatencies(): void;
  /** Resolves when `batchesMax` batches are answered, or after `stop`. */
  readonly finished: Promise<void>;
  /** Resolves when what was sent is answered. */
  stop(): Promise<void>;
}

export interface WritersOptions {
  readonly url: string;
  readonly key: string;
  readonly connections: number;
  readonly batchDocuments: number;
  /** Default: until they are stopped. */
  readonly batchesMax?: number;
}

/** Every batch in memory is one that a connection may be sending: its bytes must not change meanwhile. */
const batchesPerConnection = 3;

/** `pathOf` says where batch number n goes. */
export function bodyWriters(options: WritersOptions, pathOf: (batch: number) => string): BodyWriters {
  const { url, key, connections, batchDocuments } = options;
  const batchesMax = options.batchesMax ?? Number.POSITIVE_INFINITY;
  const batches = textBatches(connections * batchesPerConnection, batchDocuments);
  const client = new Connections(url, key, connections);
  const state = { documents: 0, busy: 0, latenciesMs: [] as number[], stopping: false, next: 0 };

  const write = async (connection: number) => {
    for (let turn = 0; !state.stopping && state.next < batchesMax; turn++) {
      const batch = batches[connection * batchesPerConnection + (turn % batchesPerConnection)];
      if (batch === undefined) throw new Error('a connection without batches');
      const number = state.next++;
      numberBatch(batch, number * batchDocuments);
      const sentAt = performance.now();
      await postUntilTaken(client, pathOf(number), batch.body, () => state.busy++);
      state.latenciesMs.push(performance.now() - sentAt);
      state.documents += batch.documents;
    }
  };
  const running = Promise.all(Array.from({ length: connections }, (_, connection) => write(connection))).then(
    () => client.close(),
  );
  // Told when they are stopped; until then a failure shows as no progress.
  running.catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(2);
  });
  return {
    get documents() {
      return state.documents;
    },
    get busy() {
      return state.busy;
    },
    get latenciesMs() {
      return state.latenciesMs;
    },
    resetLatencies() {
      state.latenciesMs = [];
    },
    finished: running,
    async stop() {
      state.stopping = true;
      await running;
    },
  };
}
