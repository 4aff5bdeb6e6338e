import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { type RunningServer, type StartOptions, startServer } from './server.ts';

/** A server and the key of somebody who signed up there. */
export interface MeasuredServer {
  readonly process: RunningServer;
  readonly key: string;
}

export async function startMeasured(options: StartOptions = {}): Promise<MeasuredServer> {
  const server = await startServer(options);
  const client = new Connections(server.url, '', 1);
  const person = { email: 'load@example.com', name: 'Load', password: 'correct horse' };
  const answer = await client.post('/v1/signup', Buffer.from(JSON.stringify(person)));
  client.close();
  return { process: server, key: (JSON.parse(answer) as { key: string }).key };
}

/** Stops it and starts it again on the same folder. */
export async function restartMeasured({ process: server, key }: MeasuredServer): Promise<MeasuredServer> {
  await server.stop();
  return { process: await startServer({ folder: server.folder }), key };
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
    this.#agent = new Agent({ keepAlive: true, maxSockets: count });
  }

  /** The answer's text. Rejects with it for anything but success: nothing but success is measured. */
  post(path: string, body: Uint8Array): Promise<string> {
    return this.#send('POST', path, body);
  }

  get(path: string): Promise<string> {
    return this.#send('GET', path, null);
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, body: Uint8Array | null): Promise<string> {
    const headers: Record<string, string | number> = { authorization: `Bearer ${this.#key}` };
    if (this.#key === '') delete headers.authorization;
    if (body !== null) headers['content-length'] = body.byteLength;
    const to = { hostname: this.#hostname, port: this.#port, agent: this.#agent, method, path, headers };
    return new Promise((resolve, reject) => {
      const request = httpRequest(to, (answer) => {
        textOf(answer).then((text) => {
          const status = answer.statusCode ?? 0;
          if (status < 300) resolve(text);
          else reject(new Error(`${method} ${path}: ${status} ${text.slice(0, 500)}`));
        }, reject);
      });
      request.once('error', reject);
      request.end(body ?? undefined);
    });
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}
