import assert from 'node:assert/strict';
import type { NewKey } from '../../protocol/account.ts';
import { ApiClient } from './api-client.ts';
import { answerOrNull, jsonOf, ModelWriter, outcomeOf } from './model.ts';
import type { ServerProcess } from './server-process.ts';

const heavyPace = 10;
/** Every check asks for every key that was ever made. */
const keysPace = 4;
/** Each costs a password's hash now and another one later: where runs have a pace, every one makes one person. */
const peoplePerRun = 2;
/** With the pauses between them at least ten seconds. */
const settleTriesMax = 200;

/** Everything that writes at once: documents in shared namespaces, new namespaces, keys, people. */
export class Load {
  readonly key: string;
  readonly #random: () => number;
  readonly #writers: readonly ModelWriter[];
  /** Bodies of megabytes: blobs in the log, and memtables that fill while one looks on. */
  readonly #bulk: ModelWriter;
  /** Whether the next run writes megabytes as well. */
  isHeavy = false;
  readonly #spaces = new Map<string, { documents: number; state: 'there' | 'gone' | 'unknown' }>();
  readonly #keys = new Map<string, 'live' | 'revoked' | 'unknown'>();
  readonly #people: string[] = [];
  #round = 1;
  #stopped = false;
  readonly #paceMs: number;

  private constructor(key: string, random: () => number, paceMs: number) {
    this.key = key;
    this.#paceMs = paceMs;
    this.#random = random;
    this.#bulk = new ModelWriter({
      name: 'bulk',
      namespace: 'bulk',
      random,
      ids: 60,
      documentsMax: 40,
      textBytes: 150_000,
    });
    this.#writers = Array.from({ length: 10 }, (_, i) => {
      const name = `w${i}`;
      const isHeavy = i === 9;
      return new ModelWriter({
        name,
        namespace: `shared-${i % 3}`,
        random,
        ids: isHeavy ? 20 : 200,
        documentsMax: isHeavy ? 6 : 20,
        textBytes: isHeavy ? 100_000 : 100,
      });
    });
  }

  /** `paceMs` lie between a writer's two requests; with 0 it takes all that the machine has. */
  static async begin(server: ServerProcess, random: () => number, paceMs = 0): Promise<Load> {
    const api = new ApiClient(server.url);
    const { key } = await api.signup('load@example.com');
    api.close();
    return new Load(key, random, paceMs);
  }

  /** Resolves when all of it has stopped: the server went away, or `stop` was called. */
  async run(api: ApiClient): Promise<void> {
    const stopped = () => this.#stopped;
    // Bodies of half a megabyte come seldom where others come at a pace.
    const pace = (writer: ModelWriter) =>
      this.#paceMs * ((writer.options.textBytes ?? 0) > 1_000 ? heavyPace : 1);
    const writers = this.#writers.map((writer) => writer.run(api, stopped, pace(writer)));
    if (this.isHeavy) writers.push(this.#bulk.run(api, stopped, this.#paceMs));
    await Promise.all([...writers, this.#makeSpaces(api), this.#makeKeys(api), this.#makePeople(api)]);
    api.close();
  }

  /** So many writes more, or as many as a slow machine gets done in two seconds. */
  async untilAcknowledged(more: number): Promise<void> {
    const target = this.#acknowledged() + more;
    const deadline = performance.now() + 2_000;
    while (this.#acknowledged() < target && performance.now() < deadline) await sleep(2);
  }

  /** So many bodies of megabytes more, or as many as a slow machine gets done in ten seconds. */
  async untilBulkAcknowledged(more: number): Promise<void> {
    const target = this.#bulk.acknowledged + more;
    const deadline = performance.now() + 10_000;
    while (this.#bulk.acknowledged < target && performance.now() < deadline) await sleep(2);
  }

  stop(): void {
    this.#stopped = true;
  }

  nextRound(): void {
    this.#round++;
    this.#stopped = false;
  }

  /**
   * Waits until the outcome of everything that was sent is settled: writes of a namespace are applied in their order,
   * so one that is acknowledged now speaks for all before it.
   */
  async settle(api: ApiClient): Promise<void> {
    const namespaces = new Set(this.#writers.map((writer) => writer.options.namespace));
    const docs = [{ id: 'settled', text: 'settled' }];
    const answers = [...namespaces].map(async (namespace) => {
      for (let tries = 0; tries < settleTriesMax; tries++) {
        const answer = await answerOrNull(api, 'POST', `/v1/namespaces/${namespace}/docs`, { docs });
        if (outcomeOf(answer) === 'acknowledged') return;
        await sleep(50);
      }
      assert.fail(`${namespace} takes no writes`);
    });
    await Promise.all(answers);
  }

  async check(api: ApiClient): Promise<void> {
    for (const writer of [...this.#writers, this.#bulk]) await writer.check(api);
    for (const [name, { documents, state }] of this.#spaces)
      await checkSpace(api, { name, documents, state });
    for (const [key, state] of this.#keys) {
      const { status } = await api.as(key).request('GET', '/v1/me');
      if (state !== 'unknown')
        assert.equal(status, state === 'live' ? 200 : 401, `a ${state} key answers ${status}`);
    }
    for (const email of this.#people.splice(0)) await api.login(email);
    this.#spaces.clear();
    api.close();
  }

  summary(): string {
    const refused = this.#writers.reduce((sum, writer) => sum + writer.refused, 0);
    return `${this.#acknowledged()} writes acknowledged, ${refused} refused, ${this.#keys.size} keys`;
  }

  #acknowledged(): number {
    return [...this.#writers, this.#bulk].reduce((sum, writer) => sum + writer.acknowledged, 0);
  }

  /** Namespaces that their first write makes, some deleted again. */
  async #makeSpaces(api: ApiClient): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      if (this.#paceMs > 0) await sleep(this.#paceMs);
      const name = `space-${this.#round}-${i}`;
      const documents = 1 + Math.floor(this.#random() * 30);
      const docs = Array.from({ length: documents }, (_, n) => ({ id: `d${n}`, text: name }));
      this.#spaces.set(name, { documents, state: 'unknown' });
      const made = outcomeOf(await answerOrNull(api, 'POST', `/v1/namespaces/${name}/docs`, { docs }));
      if (made === 'unknown') return;
      this.#spaces.set(name, { documents, state: made === 'acknowledged' ? 'there' : 'gone' });
      if (made === 'refused' || this.#random() < 0.6) continue;
      this.#spaces.set(name, { documents, state: 'unknown' });
      const gone = outcomeOf(await answerOrNull(api, 'DELETE', `/v1/namespaces/${name}`, undefined));
      if (gone === 'unknown') return;
      this.#spaces.set(name, { documents, state: gone === 'acknowledged' ? 'gone' : 'there' });
    }
  }

  async #makeKeys(api: ApiClient): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      if (this.#paceMs > 0) await sleep(this.#paceMs * keysPace);
      const answer = await answerOrNull(api, 'POST', '/v1/keys', { name: `key ${i}` });
      const outcome = outcomeOf(answer);
      if (outcome === 'unknown') return;
      if (outcome === 'refused') continue;
      const { key, id } = jsonOf(answer) as NewKey;
      this.#keys.set(key, 'live');
      // Known to the front before it is revoked.
      if ((await answerOrNull(api.as(key), 'GET', '/v1/me', undefined)) === null) return;
      if (this.#random() < 0.5) continue;
      this.#keys.set(key, 'unknown');
      const revoked = outcomeOf(await answerOrNull(api, 'DELETE', `/v1/keys/${id}`, undefined));
      if (revoked === 'unknown') return;
      this.#keys.set(key, revoked === 'acknowledged' ? 'revoked' : 'live');
    }
  }

  async #makePeople(api: ApiClient): Promise<void> {
    const people = this.#paceMs > 0 ? 1 : peoplePerRun;
    for (let i = 0; i < people && !this.#stopped; i++) {
      const email = `p${i}-of-${this.#round}@example.com`;
      const body = { email, name: 'Somebody', password: 'correct horse' };
      const outcome = outcomeOf(await answerOrNull(api.as(null), 'POST', '/v1/signup', body));
      if (outcome === 'unknown') return;
      if (outcome === 'acknowledged') this.#people.push(email);
    }
  }
}

async function checkSpace(
  api: ApiClient,
  { name, documents, state }: { name: string; documents: number; state: 'there' | 'gone' | 'unknown' },
): Promise<void> {
  const answer = await api.request('POST', `/v1/namespaces/${name}/count`, { body: {} });
  const count = answer.status === 404 ? 0 : (answer.json() as { count: number }).count;
  if (state === 'gone') assert.equal(answer.status, 404, `${name} was deleted or refused and is there`);
  else if (state === 'there') assert.equal(count, documents, `${name} was acknowledged`);
  else assert.ok(count === 0 || count === documents, `${name} has ${count} of ${documents} documents`);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
