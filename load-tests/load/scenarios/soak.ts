import { Connections } from '../../measured-server.ts';
import type { LoopRequest, RequestStream } from '../../request-loop.ts';
import { importLogRows, type LogRows, logNamespace, writeLogRows } from '../log-rows.ts';
import { getOf, postOf } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';
import { callOf } from './mcp-calls.ts';

/** What is written is replaced again and again: what grows is not the data. */
const notes = 2_000;
const churned = 20;
const churnDelay = 3;
const base = `/v1/namespaces/${logNamespace}`;
/** The client without a key. */
const nobody = 1;
const person = { email: 'soak@example.com', password: 'correct horse' };

export const soak: Scenario = {
  name: 'soak',
  about: 'A mix of everything at steady rates for an hour; memory, open files and stored objects are judged.',
  async prepare(stage) {
    const rows = await writeLogRows(sizedCount(stage.sizes, 50_000));
    await importLogRows(stage, rows);
    const client = new Connections(stage.server.process.url, '', 1);
    await client.post('/v1/signup', Buffer.from(JSON.stringify({ ...person, name: 'Soak' })));
    client.close();
    const streams = streamsOf(rows);
    const { soakWindows, soakWindowSeconds } = stage.sizes;
    return {
      settings: {
        lines: rows.rows,
        seconds: soakWindows * soakWindowSeconds,
        'requests a second': streams.reduce((sum, { ratePerSecond }) => sum + ratePerSecond, 0),
      },
      keys: [stage.server.key, ''],
      phases: [{ kind: 'soak', name: 'the mix', streams, connections: 32 }],
    };
  },
};

function streamsOf({ traces, rows }: LogRows): RequestStream[] {
  const lineId = (number: number) => `line-${String(number).padStart(8, '0')}`;
  const of = (kind: string, ratePerSecond: number, requests: readonly LoopRequest[]) => ({
    kind,
    ratePerSecond,
    requests,
  });
  return [
    of(
      'read',
      100,
      Array.from({ length: 500 }, (_, i) => getOf(`${base}/docs/${lineId((i * 37) % rows)}`)),
    ),
    of(
      'literal search',
      20,
      traces.map((trace) => getOf(`${base}/search?q=${trace}`)),
    ),
    of(
      'regex count',
      5,
      traces.map((trace) => countOf(trace)),
    ),
    of(
      'filter',
      5,
      Array.from({ length: 60 }, (_, i) => filterOf(`node-${i + 1}`)),
    ),
    of('SQL', 2, [
      postOf(`${base}/sql`, { sql: 'SELECT host, COUNT(*) AS n FROM docs GROUP BY host ORDER BY host' }),
    ]),
    of('tool call', 10, traces.map(callOf)),
    of(
      'small write',
      10,
      Array.from({ length: notes }, (_, i) => noteOf(i)),
    ),
    of('namespace made and deleted', 2, churn()),
    of('login', 0.5, [loginOf()]),
  ];
}

const countOf = (trace: string) =>
  postOf(`${base}/count`, { q: `trace=${trace.slice(0, 8)}[0-9a-f]+`, regex: true, limit: 0 });

const filterOf = (host: string) => postOf(`${base}/search`, { filter: { host, status: 500 }, limit: 20 });

const noteOf = (number: number) =>
  postOf('/v1/namespaces/notes/docs', {
    docs: [{ id: `note-${number}`, text: `note ${number} of somebody`, meta: { number } }],
  });

/**
 * Namespaces that come and go: each is deleted three requests after its first write, at two requests a second long after that was
 * answered.
 */
function churn(): LoopRequest[] {
  const path = (number: number) => `/v1/namespaces/churned-${number}`;
  return Array.from({ length: churned + churnDelay }, (_, i) => {
    const made = postOf(`${path(i)}/docs`, { docs: [{ id: 'a', text: 'here for a moment' }] });
    const deleted: LoopRequest = { client: 0, method: 'DELETE', path: path(i - churnDelay) };
    return [...(i >= churnDelay ? [deleted] : []), ...(i < churned ? [made] : [])];
  }).flat();
}

const loginOf = (): LoopRequest => ({
  client: nobody,
  method: 'POST',
  path: '/v1/login',
  body: JSON.stringify(person),
});
