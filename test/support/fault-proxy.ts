/**
 * A proxy between a server and its S3 that breaks what a network or a store can break. Nothing is rewritten, so a
 * request's signature stays valid: it covers the Host that the client sent, which is this proxy's.
 *
 * It knows just enough of HTTP/1.1 to see where a request begins and ends: the head, and a body of Content-Length bytes.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePorts } from './free-ports.ts';

export type FaultMode =
  /** Everything flows. */
  | 'pass'
  /** Nobody listens: connections are refused, open ones are reset. */
  | 'refuse'
  /** Connections are accepted, no byte flows; what was held goes on as soon as the mode changes. */
  | 'hang'
  /** Requests reach the server; what it answers is held until the mode changes, as where one direction is cut. */
  | 'oneWay'
  /** A request reaches the server whole, its answer is thrown away and the client is reset. */
  | 'dropResponse'
  /** The proxy answers 503 SlowDown itself; the server never sees the request. */
  | 'throttle'
  /** A request ends after `cutAfterBytes` of it, and both sides are reset. */
  | 'cut';

/** A request, as far as faults choose by it. */
export interface ProxiedRequest {
  readonly method: string;
  /** Without the query; an object's is /bucket/key. */
  readonly path: string;
}

export interface Faults {
  readonly mode?: FaultMode;
  /** Added to every byte, each way. */
  readonly latencyMs?: number;
  /** `dropResponse`, `throttle`, `cut`: only requests for which this holds. Default: every one. */
  readonly matches?: (request: ProxiedRequest) => boolean;
  /** `dropResponse`, `throttle`, `cut`: how often at most. Default: without end. */
  readonly times?: number;
  /** `dropResponse`, `throttle`, `cut`: of a request that matches, 0 to 1. Default 1. */
  readonly probability?: number;
  /** `cut`: bytes of the request that still reach the server. Default 1,000. */
  readonly cutAfterBytes?: number;
}

export interface FaultProxyOptions {
  readonly targetPort: number;
  readonly targetHost?: string;
  /** 0 to 1; default Math.random. */
  readonly random?: () => number;
}

/** What has happened since the start. */
export interface FaultCounters {
  connections: number;
  requests: number;
  /** Connections that were reset or refused by a mode, without a request of their own. */
  reset: number;
  dropped: number;
  throttled: number;
  cut: number;
}

export interface FaultProxy {
  readonly port: number;
  readonly url: string;
  readonly counters: Readonly<FaultCounters>;
  /** Replaces all faults; what is left out is back at its default. Resolves when they hold. */
  set(faults: Faults): Promise<void>;
  close(): Promise<void>;
}

const cutAfterBytesDefault = 1_000;
/** Held bytes of one direction of a connection beyond which its source is paused. */
const heldBytesMax = 16 * 1024 * 1024;
/** A request head that does not end within this is not HTTP. */
const headBytesMax = 64 * 1024;

const slowDownBody =
  '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>' +
  '<Message>Please reduce your request rate.</Message></Error>';
const slowDown = Buffer.from(
  'HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\n' +
    `Content-Length: ${slowDownBody.length}\r\n\r\n${slowDownBody}`,
);

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const shared = new Shared(options);
  const server = createServer({ noDelay: true }, (client) => shared.accept(client));
  // It closes it and listens on it again: nobody else may be given it meanwhile.
  const [port = 0] = await freePorts(1);
  await listen(server, port);
  let changing = Promise.resolve();
  const change = async (faults: Faults) => {
    const refuses = faults.mode === 'refuse';
    // A closed listener refuses as the system does; accepting and resetting would look like a connection that broke.
    if (refuses && server.listening) server.close();
    shared.faults = faults;
    shared.timesLeft = faults.times ?? Number.POSITIVE_INFINITY;
    if (refuses) shared.resetAll();
    else if (!server.listening) await listen(server, port);
    shared.wake();
  };
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    counters: shared.counters,
    set(faults) {
      changing = changing.then(() => change(faults));
      return changing;
    },
    async close() {
      await changing;
      shared.resetAll();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}

/** What the connections have in common: the faults of this moment. */
class Shared {
  faults: Faults = {};
  timesLeft = Number.POSITIVE_INFINITY;
  readonly counters: FaultCounters = {
    connections: 0,
    requests: 0,
    reset: 0,
    dropped: 0,
    throttled: 0,
    cut: 0,
  };
  readonly #options: FaultProxyOptions;
  readonly #connections = new Set<Connection>();
  #wakers: (() => void)[] = [];

  constructor(options: FaultProxyOptions) {
    this.#options = options;
  }

  accept(client: Socket): void {
    this.counters.connections++;
    if (this.faults.mode === 'refuse') {
      // It was made in the last moment of the listener.
      this.counters.reset++;
      client.resetAndDestroy();
      return;
    }
    const { targetPort, targetHost = '127.0.0.1' } = this.#options;
    const upstream = connect({ port: targetPort, host: targetHost, noDelay: true });
    const connection = new Connection(this, client, upstream);
    this.#connections.add(connection);
    for (const socket of [client, upstream]) {
      socket.on('error', () => {});
      socket.once('close', () => {
        this.#connections.delete(connection);
        // What the closed side has sent before its end still goes to the other.
        connection.endOf(socket);
      });
    }
  }

  resetAll(): void {
    for (const connection of [...this.#connections]) {
      this.counters.reset++;
      connection.reset();
    }
  }

  /** The mode that a request meets; what is limited in number is used up by it. */
  fateOf(request: ProxiedRequest): FaultMode {
    const { mode = 'pass', matches, probability = 1 } = this.faults;
    if (mode !== 'dropResponse' && mode !== 'throttle' && mode !== 'cut') return 'pass';
    if (this.timesLeft <= 0 || matches?.(request) === false) return 'pass';
    if ((this.#options.random ?? Math.random)() >= probability) return 'pass';
    this.timesLeft--;
    return mode;
  }

  holds(direction: 'up' | 'down'): boolean {
    const { mode } = this.faults;
    return mode === 'hang' || (mode === 'oneWay' && direction === 'down');
  }

  untilChanged(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakers.push(resolve);
    });
  }

  wake(): void {
    for (const wake of this.#wakers.splice(0)) wake();
  }
}

/** One client's connection and its own to the server. */
class Connection {
  readonly #shared: Shared;
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #up: DelayLine;
  readonly #down: DelayLine;
  #head: Buffer = Buffer.alloc(0);
  #bodyLeft = 0;
  #fate: FaultMode = 'pass';
  #cutLeft = 0;

  constructor(shared: Shared, client: Socket, upstream: Socket) {
    this.#shared = shared;
    this.#client = client;
    this.#upstream = upstream;
    this.#up = new DelayLine(shared, { from: client, to: upstream, direction: 'up' });
    this.#down = new DelayLine(shared, { from: upstream, to: client, direction: 'down' });
    client.on('data', (bytes) => this.#fromClient(bytes));
    upstream.on('data', (bytes) => this.#fromServer(bytes));
  }

  reset(): void {
    for (const socket of [this.#client, this.#upstream]) if (!socket.destroyed) socket.resetAndDestroy();
  }

  endOf(socket: Socket): void {
    if (socket === this.#client) this.#up.end();
    else this.#down.end();
  }

  #fromClient(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#bodyLeft > 0) {
        const part = rest.subarray(0, Math.min(rest.length, this.#bodyLeft));
        this.#bodyLeft -= part.length;
        rest = rest.subarray(part.length);
        this.#forward(part);
      } else {
        rest = this.#readHead(rest);
      }
    }
  }

  /** Answers what follows the head; nothing while the head is not complete. */
  #readHead(bytes: Buffer): Buffer {
    this.#head = Buffer.concat([this.#head, bytes]);
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) {
      if (this.#head.length > headBytesMax) this.reset();
      return Buffer.alloc(0);
    }
    const head = this.#head.subarray(0, end + 4);
    const rest = this.#head.subarray(end + 4);
    this.#head = Buffer.alloc(0);
    const text = head.toString('latin1');
    const [method = '', target = ''] = text.split(' ', 2);
    this.#shared.counters.requests++;
    this.#fate = this.#shared.fateOf({ method, path: target.split('?', 1)[0] ?? '' });
    this.#cutLeft = this.#shared.faults.cutAfterBytes ?? cutAfterBytesDefault;
    this.#bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    this.#forward(head);
    return rest;
  }

  /** Bytes of the request under way, to where its fate sends them. */
  #forward(bytes: Buffer): void {
    const { counters } = this.#shared;
    if (this.#fate === 'throttle') {
      if (this.#bodyLeft > 0) return;
      counters.throttled++;
      this.#down.push(slowDown);
    } else if (this.#fate === 'cut') {
      if (this.#cutLeft <= 0) return;
      this.#up.push(bytes.subarray(0, this.#cutLeft));
      this.#cutLeft -= bytes.length;
      if (this.#cutLeft > 0 && this.#bodyLeft > 0) return;
      this.#cutLeft = 0;
      counters.cut++;
      void this.#up.drained().then(() => this.reset());
    } else {
      this.#up.push(bytes);
    }
  }

  #fromServer(bytes: Buffer): void {
    if (this.#fate !== 'dropResponse') return this.#down.push(bytes);
    this.#shared.counters.dropped++;
    this.reset();
  }
}

/** Bytes on their way: each arrives `latencyMs` after it came, in order, and none while the direction is held. */
class DelayLine {
  readonly #shared: Shared;
  readonly #way: { readonly from: Socket; readonly to: Socket; readonly direction: 'up' | 'down' };
  #tail: Promise<void> = Promise.resolve();
  #heldBytes = 0;

  constructor(shared: Shared, way: { from: Socket; to: Socket; direction: 'up' | 'down' }) {
    this.#shared = shared;
    this.#way = way;
  }

  push(bytes: Buffer): void {
    const { from, to } = this.#way;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > heldBytesMax) from.pause();
    this.#then(() => {
      this.#heldBytes -= bytes.length;
      if (this.#heldBytes <= heldBytesMax && from.isPaused()) from.resume();
      if (!to.destroyed) to.write(bytes);
    });
  }

  end(): void {
    this.#then(() => {
      this.#way.to.end();
      // The other direction has nobody left to hear it.
      setTimeout(() => this.#way.to.destroy(), 1_000).unref();
    });
  }

  drained(): Promise<void> {
    return this.#tail;
  }

  #then(deliver: () => void): void {
    const { latencyMs = 0 } = this.#shared.faults;
    const arrived = latencyMs === 0 ? null : new Promise((resolve) => setTimeout(resolve, latencyMs));
    const before = this.#tail;
    this.#tail = (async () => {
      await before;
      await arrived;
      while (this.#shared.holds(this.#way.direction)) await this.#shared.untilChanged();
      deliver();
    })();
  }
}
