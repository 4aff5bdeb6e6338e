/**
 * An open loop of reads and writes through all servers of a cluster, with a check of every answer. A namespace has one write on its way at
 * a time: a document of its own, and the register, which holds its number. So a read knows what it has to find:
 *
 * - a document whose write was acknowledged before the read began;
 * - in the register that number at least, and none that nobody has begun to write.
 */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiClient, ApiFailure, idleConnectionMs } from './api-client.ts';
import { Availability } from './availability.ts';
import { eventually } from './eventually.ts';

export interface ClusterLoadOptions {
  readonly key: string;
  /** What the names of its namespaces begin with; loads beside each other differ. */
  readonly name: string;
  readonly namespaces: number;
  /** Between two requests to one namespace, in milliseconds, on average. */
  readonly everyMs: number;
  readonly random: () => number;
  /**
   * How often a request is asked at most, as clients are told to: again after 429, 503, or no answer. Reads change nothing, and a
   * write that is repeated puts the same documents. Default 1.
   */
  readonly triesMax?: number;
  /** Addresses of the servers that may be asked now. */
  readonly urls: () => readonly string[];
}

interface Space {
  readonly name: string;
  begun: number;
  acknowledged: number;
  /** Numbers that were acknowledged. */
  readonly written: number[];
  isWriting: boolean;
  /** A read that failed is about to be tried again; the same of writes. */
  isReadAgain: boolean;
  isWrittenAgain: boolean;
  readonly reads: Availability;
  readonly writes: Availability;
}

/** What was seen of one namespace since `measure`, in milliseconds. */
export interface SpaceFigures {
  readonly name: string;
  /** The longest time from a read to the next answer of one. */
  readonly readGapMs: number;
  /** The same of writes. */
  readonly writeGapMs: number;
  /** How long each read took that was answered. */
  readonly readsMs: readonly number[];
}

const register = 'last';
const writtenShare = 0.4;
/** A namespace that did not answer is asked the same again so soon, so that the end of it is seen when it comes. */
const againMs = 200;
/** Namespaces whose first writes are on their way at once. */
const filledAtOnce = 8;

export class ClusterLoad {
  readonly #options: ClusterLoadOptions;
  readonly #spaces: readonly Space[];
  readonly #clients = new Map<string, ApiClient>();
  readonly #onTheWay = new Set<Promise<void>>();
  readonly #failures = new Map<string, number>();
  readonly #sentences = new Map<string, number>();
  readonly #wrong: string[] = [];
  #answered = 0;
  #askedAgain = 0;
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ClusterLoadOptions) {
    this.#options = options;
    this.#spaces = Array.from({ length: options.namespaces }, (_, at) => ({
      name: `${options.name}-${at}`,
      begun: 0,
      acknowledged: 0,
      written: [],
      isWriting: false,
      isReadAgain: false,
      isWrittenAgain: false,
      reads: new Availability(),
      writes: new Availability(),
    }));
  }

  /** Requests that succeeded. */
  get answered(): number {
    return this.#answered;
  }

  /** Requests that were asked again. */
  get askedAgain(): number {
    return this.#askedAgain;
  }

  /** Requests that failed since `measure`, by the code of their answer; `no answer` where the connection ended. */
  get failures(): ReadonlyMap<string, number> {
    return this.#failures;
  }

  /** Requests that failed since `measure`, by the server that was asked and the sentence of its answer. */
  get sentences(): ReadonlyMap<string, number> {
    return this.#sentences;
  }

  /** Answers that can't be right. */
  get wrong(): readonly string[] {
    return this.#wrong;
  }

  /** Makes the first write of each namespace: when it resolves, all of them are there. */
  async fill(): Promise<void> {
    const left = [...this.#spaces];
    const fillSome = async () => {
      for (let space = left.pop(); space !== undefined; space = left.pop())
        await this.#write(space, this.#client());
    };
    await Promise.all(Array.from({ length: filledAtOnce }, fillSome));
    if (this.#failures.size > 0) throw new Error(`not filled: ${[...this.#failures.keys()]}`);
  }

  begin(): void {
    this.#stopped = false;
    this.measure();
    this.#running = this.#run();
  }

  /** Resolves when everything that was asked is answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    await Promise.all(this.#onTheWay);
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  /** From now on all figures are counted anew. */
  measure(): void {
    this.#failures.clear();
    this.#sentences.clear();
    for (const { reads, writes } of this.#spaces) for (const each of [reads, writes]) each.restart();
  }

  /** What was seen since `measure`. */
  figures(): readonly SpaceFigures[] {
    return this.#spaces.map(({ name, reads, writes }) => ({
      name,
      readGapMs: reads.longestMs,
      writeGapMs: writes.longestMs,
      readsMs: reads.tookMs,
    }));
  }

  /** The longest time since `measure` for which reads of each namespace had no answer, in milliseconds, sorted. */
  gaps(): readonly number[] {
    return this.#spaces.map(({ reads }) => reads.longestMs).sort((a, b) => a - b);
  }

  /** Reads every namespace, one each `everyMs`. Resolves once each has answered a read since this was called. */
  async readEach(everyMs: number): Promise<void> {
    const before = this.#spaces.map(({ reads }) => reads.answers);
    for (const space of this.#spaces) {
      this.#track(this.#read(space, this.#client()));
      await sleep(everyMs);
    }
    const areRead = () => this.#spaces.every(({ reads }, at) => reads.answers > (before[at] ?? 0));
    await eventually(areRead, 'each namespace is read again');
  }

  /** Reads everything through one server, and answers the acknowledged writes that are not there. */
  async lostAt(url: string): Promise<readonly string[]> {
    const client = this.#clientOf(url);
    const lost: string[] = [];
    for (const { name, written } of this.#spaces) {
      const ids = new Set((await client.searchAll(name)).map(({ id }) => id));
      lost.push(...written.filter((number) => !ids.has(idOf(number))).map((number) => `${name}/${number}`));
    }
    return lost;
  }

  async #run(): Promise<void> {
    const { everyMs, random } = this.#options;
    const pauseMs = everyMs / this.#spaces.length;
    for (let next = performance.now(); !this.#stopped; next += pauseMs) {
      const space = this.#spaces[Math.floor(random() * this.#spaces.length)];
      if (space !== undefined) this.#ask(space);
      const leftMs = next - performance.now();
      if (leftMs > 1) await sleep(leftMs);
    }
  }

  #ask(space: Space): void {
    const { random } = this.#options;
    const isWrite = random() < writtenShare && !space.isWriting;
    this.#track(isWrite ? this.#write(space, this.#client()) : this.#read(space, this.#client()));
  }

  async #write(space: Space, client: ApiClient): Promise<void> {
    const number = ++space.begun;
    space.isWriting = true;
    try {
      const text = String(number);
      const docs = [
        { id: idOf(number), text },
        { id: register, text },
      ];
      await space.writes.asked(() => this.#asked(() => client.put(space.name, docs)));
      this.#answered++;
      space.acknowledged = number;
      space.written.push(number);
    } catch (error) {
      this.#fail(error, client);
      this.#writeAgain(space);
    } finally {
      space.isWriting = false;
    }
  }

  async #read(space: Space, client: ApiClient): Promise<void> {
    const { name, acknowledged, written } = space;
    const isRegister = this.#options.random() < 1 / 2 || written.length === 0;
    const id = isRegister
      ? register
      : idOf(written[Math.floor(this.#options.random() * written.length)] ?? 0);
    try {
      const { text } = await space.reads.asked(() => this.#asked(() => client.get(name, id)));
      this.#answered++;
      if (!isRegister && idOf(Number(text)) !== id) this.#wrong.push(`${name}/${id} holds ${text}`);
      if (isRegister && (Number(text) < acknowledged || Number(text) > space.begun))
        this.#wrong.push(`${name}: ${text} was read when ${acknowledged} was acknowledged, at ${client.url}`);
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 404)
        this.#wrong.push(`${name}/${id} was not found, at ${client.url}`);
      this.#fail(error, client);
      this.#readAgain(space);
    }
  }

  /** One such read at a time. */
  #readAgain(space: Space): void {
    if (this.#stopped || space.isReadAgain) return;
    space.isReadAgain = true;
    setTimeout(() => {
      space.isReadAgain = false;
      if (!this.#stopped) this.#track(this.#read(space, this.#client()));
    }, againMs);
  }

  /** Another write, as the one that failed may have been written. */
  #writeAgain(space: Space): void {
    if (this.#stopped || space.isWrittenAgain) return;
    space.isWrittenAgain = true;
    setTimeout(() => {
      space.isWrittenAgain = false;
      if (!this.#stopped && !space.isWriting) this.#track(this.#write(space, this.#client()));
    }, againMs);
  }

  #track(asked: Promise<void>): void {
    this.#onTheWay.add(asked);
    void asked.finally(() => this.#onTheWay.delete(asked));
  }

  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    const { triesMax = 1 } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        return await ask();
      } catch (error) {
        const mayBeRepeated = !(error instanceof ApiFailure) || error.status === 429 || error.status === 503;
        if (tries === triesMax || !mayBeRepeated) throw error;
        this.#askedAgain++;
        await sleep(1_000 * (error instanceof ApiFailure ? (error.body.retry_after ?? 1) : 0.1));
      }
    }
  }

  #fail(error: unknown, { url }: ApiClient): void {
    const kind = error instanceof ApiFailure ? `${error.status} ${error.code}` : 'no answer';
    countOne(this.#failures, kind);
    countOne(this.#sentences, `${url}: ${error instanceof ApiFailure ? error.body.error : kind}`);
  }

  #client(): ApiClient {
    const urls = this.#options.urls();
    const url = urls[Math.floor(this.#options.random() * urls.length)];
    if (url === undefined) throw new Error('no server may be asked');
    return this.#clientOf(url);
  }

  #clientOf(url: string): ApiClient {
    const known = this.#clients.get(url);
    if (known !== undefined) return known;
    // Connections have no bound: requests that wait for one owner would hold all of them, and reads of other owners' namespaces would wait too.
    const agent = new Agent({ keepAlive: true, timeout: idleConnectionMs });
    const client = new ApiClient(url, this.#options.key, agent);
    this.#clients.set(url, client);
    return client;
  }
}

const idOf = (number: number) => `w${number}`;

function countOne(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
