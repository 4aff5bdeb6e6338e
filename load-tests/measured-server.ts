import { randomUUID } from 'node:crypto';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { idleConnectionMs } from '../test/support/api-client.ts';
import { type RunningServer, type StartOptions, startServer } from './server.ts';

/** A server and the key of somebody who signed up there. */
export interface MeasuredServer {
  readonly process: RunningServer;
  readonly key: string;
}

/** Starts a server; `start` is for several that are measured as one. */
export async function startMeasured(
  options: StartOptions = {},
  start = startServer,
): Promise<MeasuredServer> {
  const server = await start(options);
  const client = new Connections(server.url, '', 1);
  // A bucket may hold the people of earlier runs.
  const person = { email: `load-${randomUUID()}@example.com`, name: 'Load', password: 'correct horse' };
  const answer = await client.post('/v1/signup', Buffer.from(JSON.stringify(person)));
  client.close();
  return { process: server, key: (JSON.parse(answer) as { key: string }).key };
}

/** Stops it and starts it again on the same folder. */
export async function restartMeasured(
  { process: server, key }: MeasuredServer,
  options: Omit<StartOptions, 'folder'> = {},
  start = startServer,
): Promise<MeasuredServer> {
  await server.stop();
  return { process: await start({ ...options, folder: server.folder }), key };
}

export interface ClientAnswer {
  readonly status: number;
  readonly text: string;
  /** What a refusal asks the client to wait; 0 where it says nothing. */
  readonly retryAfterMs: number;
}

/**
 * A lean client of a fixed number of connections that stay open: what it costs comes off the server's two cores, so it
 * does no more than write a body and read an answer.
 */
export class Connections {
  readonly #agent: Agent;
  readonly #hostname: string;
  readonly #port: number;
  readonly #key: string;

  constructor(url: string, key: string, count: number) {
    const { hostname, port } = new URL(url);
    this.#hostname = hostname;
    this.#port = Number(port);
    this.#key = key;
    this.#agent = new Agent({ keepAlive: true, maxSockets: count, timeout: idleConnectionMs });
  }

  /** The answer's text. Rejects with it for anything but success: nothing but success is measured. */
  async post(path: string, body: Uint8Array): Promise<string> {
    return successOf(`POST ${path}`, await this.send('POST', path, body));
  }

  async get(path: string): Promise<string> {
    return successOf(`GET ${path}`, await this.send('GET', path, null));
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Whatever the answer is. `key` is used in place of the client's own, `more` are further headers. */
  send(
    method: string,
    path: string,
    body: Uint8Array | null,
    key = this.#key,
    more: Readonly<Record<string, string>> = {},
  ): Promise<ClientAnswer> {
    const headers: Record<string, string | number> = { ...more, authorization: `Bearer ${key}` };
    if (key === '') delete headers.authorization;
    if (body !== null) headers['content-length'] = body.byteLength;
    const to = { hostname: this.#hostname, port: this.#port, agent: this.#agent, method, path, headers };
    return new Promise((resolve, reject) => {
      const request = httpRequest(to, (answer) => {
        const retryAfterMs = Number(answer.headers['retry-after'] ?? 0) * 1_000;
        textOf(answer).then(
          (text) => resolve({ status: answer.statusCode ?? 0, text, retryAfterMs }),
          reject,
        );
      });
      // A second one may follow when the server has closed the connection.
      request.on('error', reject);
      request.end(body ?? undefined);
    });
  }
}

function successOf(what: string, { status, text }: ClientAnswer): string {
  if (status < 300) return text;
  throw new Error(`${what}: ${status} ${text.slice(0, 500)}`);
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}
