import { batchBody, documentIdOf } from '../../documents.ts';
import { inParallel } from '../../in-parallel.ts';
import { Connections } from '../../measured-server.ts';
import { getOf, postOf, throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const documents = 500;
const writers = 8;
const nameOf = (number: number) => `shared-${number}`;

export const threeServers: Scenario = {
  name: 'three-servers',
  about:
    'Three servers on an S3 server behind HAProxy: reads and searches in many namespaces, then the same beside writes while all servers are restarted one after another.',
  servers: 'three',
  async prepare(stage) {
    const namespaces = sizedCount(stage.sizes, 60, 12);
    const client = new Connections(stage.server.process.url, stage.server.key, writers);
    await inParallel(namespaces, writers, async (i) => {
      await client.post(`/v1/namespaces/${nameOf(i)}/docs`, batchBody(i * documents, documents));
    });
    client.close();
    await stage.settle(Array.from({ length: namespaces }, (_, i) => nameOf(i)));
    const of = <T>(make: (number: number) => T) => Array.from({ length: namespaces }, (_, i) => make(i));
    const reads = of((i) =>
      getOf(`/v1/namespaces/${nameOf(i)}/docs/${documentIdOf(i * documents + 7 * (i % 50))}`),
    );
    const searches = of((i) => getOf(`/v1/namespaces/${nameOf(i)}/search?q=snapshots&limit=10`));
    // The same documents again and again: a write that is repeated changes nothing.
    const writes = of((i) =>
      postOf(`/v1/namespaces/${nameOf(i)}/docs`, {
        docs: [{ id: `again-${i}`, text: `written by client ${i}` }],
      }),
    );
    return {
      settings: {
        servers: 3,
        namespaces,
        'documents of each': documents,
        store: 'an S3 server of this machine',
      },
      keys: [stage.server.key],
      phases: [
        ...throughputAndLatency({
          name: 'reads and searches',
          tool: 'autocannon',
          connections: 32,
          requests: reads.flatMap((read, i) => [read, read, read, ...searches.slice(i, i + 1)]),
        }),
        {
          kind: 'restarts',
          name: 'while servers restart',
          connections: 64,
          streams: [
            { kind: 'read', ratePerSecond: 100, requests: reads },
            { kind: 'search', ratePerSecond: 20, requests: searches },
            { kind: 'small write', ratePerSecond: 20, requests: writes },
          ],
        },
      ],
    };
  },
};
