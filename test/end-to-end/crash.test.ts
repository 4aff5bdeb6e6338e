/**
 * What was acknowledged is there after any end of the process or of a thread, and no request is there by half.
 * CRASH_ROUNDS sets how often the process is killed; CRASH_SEED repeats a run (what it sends, not how it is timed).
 */
import assert from 'node:assert/strict';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { Load } from '../support/load.ts';
import { seededRandom } from '../support/model.ts';
import { newBucket, serverEnvOf } from '../support/s3-server.ts';
import {
  ServerProcess,
  type ServerProcessOptions,
  startServer,
  temporaryFolder,
} from '../support/server-process.ts';

const rounds = Number(process.env.CRASH_ROUNDS ?? 4);
/** `s3` takes the real server that TIDEBASE_TEST_S3_ENV names. */
const store = process.env.CRASH_STORE === 's3' ? 's3' : 'fs';
const heavyShare = 0.25;
const seed = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31));

describe(`crashes (CRASH_SEED=${seed})`, { concurrency: 1 }, () => {
  it(`kill -9 at ${rounds} random moments loses nothing acknowledged and leaves no request half done`, async (t) => {
    const random = seededRandom(seed);
    const folder = temporaryFolder();
    const storeEnv = store === 's3' ? serverEnvOf(await newBucket()) : {};
    const envOf = (commitMs: string) => ({ ...storeEnv, TIDEBASE_COMMIT_MS: commitMs });
    let server = await startServer({ folder, env: envOf('25') });
    const load = await Load.begin(server, random);
    const restartMs: number[] = [];
    let killedAtStart = 0;

    for (let round = 1; round <= rounds; round++) {
      load.isHeavy = random() < heavyShare;
      const running = load.run(new ApiClient(server.url, load.key));
      // A memtable is flushed at 32 MB, so these rounds are killed among flushes, uploads and commits as well.
      if (load.isHeavy) await load.untilBulkAcknowledged(Math.floor(random() * 24));
      else await load.untilAcknowledged(Math.floor(random() * 60));
      await sleep(random() * 40);
      await server.kill();
      await running;
      for (; random() < 0.35; killedAtStart++) await killWhileStarting(server, random);
      damageCache(join(folder, 'cache'), random);
      const began = performance.now();
      server = await startServer({ ...server.options, env: envOf(random() < 0.5 ? '25' : '250') });
      restartMs.push(performance.now() - began);
      await load.check(new ApiClient(server.url, load.key));
      load.nextRound();
    }

    t.diagnostic(
      `seed ${seed}, ${store}: ${rounds} rounds and ${killedAtStart} kills while starting; ${load.summary()}; ` +
        `0 lost, 0 half-written; restart p50 ${quantile(restartMs, 0.5)} ms, max ${quantile(restartMs, 1)} ms`,
    );
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

  describe('of one thread of a server', { concurrency: 1 }, () => {
    const folder = temporaryFolder();
    const crashFile = join(folder, 'crash');
    let server: ServerProcess;
    before(async () => {
      server = await startServer({ folder, ...crashable(crashFile) });
    });
    after(async () => {
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
    });

    it('an actor thread that dies is started again and knows all that was acknowledged', async (t) => {
      const random = seededRandom(seed + 2);
      const load = await Load.begin(server, random);
      const api = new ApiClient(server.url, load.key);

      for (let death = 1; death <= 3; death++) {
        const running = load.run(api);
        await load.untilAcknowledged(5 + Math.floor(random() * 30));
        writeFileSync(crashFile, `worker ${death}`);
        const deaths = () => server.errors.split('an actor thread died').length - 1;
        await server.until(() => deaths() === death, `its actor thread dies for the ${death}. time`);
        load.stop();
        await running;
        await untilServed(api);
        await load.check(api);
        load.nextRound();
      }

      t.diagnostic(load.summary());
    });

    it('a thread of a lane that dies idle is replaced', async () => {
      const api = new ApiClient(server.url);
      await api.signup('before@example.com');

      const threads = () => new Set(readdirSync(`/proc/${server.pid}/task`));
      const before = [...threads()];
      writeFileSync(crashFile, 'hash-worker 1');
      const isGone = () => {
        const left = threads();
        return (
          server.errors.includes('ends the thread of hash-worker') && !before.every((id) => left.has(id))
        );
      };
      await server.until(isGone, 'the thread is gone');

      await api.signup('after@example.com');
      await api.login('before@example.com');
      api.close();
    });
  });
});

/** Its threads can be ended by writing to the file. */
function crashable(crashFile: string): Pick<ServerProcessOptions, 'nodeArguments' | 'env'> {
  return {
    nodeArguments: ['--import', new URL('../support/crash-thread.js', import.meta.url).href],
    env: { TIDEBASE_COMMIT_MS: '25', TIDEBASE_TEST_CRASH_FILE: crashFile },
  };
}

/** The recovery of one start is cut off by the next: before it has its log, or soon after. */
async function killWhileStarting(before: ServerProcess, random: () => number): Promise<void> {
  const server = new ServerProcess(before.options);
  const hasLog = () => server.errors.includes('this process has its log');
  if (random() < 0.5) await server.until(hasLog, 'it has its log');
  await sleep(random() * 500);
  await server.kill();
}

/** It may be deleted at any time: whole, or any part of it. */
function damageCache(folder: string, random: () => number): void {
  const chance = random();
  if (chance < 0.2) rmSync(folder, { recursive: true, force: true });
  if (chance < 0.8) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && random() < 0.5) rmSync(join(entry.parentPath, entry.name));
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

async function untilServed(api: ApiClient): Promise<void> {
  await eventually(async () => {
    const { status } = await api.request('GET', '/v1/namespaces');
    if (status !== 200) assert.equal(status, 503);
    return status === 200;
  }, 'the actor thread is back');
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
