import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { NewKey } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { answerOrNull, jsonOf, ModelWriter, outcomeOf, seededRandom } from '../support/model.ts';
import {
  ServerProcess,
  type ServerProcessOptions,
  startServer,
  temporaryFolder,
} from '../support/server-process.ts';

/**
 * What was acknowledged is there after any end of the process or of a thread, and no request is there by half.
 * CRASH_ROUNDS sets how often the process is killed; CRASH_SEED repeats a run (what it sends, not how it is timed).
 */
const rounds = Number(process.env.CRASH_ROUNDS ?? 10);
const seed = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31));

describe(`crashes (CRASH_SEED=${seed})`, { concurrency: 1 }, () => {
  it(`kill -9 at ${rounds} random moments loses nothing acknowledged and leaves no request half done`, async (t) => {
    const random = seededRandom(seed);
    const folder = temporaryFolder();
    let server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '25' } });
    const load = await Load.begin(server, random);

    for (let round = 1; round <= rounds; round++) {
      const running = load.run(new ApiClient(server.url, load.key));
      await load.untilAcknowledged(Math.floor(random() * 60));
      await sleep(random() * 40);
      await server.kill();
      await running;
      if (random() < 0.3) await killWhileStarting(server, random() * 600);
      server = await startServer({
        ...server.options,
        env: { TIDEBASE_COMMIT_MS: random() < 0.5 ? '25' : '250' },
      });
      await load.check(new ApiClient(server.url, load.key));
      load.nextRound();
    }

    t.diagnostic(`seed ${seed}: ${load.summary()}`);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    // Once more, from a folder that was left in order.
    server = await startServer(server.options);
    await load.check(new ApiClient(server.url, load.key));
    assert.deepEqual(server.loggedErrors(), []);
    await server.kill();
  });

  it('SIGTERM under load drains: exit code 0, nothing acknowledged is lost', async (t) => {
    const random = seededRandom(seed + 1);
    let server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '50' } });
    const load = await Load.begin(server, random);
    const running = load.run(new ApiClient(server.url, load.key));
    await load.untilAcknowledged(30);

    const began = performance.now();
    const end = await server.stop();
    const tookMs = Math.round(performance.now() - began);
    await running;

    t.diagnostic(`ended ${tookMs} ms after SIGTERM; ${load.summary()}`);
    assert.deepEqual(end, { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    server = await startServer(server.options);
    await load.check(new ApiClient(server.url, load.key));
    await server.kill();
  });

  it('an actor thread that dies is started again and knows all that was acknowledged', async (t) => {
    const random = seededRandom(seed + 2);
    const folder = temporaryFolder();
    const crashFile = join(folder, 'crash');
    const server = await startServer({ folder, ...crashable(crashFile) });
    const load = await Load.begin(server, random);
    const api = new ApiClient(server.url, load.key);

    for (let death = 1; death <= 3; death++) {
      const running = load.run(api);
      await load.untilAcknowledged(5 + Math.floor(random() * 30));
      writeFileSync(crashFile, `worker ${death}`);
      const deaths = () => server.errors.split('an actor thread died').length - 1;
      await server.until(() => deaths() === death, `its actor thread dies for the ${death}. time`, 5_000);
      load.stop();
      await running;
      await untilServed(api);
      await load.check(api);
      load.nextRound();
    }

    t.diagnostic(load.summary());
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  it('a thread of a lane that dies idle is replaced', async () => {
    const folder = temporaryFolder();
    const crashFile = join(folder, 'crash');
    const server = await startServer({ folder, ...crashable(crashFile) });
    const api = new ApiClient(server.url);
    await api.signup('before@example.com');

    writeFileSync(crashFile, 'hash-worker 1');
    await sleep(100);

    await api.signup('after@example.com');
    await api.login('before@example.com');
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });
});

/** Its threads can be ended by writing to the file. */
function crashable(crashFile: string): Pick<ServerProcessOptions, 'nodeArguments' | 'env'> {
  return {
    nodeArguments: ['--import', new URL('../support/crash-thread.js', import.meta.url).href],
    env: { TIDEBASE_COMMIT_MS: '25', TIDEBASE_TEST_CRASH_FILE: crashFile },
  };
}

/** Everything that writes at once: documents in shared namespaces, new namespaces, keys, people. */
class Load {
  readonly key: string;
  readonly #random: () => number;
  readonly #writers: readonly ModelWriter[];
  readonly #spaces = new Map<string, { documents: number; state: 'there' | 'gone' | 'unknown' }>();
  readonly #keys = new Map<string, 'live' | 'revoked' | 'unknown'>();
  readonly #people: string[] = [];
  #round = 1;
  #stopped = false;

  private constructor(key: string, random: () => number) {
    this.key = key;
    this.#random = random;
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

  static async begin(server: ServerProcess, random: () => number): Promise<Load> {
    const api = new ApiClient(server.url);
    const { key } = await api.signup('load@example.com');
    api.close();
    return new Load(key, random);
  }

  /** Resolves when all of it has stopped: the server went away, or `stop` was called. */
  async run(api: ApiClient): Promise<void> {
    const stopped = () => this.#stopped;
    const writers = this.#writers.map((writer) => writer.run(api, stopped));
    await Promise.all([...writers, this.#makeSpaces(api), this.#makeKeys(api), this.#makePeople(api)]);
    api.close();
  }

  /** So many writes more, or as many as a slow machine gets done in two seconds. */
  async untilAcknowledged(more: number): Promise<void> {
    const target = this.#acknowledged() + more;
    const deadline = performance.now() + 2_000;
    while (this.#acknowledged() < target && performance.now() < deadline) await sleep(2);
  }

  stop(): void {
    this.#stopped = true;
  }

  nextRound(): void {
    this.#round++;
    this.#stopped = false;
  }

  async check(api: ApiClient): Promise<void> {
    for (const writer of this.#writers) await writer.check(api);
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
    return this.#writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
  }

  /** Namespaces that their first write makes, some deleted again. */
  async #makeSpaces(api: ApiClient): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
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
    for (let i = 0; i < 3 && !this.#stopped; i++) {
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

/** The recovery of one start is cut off by the next. */
async function killWhileStarting(before: ServerProcess, afterMs: number): Promise<void> {
  const server = new ServerProcess(before.options);
  await sleep(afterMs);
  await server.kill();
}

async function untilServed(api: ApiClient): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const { status } = await api.request('GET', '/v1/namespaces');
    if (status === 200) return;
    assert.equal(status, 503);
    await sleep(25);
  }
  assert.fail('the actor thread did not come back');
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
