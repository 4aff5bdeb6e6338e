import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { SearchAnswer } from '../../protocol/search.ts';
import { type ApiAnswer, ApiClient, documentPath, type ErrorBody } from '../support/api-client.ts';
import {
  type FaultProxy,
  type Faults,
  type ProxiedRequest,
  startFaultProxy,
} from '../support/fault-proxy.ts';
import { Load } from '../support/load.ts';
import { seededRandom } from '../support/model.ts';
import { newBucket, noS3Reason, serverEnvOf } from '../support/s3-server.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/**
 * The real server on a real S3 server, with a proxy between them that breaks what a network and a store can break.
 * After every trouble: nothing acknowledged is lost, nothing is there by half, nothing that was called "not written" is
 * there. OUTAGES=long makes the troubles as long as they are in life; OUTAGES_SEED repeats what is sent.
 */
const long = process.env.OUTAGES === 'long';
const seed = Number(process.env.OUTAGES_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** Past the ten seconds after which a waiting client is told write_unknown. */
const outageMs = long ? 30_000 : 11_500;
const blinkMs = 1_000;
const hangMs = long ? 30_000 : 3_000;
const pauseMs = long ? 20_000 : 4_000;
/** How long load runs under a fault that lets some requests through. */
const troubleMs = long ? 20_000 : 3_000;
/** Writes acknowledged before, between and after. */
const warmUp = 40;

/** They mostly wait. */
const serversAtOnce = 4;

const skip = noS3Reason ?? false;

describe(`storage in trouble (OUTAGES_SEED=${seed})`, { concurrency: serversAtOnce, skip }, () => {
  it('a refused connection for a second is heard by nobody', async (t) => {
    const house = await House.begin(1);
    const answers = await house.trouble({ mode: 'refuse' }, blinkMs);
    await house.settle(t, answers);
    assert.equal(answers.count('write_unknown'), 0);
  });

  it('while storage is away, warm reads go on, and writes say what they know', async (t) => {
    const house = await House.begin(2);
    const cold = await house.coldNamespace();
    const answers = await house.trouble({ mode: 'refuse' }, outageMs, async (api) => {
      const search = await api.search('shared-0', { q: '#', limit: 5 });
      assert.equal(search.partial, false, 'a search of what is in memory is whole');
      assert.ok(search.hits.length > 0);
      await assertColdReads(api, cold);
    });
    assert.ok(answers.count('write_unknown') > 0, answers.text());
    const again = await house.api.get(cold.closed, 'd0');
    assert.equal(again.id, 'd0');
    await house.settle(t, answers);
  });

  it('while storage hangs, and after it', async (t) => {
    const house = await House.begin(3);
    const answers = await house.trouble({ mode: 'hang' }, hangMs);
    await house.settle(t, answers);
  });

  it('while its answers do not come', async (t) => {
    const house = await House.begin(4);
    const answers = await house.trouble({ mode: 'oneWay' }, hangMs);
    await house.settle(t, answers);
  });

  it('lost answers to PUTs of the log are found out, and none is taken for a refusal', async (t) => {
    const house = await House.begin(5);
    const answers = await house.trouble(lost(isPutOf('/log/'), 0.5), troubleMs);
    assert.ok(house.proxy.counters.dropped > 0);
    await house.settle(t, answers);
  });

  it('lost answers to PUTs of manifests, segments, claims and views are found out', async (t) => {
    const house = await House.begin(6);
    const noLog = ({ method, path }: ProxiedRequest) => method === 'PUT' && !path.includes('/log/');
    const answers = await house.trouble(lost(noLog, 0.5), troubleMs, async (api, round) => {
      // More than a manifest carries itself: with the server's end it becomes a segment.
      await api.put('large', largeDocuments(round));
    });
    const stopping = lost(noLog, 0.5);
    await house.proxy.set(stopping);
    assert.deepEqual(await house.server.stop(), { code: 0, signal: null });
    await house.proxy.set({});
    await house.again();
    assert.ok(house.proxy.counters.dropped > 0);
    const { count } = await house.api.count('large', { q: 'large' });
    assert.ok(count > 0);
    await house.settle(t, answers);
  });

  it('requests cut off in their middle are nothing', async (t) => {
    const house = await House.begin(7);
    const answers = await house.trouble({ mode: 'cut', probability: 0.3, cutAfterBytes: 700 }, troubleMs);
    await house.settle(t, answers);
  });

  it('a fifth of all requests throttled costs time and nothing else', async (t) => {
    const house = await House.begin(8);
    const answers = await house.trouble({ mode: 'throttle', probability: 0.2 }, troubleMs);
    assert.ok(house.proxy.counters.throttled > 0);
    assert.equal(answers.count('write_unknown'), 0);
    await house.settle(t, answers);
  });

  it('a server starts while a fifth of all requests is throttled', async (t) => {
    const house = await House.begin(9);
    await house.proxy.set({ mode: 'throttle', probability: 0.2 });
    await house.server.kill();
    await house.again();
    await house.proxy.set({});
    await house.settle(t, new Answers());
  });

  it('a server that was stopped for a while goes on', async (t) => {
    const house = await House.begin(10);
    const answers = await house.underLoad(async () => {
      house.server.signal('SIGSTOP');
      await sleep(pauseMs);
      house.server.signal('SIGCONT');
    });
    assert.ok(house.server.running);
    await house.settle(t, answers);
  });

  it('a stopped server whose place was taken acknowledges nothing more and ends', async (t) => {
    const house = await House.begin(11);
    const old = house.server;
    const answers = await house.underLoad(async () => {
      old.signal('SIGSTOP');
      await sleep(500);
      // The same folder: the same server id, so it need not wait until the old one's lease has run out.
      await house.again();
      await house.load.untilSomeoneWrites(new ApiClient(house.server.url, house.load.key));
      await sleep(pauseMs);
      old.signal('SIGCONT');
      assert.deepEqual(await old.end(), { code: 78, signal: null }, old.errors);
    });
    assert.match(old.errors, /another process has taken over/);
    await house.settle(t, answers);
  });

  it('a stopped server ends when it finds its place taken, though nobody writes to it', async () => {
    const house = await House.begin(12);
    const old = house.server;
    old.signal('SIGSTOP');
    await house.again();
    await sleep(pauseMs);
    old.signal('SIGCONT');
    assert.deepEqual(await old.end(), { code: 78, signal: null }, old.errors);
    assert.equal((await house.api.count('shared-0')).exact, true);
  });
});

/** One server, its bucket, the proxy between them, and who writes. */
class House {
  server: ServerProcess;
  api: ApiClient;
  readonly proxy: FaultProxy;
  readonly load: Load;

  private constructor(server: ServerProcess, proxy: FaultProxy, load: Load) {
    this.server = server;
    this.proxy = proxy;
    this.load = load;
    this.api = new ApiClient(server.url, load.key);
  }

  static async begin(number: number): Promise<House> {
    const random = seededRandom(seed + number);
    const bucket = await newBucket();
    const proxy = await startFaultProxy({ targetPort: bucket.port, random });
    const env = { ...serverEnvOf(bucket, proxy.url), TIDEBASE_COMMIT_MS: '50' };
    const server = await startServer({ folder: temporaryFolder(), env });
    const house = new House(server, proxy, await Load.begin(server, random));
    await house.underLoad(async () => {});
    await house.check();
    return house;
  }

  /** A server in the place of this one; whether that one has ended is the caller's. */
  async again(): Promise<void> {
    this.server = await startServer(this.server.options);
    this.api = new ApiClient(this.server.url, this.load.key);
  }

  /** Load before, during and after. */
  async underLoad(work: () => Promise<void>): Promise<Answers> {
    const answers = new Answers();
    const client = new ApiClient(this.server.url, this.load.key);
    client.onAnswer = (answer) => answers.take(answer);
    const running = this.load.run(client);
    // Its failure is thrown below; meanwhile it must not count as unhandled.
    running.catch(() => {});
    await this.load.untilAcknowledged(warmUp);
    await work();
    await this.load.untilAcknowledged(warmUp);
    this.load.stop();
    await running;
    return answers;
  }

  trouble(
    faults: Faults,
    ms: number,
    meanwhile: (api: ApiClient, round: number) => Promise<void> = async () => {},
  ): Promise<Answers> {
    return this.underLoad(async () => {
      await this.proxy.set(faults);
      const until = performance.now() + ms;
      for (let round = 0; performance.now() < until; round++) {
        await meanwhile(this.api, round);
        await sleep(100);
      }
      await this.proxy.set({});
    });
  }

  /** After the trouble: everything is as it was answered, and the next writes are ordinary. */
  async settle(t: TestContext, answers: Answers): Promise<void> {
    const began = performance.now();
    await this.load.settle(this.api);
    const tookMs = Math.round(performance.now() - began);
    await this.check();
    const later = await this.underLoad(async () => {});
    await this.check();
    assert.deepEqual([...later.codes.keys()], ['ok'], 'afterwards all is ordinary');
    t.diagnostic(`${this.load.summary()}; ${answers.text()}; ordinary ${tookMs} ms after`);
    answers.assertSound();
    assert.deepEqual(await this.server.stop(), { code: 0, signal: null });
    await this.proxy.close();
  }

  async check(): Promise<void> {
    await this.load.check(new ApiClient(this.server.url, this.load.key));
    this.load.nextRound();
  }

  /** Two namespaces whose documents are in S3 alone: one that is open, one that is not. */
  async coldNamespace(): Promise<{ readonly opened: string; readonly closed: string }> {
    for (const name of ['opened', 'closed']) await this.api.put(name, largeDocuments(0));
    await this.server.stop();
    rmSync(join(this.server.options.folder, 'cache'), { recursive: true });
    await this.again();
    for (let i = 0; i < 3; i++) await this.api.count(`shared-${i}`);
    await this.api.getNamespace('opened');
    return { opened: 'opened', closed: 'closed' };
  }
}

/** Reads that need what cannot be had: an answer that says so, never a failure of ours. */
async function assertColdReads(
  api: ApiClient,
  { opened, closed }: { opened: string; closed: string },
): Promise<void> {
  const search = await api.request('POST', `/v1/namespaces/${opened}/search`, { body: { q: 'large' } });
  assert.equal(search.status, 200, search.body.toString());
  assert.equal((search.json() as SearchAnswer).partial, true);
  for (const namespace of [opened, closed]) {
    const read = await api.request('GET', documentPath(namespace, 'd0'));
    assert.equal(read.status, 503, read.body.toString());
    assert.equal((read.json() as ErrorBody).code, 'unavailable');
  }
  const unopened = await api.request('POST', `/v1/namespaces/${closed}/search`, { body: { q: 'large' } });
  assert.equal(unopened.status, 503);
}

/** Every answer of one stretch of load, by its code. */
class Answers {
  readonly codes = new Map<string, number>();
  readonly #wrong: string[] = [];

  take(answer: ApiAnswer): void {
    const body = answer.status < 300 ? null : (answer.json() as ErrorBody);
    const code = body?.code ?? 'ok';
    this.codes.set(code, this.count(code) + 1);
    if (answer.status >= 500 && answer.status !== 503) this.#wrong.push(answer.body.toString());
    if (answer.status === 429 && body?.retry_after === undefined) this.#wrong.push(answer.body.toString());
    if (answer.status === 503 && body?.retry_after === undefined) this.#wrong.push(answer.body.toString());
  }

  count(code: string): number {
    return this.codes.get(code) ?? 0;
  }

  text(): string {
    return [...this.codes].map(([code, count]) => `${count} ${code}`).join(', ');
  }

  /** No failure of ours, and every refusal says when to come back. */
  assertSound(): void {
    assert.deepEqual(this.#wrong, []);
  }
}

function lost(matches: (request: ProxiedRequest) => boolean, probability: number): Faults {
  return { mode: 'dropResponse', matches, probability };
}

function isPutOf(part: string): (request: ProxiedRequest) => boolean {
  return ({ method, path }) => method === 'PUT' && path.includes(part);
}

function largeDocuments(round: number): { id: string; text: string }[] {
  return Array.from({ length: 8 }, (_, i) => ({
    id: `d${i}`,
    text: `large ${round} ${'abcdefgh'.repeat(6_000)}`,
  }));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
