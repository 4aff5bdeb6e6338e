/**
 * The real server on a real S3 server, with a proxy between them that breaks what a network and a store can break.
 * After every trouble: nothing acknowledged is lost, nothing is there by half, nothing that was called "not written" is
 * there. OUTAGES=long makes the troubles as long as they are in life; OUTAGES_SEED repeats what is sent.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
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
import { copyOfName, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const long = process.env.OUTAGES === 'long';
const seed = Number(process.env.OUTAGES_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** Past the ten seconds after which a waiting client is told write_unknown. */
const outageMs = long ? 30_000 : 11_500;
const blinkMs = 1_000;
const hangMs = long ? 30_000 : 2_000;
const pauseMs = long ? 20_000 : 3_000;
/** Starts of a server whose storage answers badly: one start in twenty fails where a fifth is throttled. */
const startsMax = 4;
/** How long load runs under a fault that lets some requests through. */
const troubleMs = long ? 20_000 : 2_000;
/** Writes acknowledged before, between and after. */
const warmUp = 40;

/** Between two requests of one writer: what is tried here are the faults, not the load. */
const paceMs = 150;
/** They mostly wait. */
const serversAtOnce = 4;

const skip = noS3Reason ?? false;

describe(`storage in trouble (OUTAGES_SEED=${seed})`, { concurrency: serversAtOnce, skip }, () => {
  it('faults of the network and of the store cost time, and nothing that was acknowledged', async (t) => {
    const house = await House.begin(1);
    const faults: readonly (readonly [string, Faults, number])[] = [
      ['refused for a second', { mode: 'refuse' }, blinkMs],
      ['hanging', { mode: 'hang' }, hangMs],
      ['answers held', { mode: 'oneWay' }, hangMs],
      ['answers to PUTs of the log lost', lost(isPutOf('/log/'), 0.5), troubleMs],
      ['requests cut off', { mode: 'cut', probability: 0.3, cutAfterBytes: 700 }, troubleMs],
      ['a fifth throttled', { mode: 'throttle', probability: 0.2 }, troubleMs],
    ];
    for (const [what, fault, ms] of faults) {
      const answers = await house.trouble(fault, ms);
      await house.settle(t, what, answers);
      if (ms < 10_000) assert.equal(answers.count('write_unknown'), 0, `${what}: ${answers.text()}`);
    }
    const { dropped, cut, throttled } = house.proxy.counters;
    assert.ok(dropped > 0 && cut > 0 && throttled > 0);
    await house.end();
  });

  it('while storage is away, warm reads go on, and writes say what they know', async (t) => {
    const house = await House.begin(2);
    const cold = await house.coldNamespaces();
    // At once: recovery, which began before the server listened, opens all that the last life wrote, one after the other.
    await house.proxy.set({ mode: 'refuse' });
    await assertColdReads(house.api, cold);
    await assertUnopened(house.api, cold.closed);
    await house.proxy.set({});
    for (let i = 0; i < 3; i++) await house.api.count(`shared-${i}`);
    const answers = await house.trouble({ mode: 'refuse' }, outageMs, async (api) => {
      const search = await api.search('shared-0', { q: '#', limit: 5 });
      assert.equal(search.partial, false, 'a search of what is in memory is whole');
      assert.ok(search.hits.length > 0);
      await assertColdReads(api, cold);
    });
    assert.ok(answers.count('write_unknown') > 0, answers.text());
    await house.settle(t, `away for ${outageMs} ms`, answers);
    assert.equal((await house.api.get(cold.closed, 'd0')).id, 'd0');
    await house.end();
  });

  it('lost answers to PUTs of manifests, segments, claims and views are found out', async (t) => {
    const house = await House.begin(3);
    const noLog = ({ method, path }: ProxiedRequest) => method === 'PUT' && !path.includes('/log/');
    const answers = await house.trouble(lost(noLog, 0.5), troubleMs, async (api, round) => {
      // More than a manifest carries itself: with the server's end it becomes a segment.
      await api.put('large', largeDocuments(round));
    });
    await house.proxy.set(lost(noLog, 0.5));
    await house.stop();
    // The start-up probe believes nothing that it was not answered.
    await house.proxy.set(lost(noLog, 0.1));
    await house.againUntilServing();
    await house.proxy.set({});
    assert.ok(house.proxy.counters.dropped > 0);
    assert.equal((await house.api.count('large', { q: 'large' })).count, 8);
    await house.settle(t, 'answers to other PUTs lost', answers);

    await house.proxy.set({ mode: 'throttle', probability: 0.2 });
    await house.server.kill();
    await house.againUntilServing();
    await house.proxy.set({});
    await house.settle(t, 'started while a fifth was throttled', new Answers());
    await house.end();
  });

  it('a server that was stopped goes on; one whose place was taken acknowledges nothing more and ends', async (t) => {
    const house = await House.begin(4);
    const old = house.server;
    const paused = await house.underLoad(async () => {
      old.signal('SIGSTOP');
      await sleep(pauseMs);
      old.signal('SIGCONT');
    });
    await house.settle(t, 'stopped', paused);

    const answers = await house.underLoad(async () => {
      old.signal('SIGSTOP');
      await house.again(copyOfName(house.server.options.folder));
      await house.load.settle(house.api);
      await sleep(pauseMs);
      old.signal('SIGCONT');
      assert.deepEqual(await old.end(), { code: 78, signal: null }, old.errors);
    });
    assert.match(old.errors, /another process has taken over/);
    await house.settle(t, 'replaced', answers);

    const idle = house.server;
    idle.signal('SIGSTOP');
    await house.again(copyOfName(house.server.options.folder));
    await sleep(pauseMs);
    idle.signal('SIGCONT');
    assert.deepEqual(await idle.end(), { code: 78, signal: null }, 'though nobody writes to it');
    await house.settle(t, 'replaced while idle', new Answers());
    await house.end();
  });
});

/** What a failed test leaves listening would keep this process alive until the run's own limit. */
const proxies: FaultProxy[] = [];
after(() => Promise.all(proxies.map((proxy) => proxy.close())));

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
    proxies.push(proxy);
    const env = { ...serverEnvOf(bucket, proxy.url), TIDEBASE_COMMIT_MS: '50' };
    const server = await startServer({ folder: temporaryFolder(), env });
    const house = new House(server, proxy, await Load.begin(server, random, paceMs));
    await house.underLoad(async () => {});
    await house.check();
    return house;
  }

  /** A server in the place of this one; whether that one has ended is the caller's. */
  async again(folder = this.server.options.folder): Promise<void> {
    this.server = await startServer({ ...this.server.options, folder });
    this.api = new ApiClient(this.server.url, this.load.key);
  }

  /** As a supervisor does it where storage answers badly: a start that is told no too often ends, and another follows. */
  async againUntilServing(): Promise<void> {
    for (let left = startsMax - 1; ; left--) {
      try {
        return await this.again();
      } catch (error) {
        if (left === 0 || !String(error).includes('it has ended')) throw error;
      }
    }
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
  async settle(t: TestContext, what: string, answers: Answers): Promise<void> {
    const began = performance.now();
    await this.load.settle(this.api);
    const tookMs = Math.round(performance.now() - began);
    await this.check();
    const later = await this.underLoad(async () => {});
    await this.check();
    t.diagnostic(`${what}: ${answers.text() || 'no load'}; ordinary ${tookMs} ms after`);
    assert.deepEqual([...later.codes.keys()], ['ok'], `${what}: afterwards all is ordinary`);
    answers.assertSound();
  }

  async stop(): Promise<void> {
    assert.deepEqual(await this.server.stop(), { code: 0, signal: null });
    this.api.close();
  }

  async end(): Promise<void> {
    await this.stop();
    await this.proxy.close();
  }

  async check(): Promise<void> {
    await this.load.check(new ApiClient(this.server.url, this.load.key));
    this.load.nextRound();
  }

  /** Two namespaces whose documents are in S3 alone: one that is open, one that is not. */
  async coldNamespaces(): Promise<{ readonly opened: string; readonly closed: string }> {
    for (const name of ['opened', 'closed']) await this.api.put(name, largeDocuments(0));
    await this.stop();
    rmSync(join(this.server.options.folder, 'cache'), { recursive: true });
    await this.again();
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
    assert.equal(read.status, 503, `${namespace}: ${read.body.toString().slice(-200)}`);
    assert.equal((read.json() as ErrorBody).code, 'unavailable');
  }
}

async function assertUnopened(api: ApiClient, closed: string): Promise<void> {
  const unopened = await api.request('POST', `/v1/namespaces/${closed}/search`, { body: { q: 'large' } });
  assert.equal(unopened.status, 503, unopened.body.toString().slice(-200));
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
