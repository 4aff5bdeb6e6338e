import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { beginThreads } from '../../src/router/worker-pool.ts';
import { type Server, startServer } from '../../src/server.ts';
import { readSettings } from '../../src/settings.ts';

/** Two actor threads in this very process, so that the test can end one of them. */
async function serverWithThreads(folder: string): Promise<{ server: Server; actors: Worker[] }> {
  const workers: Worker[] = [];
  const onWorker = (worker: Worker) => workers.push(worker);
  process.on('worker', onWorker);
  const env = {
    TIDEBASE_DATA_DIR: folder,
    TIDEBASE_PORT: '0',
    TIDEBASE_ACTOR_THREADS: '2',
    TIDEBASE_PLANS_FILE: 'load-tests/plans.unlimited.json',
    TIDEBASE_LOG_LEVEL: 'error',
  };
  const settings = readSettings(env);
  const server = await startServer(settings, {
    threads: beginThreads(settings.actorThreads),
    onSealed: () => assert.fail('nobody seals this log'),
    onLogDied: () => assert.fail('nothing ends this log'),
  });
  process.off('worker', onWorker);
  // The log thread is the first one that the server starts.
  return { server, actors: workers.slice(1, 3) };
}

function client(url: string, key: string) {
  return async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? null : JSON.parse(text) };
  };
}

async function signUp(url: string): Promise<string> {
  const body = JSON.stringify({ email: 'ann@example.com', name: 'Ann', password: 'correct horse' });
  const answer = await fetch(`${url}/v1/signup`, { method: 'POST', body });
  return ((await answer.json()) as { key: string }).key;
}

/** Asks again while the answer is 503, which a thread gives that is being started, for a minute at most. */
async function onceStarted<T extends { readonly status: number }>(ask: () => Promise<T>): Promise<T> {
  const until = Date.now() + 60_000;
  let answer = await ask();
  while (answer.status === 503 && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    answer = await ask();
  }
  return answer;
}

const names = Array.from({ length: 12 }, (_, i) => `notes-${i}`);

test('an actor thread that dies is started again and has everything that was acknowledged', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidebase-'));
  const { server, actors } = await serverWithThreads(folder);
  t.after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, maxRetries: 10, retryDelay: 50 });
  });
  const call = client(server.url, await signUp(server.url));
  const acknowledged = new Map<string, number[]>(names.map((name) => [name, []]));
  const refused = new Set<number>();
  let writing = true;

  const writers = names.map(async (name) => {
    for (let n = 0; writing; n++) {
      const put = await call('POST', `/v1/namespaces/${name}/docs`, {
        docs: [{ id: String(n), text: `number ${n}` }],
      });
      if (put.status === 200) acknowledged.get(name)?.push(n);
      else refused.add(put.status);
    }
  });
  for (const actor of actors) {
    await new Promise((resolve) => setTimeout(resolve, 700));
    await actor.terminate();
  }
  // Until there is enough to judge by, however slow the machine is.
  const until = Date.now() + 60_000;
  const isEnough = (name: string) => (acknowledged.get(name)?.length ?? 0) > 2;
  do await new Promise((resolve) => setTimeout(resolve, 1_500));
  while (!names.every(isEnough) && Date.now() < until);
  writing = false;
  await Promise.all(writers);

  assert.deepEqual(
    [...refused].filter((status) => status !== 503),
    [],
    'requests in flight are answered 503',
  );
  for (const name of names) {
    const written = acknowledged.get(name) ?? [];
    assert.ok(written.length > 2, `${name} was hardly written`);
    for (const n of written) {
      const found = await onceStarted(() => call('GET', `/v1/namespaces/${name}/docs/${n}`));
      assert.equal(found.status, 200, `${name} lost document ${n}`);
    }
    const count = await call('POST', `/v1/namespaces/${name}/count`, {});
    assert.ok(
      count.body.count >= written.length,
      `${name}: ${count.body.count} of ${written.length} documents`,
    );
  }
});

test('a server that is stopped while a thread is started again stops in order', {
  timeout: 60_000,
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidebase-'));
  const first = await serverWithThreads(folder);
  const key = await signUp(first.server.url);
  const docs = [{ id: 'a', text: 'written before' }];
  for (const name of names) {
    const put = await client(first.server.url, key)('POST', `/v1/namespaces/${name}/docs`, { docs });
    assert.equal(put.status, 200);
  }
  await Promise.all(first.actors.map((actor) => actor.terminate()));
  await first.server.stop();

  const { server } = await serverWithThreads(folder);
  t.after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, maxRetries: 10, retryDelay: 50 });
  });
  for (const name of names)
    assert.equal((await client(server.url, key)('GET', `/v1/namespaces/${name}/docs/a`)).status, 200, name);
});
