/**
 * Three real servers on one folder: any of them answers for all, and data moves when one goes and comes. CLUSTER_ROUNDS sets how often each
 * of the faults of support/cluster-rounds.ts comes under load, kill -9 three times as often, CLUSTER_FAULT which of them alone (names
 * between semicolons), CLUSTER_SEED what is drawn by chance. Rounds are run on a folder and, with TIDEBASE_TEST_S3_ENV, on a bucket of a real S3 server;
 * CLUSTER_STORE names one of the two. CLUSTER_LOGS is a folder that keeps what the servers logged, CLUSTER_SERVER_CORES
 * the only cores that they may run on.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { SqlAnswer } from '../../protocol/sql.ts';
import type { ImportResult } from '../../protocol/write.ts';
import { ApiClient } from '../support/api-client.ts';
import { type ClusterServer, metric, ServerCluster, stateOf } from '../support/cluster.ts';
import { ClusterLoad } from '../support/cluster-load.ts';
import { measuredColumns, tableOf } from '../support/cluster-measured.ts';
import { clusterFaults, clusterRounds, faultsOfS3 } from '../support/cluster-rounds.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { seededRandom } from '../support/model.ts';
import { newBucket, noS3Reason } from '../support/s3-server.ts';
import { ServerProcess } from '../support/server-process.ts';

const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const rounds = Number(process.env.CLUSTER_ROUNDS ?? 0);
const seed = Number(process.env.CLUSTER_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** So many that each server owns some of them, but for one time in thousands. */
const names = Array.from({ length: 27 }, (_, at) => `n${at}`);

describe('three servers on one store', { concurrency: 1 }, () => {
  let cluster: ServerCluster;
  let key: string;
  let load: ClusterLoad;

  const at = (index: number): ClusterServer => cluster.servers[index] ?? assert.fail('no such server');
  const api = (index: number, credential = key) => new ApiClient(at(index).process.url, credential);

  before(async () => {
    cluster = await ServerCluster.start({ servers: 3 });
    key = (await new ApiClient(at(1).process.url).signup('ada@example.com')).key;
    load = new ClusterLoad({
      key,
      name: 'killed',
      namespaces: 12,
      everyMs: 300,
      random: seededRandom(22),
      urls: () => cluster.running.map(({ process }) => process.url),
    });
  });

  after(async () => {
    load.close();
    await cluster.stop();
    const errors = cluster.servers.flatMap(({ process }) => process.loggedErrors());
    // The stranger's key, and notes of usage that were on their way to the server that was killed.
    const expected = /wrong cluster key|usage may not have been counted/;
    assert.deepEqual(
      errors.filter((line) => !expected.test(line)),
      [],
    );
  });

  it('what is written through one is read through all, by id, by search and by SQL', async () => {
    await Promise.all(names.map((name) => api(0).put(name, [{ id: 'a', text: `the tide of ${name}` }])));

    for (const index of [0, 1, 2])
      for (const name of names) {
        assert.equal((await api(index).get(name, 'a')).text, `the tide of ${name}`);
        assert.equal((await api(index).search(name, { q: 'tide' })).hits.length, 1);
        const sql = { sql: 'SELECT COUNT(*) AS n FROM docs' };
        const { rows } = await api(index).call<SqlAnswer>('POST', `/v1/namespaces/${name}/sql`, sql);
        assert.deepEqual(rows, [[1]]);
      }
    const served = await Promise.all(
      cluster.servers.map(({ metricsUrl }) =>
        metric(metricsUrl, 'tidebase_forwards_served_total{outcome="delivered"}'),
      ),
    );
    assert.ok(
      served.every((count) => count > 0),
      `each owns something: ${served}`,
    );
  });

  it('a file goes through any of them to the server that imports it', async () => {
    const csv = 'day,place\n2026-03-01,Dover\n2026-03-02,Leith\n';
    await Promise.all(
      names.slice(0, 4).map(async (name) => {
        const path = `/v1/namespaces/${name}/import?format=csv&text=place`;
        const { status, body } = await api(2).request('POST', path, { body: csv });
        assert.equal(status, 200, body.toString());
        assert.equal((JSON.parse(body.toString()) as ImportResult).written, 2);
      }),
    );
    for (const name of names.slice(0, 4)) assert.equal((await api(1).count(name)).count, 3);
  });

  it('an agent finds the same through each of them', async () => {
    for (const index of [0, 1, 2])
      for (const name of names.slice(0, 3)) {
        const caller = new McpCaller(at(index).process.url, key);
        const { isError, structured } = await caller.call('search', { namespace: name, query: 'tide' });
        assert.equal(isError, false, structured);
        assert.equal(JSON.parse(structured).hits.length, 1);
      }
  });

  it('a key that is revoked through one is refused by all at once', async () => {
    for (const index of [0, 1, 2]) {
      const made = await api(index).createKey({ name: `k${index}`, scope: 'read' });
      for (const other of [0, 1, 2]) await api(other, made.key).get('n0', 'a');

      await api((index + 1) % 3).revokeKey(made.id);

      for (const other of [0, 1, 2])
        await api(other, made.key).refused({ status: 401, code: 'unauthorized' }, 'GET', '/v1/me');
    }
  });

  it('wrong passwords are counted once for all of them', async () => {
    const email = 'guessed@example.com';
    await api(0).signup(email);
    const logIn = async (index: number, password: string) =>
      (await api(index).request('POST', '/v1/login', { body: { email, password } })).status;
    for (let n = 0; n < 10; n++) assert.equal(await logIn(n % 3, `wrong horse ${n}`), 401);

    // The tenth closes the account to this network for half a minute, through each of them.
    for (const index of [0, 1, 2]) assert.equal(await logIn(index, 'correct horse'), 429);
  });

  it('one that is stopped hands over what it owns, and no request through the others fails', async (t) => {
    await load.fill();
    const { process, metricsUrl } = at(2);
    const placed = () => metric(at(0).metricsUrl, 'tidebase_cluster_members{state="active"}');
    let asked = [...cluster.running.slice(0, 2)];
    const others = new ClusterLoad({
      key,
      name: 'stopped',
      namespaces: 12,
      everyMs: 120,
      random: seededRandom(23),
      urls: () => asked.map((server) => server.process.url),
    });
    await others.fill();
    others.begin();
    assert.equal(await stateOf(metricsUrl), 'active');

    assert.deepEqual(await process.stop(), { code: 0, signal: null });

    assert.equal(await placed(), 2);
    await others.stop();
    t.diagnostic(
      `${others.answered} answers; longest without a read: ${Math.round(others.gaps().at(-1) ?? 0)} ms`,
    );
    assert.deepEqual([[...others.failures], others.wrong], [[], []]);
    asked = [];
    others.close();
  });

  it('it joins again when it is started again', async () => {
    await cluster.restart(at(2));

    for (const { process } of cluster.servers) assert.deepEqual(await load.lostAt(process.url), []);
  });

  it('after kill -9 of one the others answer for it, with all that was acknowledged', async (t) => {
    load.begin();
    await load.readEach(1);
    const began = performance.now();

    await at(1).process.kill();
    load.measure();
    await load.readEach(1);

    t.diagnostic(
      `all answered ${Math.round(performance.now() - began)} ms after the kill; ` +
        `${[...load.failures].map(([kind, count]) => `${count} ${kind}`)}`,
    );
    await load.stop();
    assert.deepEqual(load.wrong, []);
    for (const kind of load.failures.keys())
      assert.match(kind, /^(503 unavailable|503 write_unknown|429 [a-z_]+|no answer)$/);
    for (const { process } of cluster.running) assert.deepEqual(await load.lostAt(process.url), []);
  });

  it('a command prints who is there', async () => {
    const options = at(0).options;
    const env = { ...options.env, TIDEBASE_DATA_DIR: options.folder };
    const { stdout: output } = await promisify(execFile)(process.execPath, [mainFile, 'cluster'], { env });

    assert.match(
      output,
      /^view [0-9]+, placement [0-9]+, 2 servers\nSTATE +ADDRESS +SERVER +LOG +NAMESPACES/,
    );
    assert.equal(
      [
        ...output.matchAll(
          /^active +127\.0\.0\.1:[0-9]+ +[0-9a-f]{16} +[0-9a-z]{30} +[0-9]+ +[0-9.]+ s ago +[0-9]+ object/gm,
        ),
      ].length,
      2,
    );
  });

  it('one that was killed comes back', async () => {
    await cluster.restart(at(1));

    for (const { process } of cluster.servers) assert.deepEqual(await load.lostAt(process.url), []);
  });

  it('all of them are stopped at once beside writes, end in order, and have what was acknowledged when they start again', async () => {
    const writes = new ClusterLoad({
      key,
      name: 'all-stopped',
      namespaces: 30,
      everyMs: 150,
      random: seededRandom(seed),
      triesMax: 10,
      urls: () => cluster.servers.map(({ process }) => process.url),
    });
    await writes.fill();
    writes.begin();
    await sleep(1_000);
    await cluster.stop();
    await cluster.startAgain();
    await writes.stop();
    assert.deepEqual(writes.wrong, [], `seed ${seed}`);
    for (const { process } of cluster.servers)
      assert.deepEqual(await writes.lostAt(process.url), [], `seed ${seed}`);
    writes.close();
  });

  it('a server with another key is refused at the start, with a line on both sides', async () => {
    const options = { ...at(0).options, folder: `${at(0).options.folder}-stranger` };
    const [port] = await freePorts(1);
    const env = {
      ...options.env,
      TIDEBASE_METRICS_PORT: '',
      TIDEBASE_PORT: '0',
      TIDEBASE_PEER_PORT: String(port),
      TIDEBASE_CLUSTER_KEY: Buffer.alloc(32, 9).toString('base64'),
    };
    const stranger = new ServerProcess({ ...options, env });

    assert.equal((await stranger.end()).code, 78);

    assert.match(stranger.errors, /tidebase cannot start: wrong cluster key/);
    const told = () => cluster.servers.some(({ process }) => /wrong cluster key/.test(process.errors));
    await eventually(told, 'the others tell of it');
  });
});

if (rounds > 0)
  describe(`bad days of three servers (CLUSTER_SEED=${seed})`, { concurrency: 1 }, () => {
    const rows: (readonly string[])[] = [['store', ...measuredColumns, 'lost', 'wrong']];
    const missed: string[] = [];
    const asked = (value: string, by: string | undefined) =>
      by === undefined || by.split(';').includes(value);

    for (const store of ['folder', 's3'] as const)
      for (const fault of clusterFaults)
        if (asked(store, process.env.CLUSTER_STORE) && asked(fault, process.env.CLUSTER_FAULT)) {
          const needsS3 = (store === 's3' ? noS3Reason : null) ?? false;
          const skip = store === 'folder' && faultsOfS3.includes(fault) ? 'a folder is not away' : needsS3;
          const times = fault === 'kill -9' ? 3 * rounds : rounds;
          it(`on ${store}: ${fault}, ${times} times: nothing is lost and nothing is wrong`, {
            skip,
          }, async () => {
            const bucket = store === 's3' ? await newBucket() : null;
            const random = seededRandom(seed);
            const { CLUSTER_LOGS: logs } = process.env;
            const logFolder =
              logs === undefined ? null : join(logs, `${store}-${fault.replaceAll(/\W+/g, '-')}`);
            const { CLUSTER_SERVER_CORES: serverCores = null } = process.env;
            const options = { fault, rounds: times, namespaces: 200, random, bucket, logFolder, serverCores };
            const { lost, wrong, measured, broken } = await clusterRounds(options);

            for (const each of measured) {
              rows.push([store, ...each.row, String(lost.length), String(wrong.length)]);
              if (each.missed) missed.push(`${store}, ${each.name}: ${each.missed}`);
            }
            assert.ifError(broken);
            assert.deepEqual([lost, wrong], [[], []]);
            for (const { failures } of measured)
              for (const kind of failures.keys())
                assert.match(kind, /^(503 unavailable|503 write_unknown|429 [a-z_]+|no answer)$/);
          });
        }

    it('the table of all times', (t) => {
      for (const line of tableOf(rows)) t.diagnostic(line);
      assert.deepEqual(missed, []);
    });
  });
