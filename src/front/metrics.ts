import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { VectorStatistics } from '../../protocol/worker-tasks.ts';
import type { KindOfCalls } from '../object-store/store-counters.ts';
import { CannotListen } from './door.ts';

/**
 * `GET /metrics` in Prometheus' text format, on a port of its own: it needs no credentials, and what is asked there meets
 * none of the limits and costs none of the deadlines of the service.
 */
export interface MetricsDoor {
  /** Without the path. */
  readonly url: string;
  close(): void;
}

/** Throws CannotListen. Port 0 takes any free one. */
export async function openMetrics(
  address: { readonly host: string; readonly port: number },
  text: () => Promise<string>,
): Promise<MetricsDoor> {
  const { host, port } = address;
  const server = createServer((request, response) => {
    const answer = (status: number, body: string) => {
      response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
      response.end(body);
    };
    if (request.method !== 'GET' || request.url !== '/metrics')
      return answer(404, 'there is only GET /metrics\n');
    text().then(
      (body) => answer(200, body),
      () => answer(503, 'a thread is starting; ask again\n'),
    );
  });
  await listening(server, host, port);
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new CannotListen(
          `port ${port} on ${host} can't be listened on (${cause.message}). Set TIDEBASE_METRICS_PORT to a free one.`,
        ),
      ),
    );
    server.listen(port, host, resolve);
  });
}

const storeMetrics: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: (calls: KindOfCalls) => number;
}[] = [
  { name: 'puts', help: 'PUTs of objects, refused ones included', value: ({ puts }) => puts },
  { name: 'put_bytes', help: 'Bytes that PUTs carried', value: ({ putBytes }) => putBytes },
  { name: 'gets', help: 'GETs of objects and of parts of them', value: ({ gets }) => gets },
  { name: 'deletes', help: 'Deleted objects', value: ({ deletes }) => deletes },
  { name: 'lists', help: 'Pages of listings', value: ({ lists }) => lists },
];

/** Counters of the object store by kind of object, as lines of Prometheus' text format. */
export function storeMetricsText(kinds: readonly KindOfCalls[]): string {
  return storeMetrics
    .map(({ name, help, value }) => {
      const full = `tidebase_store_${name}_total`;
      const lines = kinds.map((calls) => `${full}{kind="${calls.kind}"} ${value(calls)}\n`);
      return `# HELP ${full} ${help}.\n# TYPE ${full} counter\n${lines.join('')}`;
    })
    .join('');
}

const vectorMetrics: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: (vectors: VectorStatistics) => number;
}[] = [
  {
    name: 'tidebase_vectors_indexed',
    help: 'Vectors of open namespaces that graphs find',
    value: ({ indexed }) => indexed,
  },
  {
    name: 'tidebase_vectors_waiting',
    help: 'Vectors of open namespaces whose graphs are not built yet: they are searched one by one',
    value: ({ waiting }) => waiting,
  },
];

/** How far graphs have come, as lines of Prometheus' text format. `threads`: what each actor thread says. */
export function vectorMetricsText(threads: readonly VectorStatistics[]): string {
  return vectorMetrics
    .map(({ name, help, value }) => {
      const sum = threads.reduce((total, vectors) => total + value(vectors), 0);
      return `# HELP ${name} ${help}.\n# TYPE ${name} gauge\n${name} ${sum}\n`;
    })
    .join('');
}
