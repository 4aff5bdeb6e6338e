/**
 * `npm run measure -- puts`: what many tenants with small writes cost in PUTs. A thousand tenants, one namespace each, write one small
 * document at a time, in turn, at a set rate. The measured time is longer than the age at which unflushed records are
 * flushed, so every tenant's and namespace's manifest is written in it. Ends with 1 where a bar is missed.
 */
import { isQuick, type Judge, judged, sleep } from './judge.ts';
import { Connections, startMeasured } from './measured-server.ts';
import { latencyText } from './open-loop.ts';
import { treeCpuSeconds } from './processes.ts';
import { countsBetween, putsTable, readStoreCounts, totalCounts } from './store-counts.ts';

const tenants = isQuick ? 20 : 1_000;
const signUpsAtOnce = 4;
const writesPerSecond = 200;
const tickMs = 5;
/** A write waits for its group, a quarter of a second: this many are on their way at once. */
const connections = 128;
const warmUpSeconds = isQuick ? 2 : 20;
/** `flushAfterMs` is 5 minutes. */
const seconds = isQuick ? 10 : 360;
const logPutsPerSecondMax = 4;

await judged(async (judge) => {
  const { process: server } = await startMeasured();
  const client = new Connections(server.url, '', connections);
  const began = performance.now();
  const keys = await signUpAll(client);
  judge.say(`${tenants} tenants signed up in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
  const writes = openLoopOfWrites(client, keys);
  await sleep(warmUpSeconds * 1_000);
  const before = await readStoreCounts(server);
  const cpuBefore = treeCpuSeconds(server.processId);
  const startedAt = performance.now();
  writes.latenciesMs.length = 0;
  await sleep(seconds * 1_000);
  const counts = countsBetween(before, await readStoreCounts(server));
  const measuredSeconds = (performance.now() - startedAt) / 1_000;
  const cpu = treeCpuSeconds(server.processId) - cpuBefore;
  await writes.stop();
  tell(judge, { counts, measuredSeconds, cpu, ...writes });
  client.close();
  await server.stop();
});

function tell(
  { tell, say }: Judge,
  run: {
    readonly counts: ReturnType<typeof countsBetween>;
    readonly measuredSeconds: number;
    readonly cpu: number;
    readonly latenciesMs: readonly number[];
    readonly failures: () => number;
  },
): void {
  const { counts, measuredSeconds } = run;
  // A time that begins right before one PUT and ends right after another holds one more than its share.
  const perSecond = Math.max(0, (counts.get('log')?.puts ?? 0) - 1) / measuredSeconds;
  tell({
    name: `log PUTs, ${tenants} tenants, ${writesPerSecond} writes/s`,
    value: `${perSecond.toFixed(2)} a second`,
    bar: `≤ ${logPutsPerSecondMax}`,
    ok: perSecond <= logPutsPerSecondMax && run.failures() === 0,
    note:
      `${measuredSeconds.toFixed(0)} s; ${run.latenciesMs.length} writes were acknowledged: ${latencyText(run.latenciesMs)}; ` +
      `${run.failures()} failed; the server used ${((run.cpu / measuredSeconds) * 100).toFixed(0)} % of a core`,
  });
  say(`    all PUTs: ${(totalCounts(counts).puts / measuredSeconds).toFixed(2)} a second`);
  for (const line of putsTable(counts, measuredSeconds)) say(line);
}

async function signUpAll(client: Connections): Promise<string[]> {
  const keys: string[] = [];
  let next = 0;
  const signUp = async () => {
    for (let number = next++; number < tenants; number = next++) {
      const person = { email: `t${number}@example.com`, name: `T${number}`, password: 'correct horse' };
      const answer = await client.post('/v1/signup', Buffer.from(JSON.stringify(person)));
      keys.push((JSON.parse(answer) as { key: string }).key);
    }
  };
  await Promise.all(Array.from({ length: signUpsAtOnce }, signUp));
  return keys;
}

function openLoopOfWrites(client: Connections, keys: readonly string[]) {
  const latenciesMs: number[] = [];
  const running = new Set<Promise<void>>();
  const beganAt = performance.now();
  let sent = 0;
  let failures = 0;
  const timer = setInterval(() => {
    for (; beganAt + (sent * 1_000) / writesPerSecond <= performance.now(); sent++) {
      const intendedAt = beganAt + (sent * 1_000) / writesPerSecond;
      const writing: Promise<void> = write(client, keys[sent % keys.length] ?? '', sent)
        .then((taken) => {
          if (taken) latenciesMs.push(performance.now() - intendedAt);
          else failures++;
        })
        .finally(() => running.delete(writing));
      running.add(writing);
    }
  }, tickMs);
  return {
    latenciesMs,
    failures: () => failures,
    async stop() {
      clearInterval(timer);
      await Promise.all(running);
    },
  };
}

async function write(client: Connections, key: string, number: number): Promise<boolean> {
  const document = {
    id: `n${number % 10_000}`,
    text: `event ${number} of a tenant with little to say`,
    meta: { number },
  };
  const body = Buffer.from(JSON.stringify({ docs: [document] }));
  const { status } = await client.send('POST', '/v1/namespaces/events/docs', body, key);
  return status === 200;
}
