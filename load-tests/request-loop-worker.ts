import { parentPort, workerData } from 'node:worker_threads';
import { type ClientAnswer, Connections } from './measured-server.ts';
import type { LoopRequest, RequestLoop, RequestStream, StreamResult } from './request-loop.ts';

/**
 * The thread of a request loop: requests begin at their intended times whatever became of those before, and each latency
 * counts from the intended time.
 */
const tickMs = 1;
/** Longer than any deadline of the server: what is not answered then never is. */
const lastAnswerMs = 70_000;
/** Before a request is asked again, where the answer does not say how long, in milliseconds. */
const againMs = 100;

const loop = workerData as RequestLoop;
const { triesMax = 1 } = loop;
const clients = loop.clients.map((key) => new Connections(loop.url, key, loop.connections));
const beganAt = performance.now();

class Stream {
  readonly #of: RequestStream;
  readonly #bodies: readonly (Buffer | null)[];
  readonly #latenciesMs: number[] = [];
  readonly #lateMs: number[] = [];
  readonly #failures = new Map<string, number>();
  readonly #notWarm = new Map<string, number>();
  readonly #due: number;
  #sent = 0;
  #askedAgain = 0;
  #answered = 0;

  constructor(of: RequestStream) {
    this.#of = of;
    this.#due = Math.ceil(of.ratePerSecond * loop.seconds);
    this.#bodies = of.requests.map(({ body }) => (body === undefined ? null : Buffer.from(body)));
  }

  get isOver(): boolean {
    return this.#answered >= this.#due;
  }

  sendDue(now: number): void {
    for (; this.#sent < this.#due; this.#sent++) {
      const intendedAt = beganAt + (this.#sent * 1_000) / this.#of.ratePerSecond;
      if (intendedAt > now) return;
      this.#lateMs.push(now - intendedAt);
      const at = this.#sent % this.#of.requests.length;
      const request = this.#of.requests[at];
      if (request === undefined) throw new Error(`${this.#of.kind} has no requests`);
      void this.#send(request, this.#bodies[at] ?? null, intendedAt);
    }
  }

  async #send(request: LoopRequest, body: Buffer | null, intendedAt: number): Promise<void> {
    try {
      this.#note(await this.#answer(request, body));
      this.#latenciesMs.push(performance.now() - intendedAt);
    } catch (error) {
      count(this.#failures, `no answer: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
    }
    this.#answered++;
  }

  /** The first answer that is none to ask again, or the last one. */
  async #answer({ client, method, path, headers }: LoopRequest, body: Buffer | null): Promise<ClientAnswer> {
    const connections = clients[client];
    if (connections === undefined) throw new Error(`there is no client ${client}`);
    for (let tries = 1; ; tries++) {
      let waitMs = againMs;
      try {
        const answer = await connections.send(method, path, body, undefined, headers);
        if (tries >= triesMax || (answer.status !== 429 && answer.status !== 503)) return answer;
        waitMs = Math.max(answer.retryAfterMs, againMs);
      } catch (error) {
        if (tries >= triesMax) throw error;
      }
      this.#askedAgain++;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  #note({ status, text }: ClientAnswer): void {
    if (status >= 400) count(this.#failures, `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`);
    else if (text.includes('"partial":true')) count(this.#failures, `${status} partial`);
    else if (text.includes('"timed_out":true')) count(this.#failures, `${status} timed out`);
    // A tool's refusal is an answer like any other to HTTP.
    else if (text.includes('"isError":true')) count(this.#failures, `${status} refused tool call`);
    const temperature = /"temperature":"(local|cold)"/.exec(text)?.[1];
    if (temperature !== undefined) count(this.#notWarm, temperature);
  }

  result(): StreamResult {
    const unanswered = this.#due - this.#answered;
    if (unanswered > 0) this.#failures.set('no answer', (this.#failures.get('no answer') ?? 0) + unanswered);
    return {
      kind: this.#of.kind,
      latenciesMs: this.#latenciesMs,
      sent: this.#due,
      askedAgain: this.#askedAgain,
      lateMs: this.#lateMs,
      failures: Object.fromEntries(this.#failures),
      notWarm: Object.fromEntries(this.#notWarm),
    };
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

const streams = loop.streams.map((stream) => new Stream(stream));
const timer = setInterval(() => {
  const now = performance.now();
  for (const stream of streams) stream.sendDue(now);
  const isLate = now - beganAt > loop.seconds * 1_000 + lastAnswerMs;
  if (!isLate && streams.some((stream) => !stream.isOver)) return;
  clearInterval(timer);
  const results = streams.map((stream) => stream.result());
  for (const client of clients) client.close();
  parentPort?.postMessage(results);
}, tickMs);
