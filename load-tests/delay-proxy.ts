import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A network's distance: every byte arrives a set time after it was sent, either way, in order. */
export interface DelayProxy {
  readonly url: string;
  close(): void;
}

export async function startDelayProxy(target: string, delayMs: number): Promise<DelayProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true });
    for (const [from, to] of [
      [client, far],
      [far, client],
    ] as const) {
      open.add(from);
      from.on('data', (bytes: Buffer) => setTimeout(() => to.writable && to.write(bytes), delayMs));
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
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
