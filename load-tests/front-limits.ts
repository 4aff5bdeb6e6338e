/**
 * `npm run measure -- front-limits`: what the front does with more than it may let in. Reads at three times the limit, of which as many
 * are let in as the limit says and none of the others reaches an actor; refusals a second beside a bare server that sends the
 * same bytes; and warm reads while 200 people log in at once. Needs wrk. Ends with 1 where a bar is missed.
 *
 *   --only=accepted, refusals or logins
 */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constantOf, rawAnswer, startBare } from './bare.ts';
import { median, spread, thousands } from './bench-report.ts';
import { isQuick, type Judge, judged, sleep } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { latencyText, percentile, runOpenLoop } from './open-loop.ts';
import { textOption } from './options.ts';
import { temporaryFolder } from './server.ts';
import { answersPerSecond, wrkIsInstalled } from './wrk.ts';

const only = textOption('only');
const limitsTried = [100, 1_000];
const seconds = isQuick ? 3 : 10;
const connections = 32;
const documents = 100;
const namespace = 'limits';
const paths = Array.from({ length: documents }, (_, i) => `/v1/namespaces/${namespace}/docs/d${i}`);
const refusalBar = 0.5;
const rounds = isQuick ? 1 : 4;
const roundSeconds = isQuick ? 1 : 4;
const logins = 200;
const readsPerSecond = 200;
const readP99Ms = 15;

await judged(async (judge) => {
  const isAsked = (part: string) => only === null || only === part;
  if (isAsked('accepted')) for (const limit of limitsTried) await acceptedOf(judge, limit);
  if (isAsked('refusals')) {
    if (wrkIsInstalled()) await refusals(judge);
    else judge.say('wrk is not installed: refusals a second are not measured');
  }
  if (isAsked('logins')) await loginFlood(judge);
});

/** The unlimited plans, but for so many requests a second. */
async function serverWith(qps: number | null): Promise<MeasuredServer> {
  const plans = JSON.parse(readFileSync('load-tests/plans.unlimited.json', 'utf8'));
  const file = join(temporaryFolder(), 'plans.json');
  writeFileSync(file, JSON.stringify({ ...plans, free: { ...plans.free, qps } }));
  const server = await startMeasured({ supervised: true, env: { TIDEBASE_PLANS_FILE: file } });
  const client = new Connections(server.process.url, server.key, 1);
  const docs = Array.from({ length: documents }, (_, i) => ({ id: `d${i}`, text: `document ${i}` }));
  // A limit of one a second lets in one request a second.
  await sleep(1_100);
  await client.post(`/v1/namespaces/${namespace}/docs`, Buffer.from(JSON.stringify({ docs })));
  await sleep(1_100);
  client.close();
  return server;
}

async function acceptedOf({ tell }: Judge, limit: number): Promise<void> {
  const { process: server, key } = await serverWith(limit);
  const load = { url: server.url, key, paths, ratePerSecond: 3 * limit, seconds, connections };
  const { latenciesMs, failures } = await runOpenLoop(load);
  await sleep(1_500);
  const client = new Connections(server.url, key, 1);
  const { queries } = JSON.parse(await client.get('/v1/usage')) as { queries: number };
  client.close();
  await server.stop();
  const accepted = latenciesMs.length;
  tell({
    name: `let in at ${3 * limit} a second, limit ${limit}`,
    value: `${accepted} in ${seconds} s`,
    bar: `${limit * seconds} to ${limit * (seconds + 1)}`,
    ok: accepted >= limit * seconds && accepted <= limit * (seconds + 1) && queries === accepted,
    note: `${failures} refused; actors have answered ${queries} queries`,
  });
}

async function refusals({ tell }: Judge): Promise<void> {
  const server = await serverWith(1);
  const { url } = server.process;
  const path = paths[0] ?? '';
  const readAtOnce = () => new Connections(url, server.key, 1).send('GET', path, null);
  let answer = '';
  for (let tries = 0; answer === '' && tries < 5; tries++) {
    await readAtOnce();
    answer = await rawAnswer(url, path, server.key, 429).catch(() => '');
  }
  const bare = await startBare(constantOf(answer));
  const own: number[] = [];
  const others: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const measure = (base: string) =>
      answersPerSecond({ url: base + path, key: server.key, seconds: roundSeconds }, connections);
    others.push(await measure(bare.url));
    own.push(await measure(url));
  }
  bare.child.kill();
  await once(bare.child, 'exit');
  await server.process.stop();
  const ratio = median(own) / median(others);
  tell({
    name: 'refusals a second',
    value: `${ratio.toFixed(2)} of bare`,
    bar: `≥ ${refusalBar}`,
    ok: ratio >= refusalBar,
    note: `${thousands(median(own))} against ${thousands(median(others))}; ratios of ${rounds} rounds ${spread(
      own.map((rate, round) => rate / (others[round] ?? Number.NaN)),
      2,
    )}`,
  });
}

async function loginFlood({ tell }: Judge): Promise<void> {
  const { process: server, key } = await serverWith(null);
  const person = { email: 'flood@example.com', name: 'Flood', password: 'correct horse' };
  const client = new Connections(server.url, '', logins);
  await client.post('/v1/signup', Buffer.from(JSON.stringify(person)));
  const loop = { url: server.url, key, paths, ratePerSecond: readsPerSecond, seconds, connections: 64 };
  await runOpenLoop({ ...loop, seconds: 2 });
  const alone = await runOpenLoop(loop);
  const body = Buffer.from(JSON.stringify({ email: person.email, password: person.password }));
  let [stopping, answered, refused, other] = [false, 0, 0, 0];
  const login = async (): Promise<void> => {
    while (!stopping) {
      const { status, retryAfterMs } = await client.send('POST', '/v1/login', body);
      if (status === 200) answered++;
      else if (status === 429) refused++;
      else other++;
      if (status !== 200) await sleep(retryAfterMs);
    }
  };
  const flood = Array.from({ length: logins }, login);
  const beside = await runOpenLoop(loop);
  stopping = true;
  await Promise.all(flood);
  client.close();
  await server.stop();
  const [before, during] = [percentile(alone.latenciesMs, 0.99), percentile(beside.latenciesMs, 0.99)];
  const bar = Math.max(2 * before, readP99Ms);
  tell({
    name: `warm reads while ${logins} log in`,
    value: `p99 ${during.toFixed(1)} ms`,
    bar: `≤ ${bar.toFixed(1)} ms`,
    ok: during <= bar && beside.failures === 0 && other === 0,
    note: `alone ${latencyText(alone.latenciesMs)}; beside ${latencyText(beside.latenciesMs)}; ${answered} logins, ${refused} refused with 429, ${other} otherwise`,
  });
}
