/** `tidebase serve`: a server that ends is started again, a wrong setting is not tried again. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import {
  copyOfName,
  ServerProcess,
  type ServerProcessOptions,
  startServer,
  temporaryFolder,
} from '../support/server-process.ts';

const cannotStart = { code: 78, signal: null };
const done = { code: 0, signal: null };

function serve(changes: Partial<ServerProcessOptions> = {}): ServerProcessOptions {
  return { folder: temporaryFolder(), command: 'serve', ...changes };
}

/** What takes the place of a server: the same name and the same objects, with a data folder of its own. */
function successorOf(folder: string): ServerProcessOptions {
  return { folder: copyOfName(folder), env: { TIDEBASE_OBJECTS_DIR: join(folder, 'objects') } };
}

/** The server under a supervisor. */
function childOf(supervisor: ServerProcess): number {
  const children = readFileSync(`/proc/${supervisor.pid}/task/${supervisor.pid}/children`, 'utf8').trim();
  assert.match(children, /^\d+$/, 'a supervisor has one child');
  return Number(children);
}

function lives(pid: number): boolean {
  try {
    // A process that has ended and was not waited for is no life either.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** A server whose threads end, or open the FIFO and never come back, when the crash file says so. */
function holdable() {
  const folder = temporaryFolder();
  const [crashFile, fifo] = [join(folder, 'crash'), join(folder, 'fifo')];
  execFileSync('mkfifo', [fifo]);
  const nodeArguments = ['--import', new URL('../support/crash-thread.js', import.meta.url).href];
  const env = { TIDEBASE_TEST_CRASH_FILE: crashFile, TIDEBASE_ACTOR_THREADS: '1' };
  return { folder, crashFile, fifo, nodeArguments, env };
}

/**
 * A supervisor whose server ends by one signal after the other, and is another one each time, with all data. After the
 * last, and not before, it starts without its cache.
 */
async function crashed(signals: readonly NodeJS.Signals[]): Promise<ServerProcess> {
  const emptied = 'the cache starts empty after abnormal ends';
  const supervisor = await startServer(serve());
  const api = new ApiClient(supervisor.url);
  const { key } = await api.signup('crash@example.com');
  await api.as(key).put('notes', [{ id: 'a', text: 'before the end' }]);
  api.close();

  for (const [at, signal] of signals.entries()) {
    assert.ok(!supervisor.errors.includes(emptied));
    const before = childOf(supervisor);
    process.kill(before, signal);
    await supervisor.listening(at + 2);

    assert.notEqual(childOf(supervisor), before);
    await supervisor.until(
      () => supervisor.errors.includes(`the server ended (${signal}); starting it again`),
      'says how it ended',
    );
    const again = new ApiClient(supervisor.url, key);
    assert.equal((await again.get('notes', 'a')).text, 'before the end');
    again.close();
  }
  await supervisor.until(() => supervisor.errors.includes(emptied), `${emptied}: ${signals.join()}`);
  return supervisor;
}

describe('the supervisor', { concurrency: 2 }, () => {
  it('starts a server again that crashed, with all its data and without its cache, and ends at once while it waits to', async () => {
    const supervisor = await crashed(['SIGBUS']);

    process.kill(childOf(supervisor), 'SIGKILL');
    await supervisor.until(
      () => supervisor.errors.includes('the server ended (SIGKILL); starting it again'),
      'notices the end',
    );

    assert.deepEqual(await supervisor.stop(), done);
    assert.equal(supervisor.urls.length, 2);
  });

  it('gives up the cache after the second abnormal end within a minute, too', async () => {
    const supervisor = await crashed(['SIGKILL', 'SIGKILL']);
    const last = childOf(supervisor);

    assert.deepEqual(await supervisor.stop(), done);
    assert.equal(lives(last), false);
  });

  it('does not start a server again whose place was taken while it stood still', async () => {
    const supervisor = await startServer(serve());
    const child = childOf(supervisor);
    const api = new ApiClient(supervisor.url);
    const { key } = await api.signup('deposed@example.com');
    await api.as(key).put('notes', [{ id: 'a', text: 'before' }]);

    process.kill(child, 'SIGSTOP');
    const successor = await startServer(successorOf(supervisor.options.folder));
    await new ApiClient(successor.url, key).put('notes', [{ id: 'b', text: 'after' }]);
    // Its cache is busy when it hears: that must not make the end look like a crash.
    const late = Array.from({ length: 20 }, (_, i) =>
      api
        .as(key)
        .request('POST', '/v1/namespaces/notes/docs', { body: { docs: [{ id: `late ${i}`, text: 'late' }] } })
        .catch(() => null),
    );
    process.kill(child, 'SIGCONT');

    assert.deepEqual(await supervisor.end(), cannotStart);
    for (const answer of await Promise.all(late)) assert.notEqual(answer?.status, 200);
    const there = await new ApiClient(successor.url, key).count('notes');
    assert.equal(there.count, 2);
    assert.equal(lives(child), false);
    assert.deepEqual(await successor.stop(), done);
  });

  it('ends a server whose place was taken while one of its threads does not turn', async () => {
    const { folder, crashFile, fifo, nodeArguments, env } = holdable();
    const supervisor = await startServer(
      serve({ folder, nodeArguments, env: { ...env, TIDEBASE_ACTOR_THREADS: '2' } }),
    );
    const child = childOf(supervisor);
    const api = new ApiClient(supervisor.url);
    const { key } = await api.signup('held@example.com');
    // On both threads.
    const names = Array.from({ length: 12 }, (_, i) => `notes-${i}`);
    const write = (name: string) => api.as(key).put(name, [{ id: 'a', text: 'a' }]);
    await Promise.all(names.map(write));
    writeFileSync(crashFile, `worker 1 ${fifo}`);
    await supervisor.until(() => supervisor.errors.includes('a test holds the thread of worker'), 'holds it');

    const successor = await startServer(successorOf(folder));
    // The other thread's writes find out.
    const late = Promise.allSettled(names.map(write));

    assert.deepEqual(await supervisor.end(), cannotStart);
    assert.equal(lives(child), false);
    for (const { status } of await late) assert.equal(status, 'rejected');
    api.close();
    assert.deepEqual(await successor.stop(), done);
  });

  it('starts a server again whose log thread died, and one of which a thread does not turn any more', async () => {
    const { folder, crashFile, fifo, nodeArguments, env } = holdable();
    const supervisor = await startServer(
      serve({ folder, nodeArguments, env: { ...env, TIDEBASE_TEST_SILENT_MS: '2000' } }),
    );
    const first = new ApiClient(supervisor.url);
    const { key } = await first.signup('silent@example.com');
    first.close();

    writeFileSync(crashFile, 'log-worker 1');
    await supervisor.listening(2);
    const second = new ApiClient(supervisor.url, key);
    assert.equal((await second.me()).auth, 'key');
    second.close();

    const heldWorkers = () => supervisor.errors.split('a test holds the thread of worker').length - 1;
    for (const [thread, silent] of [
      ['worker', 'actor-0'],
      ['main', 'front'],
    ] as const) {
      const before = new ApiClient(supervisor.url, key);
      await before.put('notes', [{ id: thread, text: 'before the silence' }]);
      before.close();

      const times = supervisor.urls.length;
      writeFileSync(crashFile, `${thread} ${times} ${fifo}`);
      await supervisor.until(
        () => supervisor.errors.includes(`"silentThread":"${silent}"`),
        'says which thread is silent',
      );
      await supervisor.listening(times + 1);

      const after = new ApiClient(supervisor.url, key);
      assert.equal((await after.get('notes', thread)).text, 'before the silence');
      after.close();
    }
    // What native code was lost in may be the cache.
    for (const sentence of [
      'the server ended (SIGABRT); starting it again',
      'the cache starts empty after abnormal ends',
    ])
      await supervisor.until(() => supervisor.errors.includes(sentence), sentence);

    // A log that dies beside such a thread: the end of the process does not wait for it.
    const times = supervisor.urls.length;
    writeFileSync(crashFile, `worker beside ${fifo}`);
    await supervisor.until(() => heldWorkers() === 2, 'holds it beside');
    writeFileSync(crashFile, 'log-worker beside');
    await supervisor.listening(times + 1);

    // A server that is to stop waits for such a thread no longer either, and does not say that all went well.
    writeFileSync(crashFile, `worker last ${fifo}`);
    await supervisor.until(() => heldWorkers() === 3, 'holds it again');
    assert.deepEqual(await supervisor.stop(), { code: 1, signal: null });
  });

  it('ends with its server on SIGTERM and on SIGINT, code 0; an empty setting is none', async () => {
    // Those of clients and tests are not the server's either.
    const ignored = {
      TIDEBASE_HOST: '',
      TIDEBASE_URL: 'http://example.com',
      TIDEBASE_API_KEY: 'x',
      TIDEBASE_TEST_X: 'y',
    };
    for (const [signal, env] of [
      ['SIGTERM', ignored],
      ['SIGINT', {}],
    ] as const) {
      const supervisor = await startServer(serve({ env }));
      const child = childOf(supervisor);
      assert.match(supervisor.url, /^http:\/\/127\.0\.0\.1:\d+$/);

      supervisor.signal(signal);

      assert.deepEqual(await supervisor.end(), done, signal);
      assert.equal(lives(child), false, signal);
      assert.deepEqual(supervisor.loggedErrors(), []);
    }
  });

  it('does not try a wrong setting again, and says which it is', async () => {
    for (const [env, sentence] of [
      // The rest of what settings may be is test/src/settings.test.ts.
      [{ TIDEBASE_FOO: '1' }, /TIDEBASE_FOO/],
      [{ TIDEBASE_PLANS_FILE: '/nowhere/plans.json' }, /plans\.json/],
    ] as const) {
      const supervisor = new ServerProcess(serve({ env }));

      const shown = `${JSON.stringify(env)}: ${supervisor.errors}`;
      assert.deepEqual(await supervisor.end(), cannotStart, shown);
      assert.equal(supervisor.output, '');
      const lines = supervisor.errors.trim().split('\n');
      assert.equal(lines.length, 1, supervisor.errors);
      assert.match(lines[0] ?? '', /^tidebase cannot start: /);
      assert.match(lines[0] ?? '', sentence);
    }
  });

  it('says that the port is taken', async () => {
    const occupant = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => occupant.once('listening', resolve));
    const { port } = occupant.address() as { port: number };
    const supervisor = new ServerProcess(serve({ env: { TIDEBASE_PORT: String(port) } }));

    await supervisor.until(() => /tidebase cannot start: .*\n/.test(supervisor.errors), 'says why');

    assert.ok(supervisor.errors.includes(String(port)), supervisor.errors);
    supervisor.signal('SIGTERM');
    await supervisor.end();
    occupant.close();
  });
});
