import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A network's distance: every byte arrives a set time after it was sent, either way, in order. */
export interface DelayProxy {
  readonly url: string;
  /** Requests that began since the last call, in the order of their beginning. */
  takeRequests(): readonly ProxiedRequest[];
  close(): void;
}

/** One request of HTTP/1.1: a connection carries one at a time. */
export interface ProxiedRequest {
  /** Method and path. */
  readonly line: string;
  /** When its first byte came, in milliseconds of this process. */
  readonly beganAt: number;
  /** When the last byte of its answer went out so far. */
  endedAt: number;
}

export async function startDelayProxy(target: string, delayMs: number): Promise<DelayProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let requests: ProxiedRequest[] = [];
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true });
    let last: ProxiedRequest | null = null;
    client.on('data', (bytes: Buffer) => {
      const line = /^([A-Z]+ \S+) HTTP\/1\.1\r\n/.exec(bytes.toString('latin1', 0, 4_096))?.[1];
      // Anything else is the rest of a body.
      if (line === undefined) return;
      last = { line, beganAt: performance.now(), endedAt: Number.POSITIVE_INFINITY };
      requests.push(last);
    });
    for (const [from, to] of [
      [client, far],
      [far, client],
    ] as const) {
      open.add(from);
      from.on('data', (bytes: Buffer) => {
        const answered = from === far ? last : null;
        setTimeout(() => {
          if (to.writable) to.write(bytes);
          if (answered !== null) answered.endedAt = performance.now();
        }, delayMs);
      });
      from.on('end', () => setTimeout(() => to.end(), delayMs));
      from.on('error', () => {});
      from.on('close', () => {
        open.delete(from);
        setTimeout(() => to.destroy(), delayMs);
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    takeRequests() {
      const taken = requests;
      requests = [];
      return taken;
    },
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/**
 * The most of these requests of which each began after the one before had ended: no chain of requests that wait for each
 * other is longer.
 */
export function roundsOf(requests: readonly Pick<ProxiedRequest, 'beganAt' | 'endedAt'>[]): number {
  let rounds = 0;
  let endedAt = Number.NEGATIVE_INFINITY;
  for (const each of requests.toSorted((a, b) => a.endedAt - b.endedAt)) {
    if (each.beganAt < endedAt) continue;
    rounds++;
    endedAt = each.endedAt;
  }
  return rounds;
}
