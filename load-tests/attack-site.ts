import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { idleConnectionMs } from '../test/support/api-client.ts';
import { sleep } from './judge.ts';

/** What an attacker has: keys of their tenants, an end, and a count of what became of everything that was asked. */
export interface SiteOptions {
  readonly url: string;
  /** The keys of the attacker's tenants. */
  readonly keys: readonly string[];
  /** Allowances are lifted: data may be as large as the server takes, else it must fit 1 % of the free plan. */
  readonly isLarge: boolean;
}

/** A request of an attack. */
export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: string | Buffer;
  /** Which tenant: the first by default. Null sends no credentials. */
  readonly tenant?: number | null;
  /** The client goes away after so long, whatever comes. */
  readonly leaveAfterMs?: number;
}

/** What a held connection sends and reads. */
export interface Held {
  readonly path: string;
  readonly tenant: number;
  /** As the head declares it. */
  readonly bodyBytes: number;
  /** Sent as fast as the server takes it; then no more comes, or so much a second. */
  readonly sentBytes: number;
  readonly trickleBytesPerSecond?: number;
  /** A whole body, in place of the bytes above. */
  readonly body?: string;
  /** What is read of the answer in a second; none is read where it is 0, all of it where it is absent. */
  readonly readBytesPerSecond?: number;
}

const requestMsMax = 60_000;
/** After a refusal, so that an attack does not only measure refusals, and after a connection that failed. */
const pauseMs = 100;
/** How often a write of a preparation is sent, for five minutes in all: a gigabyte has to be flushed meanwhile, and there is no queue. */
const triesMax = 600;
/** Paced requests that are under way at most: more that are due than this are not sent, so that an attack stays bounded. */
const underWayMax = 200;
const filler = Buffer.alloc(256 * 1_024, 0x20);

/** Bounded in time: everything stops when `isOver`. Only talks to the server that it is given. */
export class AttackSite {
  readonly isLarge: boolean;
  readonly tenants: number;
  readonly outcomes = new Map<string, number>();
  /** What the first refusal of each outcome said: an attack that is refused for another reason than its own is none. */
  readonly said = new Map<string, string>();
  /** The processor time of the answers, as the server counts it. */
  cpuMs = 0;
  #isOver = false;
  readonly #keys: readonly string[];
  readonly #hostname: string;
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256, timeout: idleConnectionMs });
  readonly #held = new Set<Socket>();

  constructor({ url, keys, isLarge }: SiteOptions) {
    const { hostname, port } = new URL(url);
    if (hostname !== '127.0.0.1')
      throw new Error(`attacks are for a server of this machine, not ${hostname}`);
    this.#hostname = hostname;
    this.#port = Number(port);
    this.#keys = keys;
    this.isLarge = isLarge;
    this.tenants = keys.length;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Lets everything go that is held; loops end with their next turn. */
  end(): void {
    this.#isOver = true;
    for (const socket of this.#held) socket.destroy();
    this.#agent.destroy();
  }

  count(outcome: string, by = 1): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + by);
  }

  /** Data that an attack needs: rejects where it is not accepted. Full mailboxes, rates and memory are waited for. */
  async prepare(ask: Ask): Promise<void> {
    for (let tries = 0; ; tries++) {
      // A server that refuses a body before it has come closes the connection.
      const cut = { status: 429, text: 'the connection was cut' };
      const { status, text } = await this.#send(ask).catch(() => cut);
      if (status < 300) return;
      if (status !== 429 || tries === triesMax)
        throw new Error(`${ask.path}: ${status} ${text.slice(0, 500)}`);
      await sleep(pauseMs * 5);
    }
  }

  prepareDocs(namespace: string, docs: readonly object[], tenant = 0): Promise<void> {
    return this.prepare({ path: `/v1/namespaces/${namespace}/docs`, body: JSON.stringify({ docs }), tenant });
  }

  /** Counts what became of it. Resolves with whether it was answered and not refused. */
  async ask(ask: Ask): Promise<boolean> {
    try {
      const { status, text } = await this.#send(ask);
      const code = /"code":"(\w+)"/.exec(text.slice(0, 2_000))?.[1];
      const timedOut = text.slice(-2_000).includes('"timed_out":true') ? ' timed out' : '';
      const outcome = code === undefined ? `${status}${timedOut}` : `${status} ${code}`;
      this.count(outcome);
      if (code !== undefined && !this.said.has(outcome)) this.said.set(outcome, text.slice(0, 300));
      this.cpuMs += Number(/"cpu_ms":([\d.]+)/.exec(text.slice(-2_000))?.[1] ?? 0);
      return status < 400;
    } catch (error) {
      const left = (error as Error).message === 'left';
      this.count(left ? 'left' : this.#isOver ? 'under way at the end' : 'no answer');
      return left;
    }
  }

  /** So many clients, each of which asks one thing after the other until it is over. `at` counts all asks. */
  async loops(clients: number, askAt: (at: number) => Ask): Promise<void> {
    let at = 0;
    const run = async () => {
      while (!this.#isOver) if (!(await this.ask(askAt(at++)))) await sleep(pauseMs);
    };
    await Promise.all(Array.from({ length: clients }, run));
  }

  /** So many a second, whatever became of those before. */
  async paced(perSecond: number, askAt: (at: number) => Ask): Promise<void> {
    const beganAt = performance.now();
    const underWay = new Set<Promise<unknown>>();
    for (let at = 0; !this.#isOver; at++) {
      const dueInMs = beganAt + (at * 1_000) / perSecond - performance.now();
      if (dueInMs > 0) await sleep(dueInMs);
      if (this.#isOver || underWay.size >= underWayMax) continue;
      const asked: Promise<unknown> = this.ask(askAt(at)).finally(() => underWay.delete(asked));
      underWay.add(asked);
    }
    await Promise.all(underWay);
  }

  /** So many connections that hold what they can; one that the server ends is made anew. */
  async hold(connections: number, heldAt: (at: number) => Held): Promise<void> {
    const run = async (at: number) => {
      for (; !this.#isOver; await sleep(pauseMs)) this.count(await this.#holdOne(heldAt(at)));
    };
    await Promise.all(Array.from({ length: connections }, (_, at) => run(at)));
  }

  #send({ method = 'POST', path, body, tenant = 0, leaveAfterMs }: Ask): Promise<Answered> {
    const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? null);
    const headers: Record<string, string | number> = {};
    if (tenant !== null) headers.authorization = `Bearer ${this.#keys[tenant % this.tenants]}`;
    if (bytes !== null) headers['content-length'] = bytes.byteLength;
    const to = { hostname: this.#hostname, port: this.#port, agent: this.#agent, method, path, headers };
    return new Promise((resolve, reject) => {
      let answered = false;
      const leave: ReturnType<typeof setTimeout> = setTimeout(() => {
        reject(new Error(leaveAfterMs === undefined ? 'no answer' : 'left'));
        request.destroy();
      }, leaveAfterMs ?? requestMsMax);
      const request: ClientRequest = httpRequest(to, (answer) => {
        answered = true;
        answeredOf(answer)
          .then(resolve, reject)
          .finally(() => clearTimeout(leave));
      });
      // What was not sent when the answer came may fail: the answer counts.
      request.on('error', (error) => {
        if (answered) return;
        clearTimeout(leave);
        reject(error);
      });
      request.end(bytes ?? undefined);
    });
  }

  /** Resolves when the server has ended it, with the status that it gave. */
  #holdOne(held: Held): Promise<string> {
    const socket = connect({ host: this.#hostname, port: this.#port });
    this.#held.add(socket);
    let status = '';
    let rest = held.body === undefined ? held.sentBytes : 0;
    const sendRest = () => {
      while (rest > 0 && !socket.destroyed) {
        const piece = filler.subarray(0, Math.min(rest, filler.length));
        rest -= piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.once('connect', () => {
      const length = held.body?.length ?? held.bodyBytes;
      const head = `POST ${held.path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${this.#keys[held.tenant % this.tenants]}\r\nContent-Length: ${length}\r\n\r\n`;
      socket.write(head + (held.body ?? ''));
      sendRest();
      if (held.readBytesPerSecond !== undefined) socket.pause();
    });
    socket.on('drain', sendRest);
    const timer = setInterval(() => {
      if (held.trickleBytesPerSecond !== undefined && rest === 0 && !socket.destroyed)
        socket.write(filler.subarray(0, held.trickleBytesPerSecond));
      if (held.readBytesPerSecond !== undefined && held.readBytesPerSecond > 0) {
        socket.resume();
        setTimeout(() => socket.pause(), 1);
      }
    }, 1_000);
    socket.on('data', (bytes: Buffer) => {
      if (status === '') status = /^HTTP\/1.1 (\d+)/.exec(bytes.toString('latin1', 0, 20))?.[1] ?? '?';
      const code = /"code":"(\w+)"/.exec(bytes.toString('latin1', 0, 2_000))?.[1];
      if (code !== undefined) status = `${status} ${code}`;
      if (held.readBytesPerSecond === undefined && Number(status.slice(0, 3)) < 300) socket.end();
    });
    socket.on('error', () => undefined);
    return new Promise((resolve) => {
      socket.once('close', () => {
        clearInterval(timer);
        this.#held.delete(socket);
        resolve(
          this.#isOver ? `held to the end ${status}`.trimEnd() : `ended by the server ${status}`.trimEnd(),
        );
      });
    });
  }
}

interface Answered {
  readonly status: number;
  readonly text: string;
}

async function answeredOf(answer: IncomingMessage): Promise<Answered> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return { status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString('latin1') };
}
