import { batchBody, documentIdOf } from '../../documents.ts';
import { inParallel } from '../../in-parallel.ts';
import { sleep } from '../../judge.ts';
import { Connections } from '../../measured-server.ts';
import { latencyText } from '../../open-loop.ts';
import { getOf } from '../phases.ts';
import type { Scenario, Stage, TextFigure } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const namespace = 'reads';
const documents = 1_000;
const signUpsAtOnce = 4;
const password = 'correct horse';

export const loginStorm: Scenario = {
  name: 'login-storm',
  about: 'Single documents at a steady rate, alone and while many people log in again and again.',
  async prepare(stage) {
    const people = sizedCount(stage.sizes, 200, 20);
    const { url } = stage.server.process;
    const client = new Connections(url, '', signUpsAtOnce);
    await inParallel(people, signUpsAtOnce, async (i) => {
      const person = { email: emailOf(i), name: `P${i}`, password };
      await client.post('/v1/signup', Buffer.from(JSON.stringify(person)));
    });
    const path = `/v1/namespaces/${namespace}/docs`;
    const written = await client.send('POST', path, batchBody(0, documents), stage.server.key);
    client.close();
    if (written.status !== 200) throw new Error(`a first write: ${written.status} ${written.text}`);
    return {
      settings: { people, 'reads a second': 200 },
      keys: [stage.server.key],
      phases: [
        {
          kind: 'beside',
          name: 'reads',
          ratePerSecond: 200,
          connections: 64,
          requests: Array.from({ length: documents }, (_, i) => getOf(`${path}/${documentIdOf(i)}`)),
          work: { name: 'logins', start: () => startStorm(stage, people) },
        },
      ],
    };
  },
};

const emailOf = (person: number) => `storm-${person}@example.com`;

/** Everybody logs in and does so again when answered; who is told to wait waits. */
function startStorm({ server }: Stage, people: number) {
  const client = new Connections(server.process.url, '', people);
  const latenciesMs: number[] = [];
  const refusals = new Map<number, number>();
  const began = performance.now();
  let isStopping = false;
  const logIn = async (person: number) => {
    const body = Buffer.from(JSON.stringify({ email: emailOf(person), password }));
    while (!isStopping) {
      const sentAt = performance.now();
      const { status, retryAfterMs } = await client.send('POST', '/v1/login', body);
      if (status === 200) latenciesMs.push(performance.now() - sentAt);
      else refusals.set(status, (refusals.get(status) ?? 0) + 1);
      if (status !== 200) await sleep(Math.max(retryAfterMs, 100));
    }
  };
  const storm = Promise.all(Array.from({ length: people }, (_, person) => logIn(person)));
  // Told by `stop`; without this a failure meanwhile would end the process.
  storm.catch(() => undefined);
  return {
    async stop(): Promise<readonly TextFigure[]> {
      isStopping = true;
      await storm;
      client.close();
      const seconds = (performance.now() - began) / 1_000;
      const refused = [...refusals].map(([status, times]) => `${times} × ${status}`).join(', ');
      return [
        { name: 'logins', value: `${(latenciesMs.length / seconds).toFixed(1)} a second` },
        { name: 'a login', value: latencyText(latenciesMs) },
        { name: 'logins refused', value: refused === '' ? '0' : refused },
      ];
    },
  };
}
