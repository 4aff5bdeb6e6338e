/**
 * A TCP proxy before the peer port of one server that can cut one direction between it and another one. Who dials is told by its process:
 * the system knows whose socket the other end is.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** `up`: what the dialling process sends is held; `down`: what it is sent. */
export type HeldDirection = 'up' | 'down';

interface Way {
  readonly from: Socket;
  readonly to: Socket;
  readonly direction: HeldDirection;
}

interface Connection {
  /** The port that the dialling process has for it. */
  readonly dialledFrom: number;
  readonly ways: readonly Way[];
}

export class PeerProxy {
  readonly #server: Server;
  readonly #port: number;
  readonly #connections = new Map<Socket, Connection>();
  readonly #held = new Map<number, HeldDirection>();

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.#port = port;
  }

  static async start(ports: { readonly port: number; readonly targetPort: number }): Promise<PeerProxy> {
    const server = createServer({ noDelay: true });
    const proxy = new PeerProxy(server, ports.port);
    server.on('connection', (client) => proxy.#accept(client, ports.targetPort));
    server.listen(ports.port, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  /** Holds one direction of all that the process has dialled, or will dial. */
  hold(pid: number, direction: HeldDirection): void {
    this.#held.set(pid, direction);
    for (const connection of this.#connections.values()) this.#apply(connection);
  }

  /** Everything flows again, what was held first. */
  heal(): void {
    this.#held.clear();
    for (const connection of this.#connections.values()) this.#apply(connection);
  }

  close(): void {
    this.#server.close();
    for (const client of this.#connections.keys()) client.destroy();
  }

  #accept(client: Socket, targetPort: number): void {
    const target = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    const ways: readonly Way[] = [
      { from: client, to: target, direction: 'up' },
      { from: target, to: client, direction: 'down' },
    ];
    const connection = { dialledFrom: client.remotePort ?? 0, ways };
    this.#connections.set(client, connection);
    for (const { from, to } of ways) {
      from.on('data', (bytes) => {
        if (!to.write(bytes)) from.pause();
      });
      to.on('drain', () => this.#apply(connection));
      from.on('error', () => {});
      from.once('close', () => {
        this.#connections.delete(client);
        to.destroy();
      });
    }
    this.#apply(connection);
  }

  #apply({ dialledFrom, ways }: Connection): void {
    const held = [...this.#held]
      .filter(([pid]) => isDialler(pid, dialledFrom, this.#port))
      .map(([, direction]) => direction);
    for (const { from, direction } of ways)
      if (held.includes(direction)) from.pause();
      else from.resume();
  }
}

/** Whether the process has the connection from `port` to `toPort` on loopback. */
function isDialler(pid: number, port: number, toPort: number): boolean {
  const end = (of: number) => `0100007F:${of.toString(16).toUpperCase().padStart(4, '0')}`;
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .find((each) => each.includes(` ${end(port)} ${end(toPort)} `));
  const inode = line?.trim().split(/\s+/)[9];
  return inode !== undefined && socketsOf(pid).includes(`socket:[${inode}]`);
}

function socketsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((descriptor) => {
      try {
        return readlinkSync(`${folder}/${descriptor}`);
      } catch {
        // Closed meanwhile.
        return [];
      }
    });
  } catch {
    // It has ended.
    return [];
  }
}
