/**
 * The topology of deploy/compose.yml without containers: three servers and deploy/haproxy.cfg before them. With
 * TIDEBASE_TEST_S3_ENV they share a bucket of a real S3 server, else a folder. BALANCER_ROUNDS sets how often all of them are
 * restarted, one after another as the runbook says, while clients read and write through the balancer.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { ServerCluster, stateOf } from '../support/cluster.ts';
import { ClusterLoad } from '../support/cluster-load.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { seededRandom } from '../support/model.ts';
import { repositoryRoot } from '../support/repository.ts';
import { newBucket, noS3Reason, serverEnvOf } from '../support/s3-server.ts';

const rounds = Number(process.env.BALANCER_ROUNDS ?? 1);
const noHaproxy = spawnSync('haproxy', ['-v']).error !== undefined && 'there is no haproxy';

describe('three servers behind the balancer', { concurrency: 1, skip: noHaproxy }, () => {
  let cluster: ServerCluster;
  let balancer: ChildProcess;
  let url: string;
  let said = '';

  before(async () => {
    const env = noS3Reason === null ? serverEnvOf(await newBucket()) : {};
    cluster = await ServerCluster.start({ servers: 3, env });
    const [port = 0] = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const servers = cluster.servers.flatMap(({ process: server, metricsUrl }, at) => [
      [`TIDEBASE_${at + 1}`, `127.0.0.1:${server.port}`],
      [`TIDEBASE_READY_${at + 1}`, new URL(metricsUrl).port],
    ]);
    balancer = spawn('haproxy', ['-db', '-f', join(repositoryRoot(), 'deploy/haproxy.cfg')], {
      env: { ...process.env, TIDEBASE_LISTEN: `127.0.0.1:${port}`, ...Object.fromEntries(servers) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [balancer.stdout, balancer.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    const isReady = async () => (await fetch(`${url}/healthz`).catch(() => null))?.ok === true;
    await eventually(isReady, () => `the balancer has a server: ${said}`, 100);
  });

  after(async () => {
    balancer.kill('SIGKILL');
    await cluster.stop();
  });

  it('answers for all of them, and takes files', async () => {
    const { key } = await new ApiClient(url).signup('balanced@example.com');
    const client = new ApiClient(url, key);
    const docs = Array.from({ length: 2_000 }, (_, at) => ({ id: `d${at}`, text: `line ${at} of the tide` }));
    await client.put('notes', docs);
    assert.equal((await client.count('notes', { q: 'tide' })).count, docs.length);
    const csv = `id,text\n${docs.map(({ id, text }) => `${id},${text}`).join('\n')}\n`;
    const imported = await client.request('POST', '/v1/namespaces/rows/import?format=csv&text=text', {
      body: csv,
    });
    assert.equal(imported.status, 200, imported.body.toString());
    assert.equal((await client.count('rows', { q: 'tide' })).count, docs.length);
    client.close();
  });

  it('restarts them one after another, and no request fails that is asked again as documented', async (t) => {
    const { key } = await new ApiClient(url).signup('rolling@example.com');
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = seededRandom(seed);
    const load = new ClusterLoad({
      key,
      name: 'space',
      namespaces: 20,
      everyMs: 100,
      random,
      triesMax: 5,
      urls: () => [url],
    });
    await load.fill();
    load.begin();
    try {
      for (let round = 0; round < rounds; round++)
        for (const server of cluster.servers) {
          assert.deepEqual(await server.process.stop(), { code: 0, signal: null }, server.process.errors);
          await cluster.restart(server);
          assert.equal(await stateOf(server.metricsUrl), 'active');
        }
    } finally {
      await load.stop();
    }
    t.diagnostic(
      `seed ${seed}: ${load.answered} answers, ${load.askedAgain} of them asked again; longest without a read ${Math.round(load.gaps().at(-1) ?? 0)} ms`,
    );
    assert.deepEqual([...load.failures], [], `seed ${seed}`);
    assert.deepEqual(load.wrong, [], `seed ${seed}`);
    assert.deepEqual(await load.lostAt(url), [], `seed ${seed}`);
    load.close();
  });
});
