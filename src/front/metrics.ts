/**
 * `GET /metrics` in Prometheus' text format and `GET /readyz`, on a port of their own: they need no credentials, and what is asked
 * there meets none of the limits and costs none of the deadlines of the service.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CannotListen } from './door.ts';

/** How far a server is with its own start or end: only an active one should be sent requests. */
export type ServerState = 'joining' | 'active' | 'leaving';

export interface MetricsDoor {
  /** The address of the listener, without the path. */
  readonly url: string;
  close(): void;
}

/** Throws CannotListen. Port 0 takes any free one. */
export async function openMetrics(
  address: { readonly host: string; readonly port: number },
  text: () => Promise<string>,
  state: () => ServerState,
): Promise<MetricsDoor> {
  const { host, port } = address;
  const server = createServer((request, response) => {
    const answer = (status: number, body: string) => {
      response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
      response.end(body);
    };
    if (request.method === 'GET' && request.url === '/readyz')
      return answer(state() === 'active' ? 200 : 503, `${state()}\n`);
    if (request.method !== 'GET' || request.url !== '/metrics')
      return answer(404, 'there is only GET /metrics and GET /readyz\n');
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
          `port ${port} on ${host} can't be listened on (${cause.message}): set TIDEBASE_METRICS_PORT to a free one`,
        ),
      ),
    );
    server.listen(port, host, resolve);
  });
}
