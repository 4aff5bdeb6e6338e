import { batchBody, documentIdOf } from '../../documents.ts';
import { inParallel } from '../../in-parallel.ts';
import { Connections } from '../../measured-server.ts';
import type { LoopRequest } from '../../request-loop.ts';
import { throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const signUpsAtOnce = 4;
const documents = 100;
const readsOfEach = 3;

export const manyTenants: Scenario = {
  name: 'many-tenants',
  about:
    'Three reads and one search of each of many tenants in turn, each with a key and a namespace of its own.',
  async prepare(stage) {
    const tenants = sizedCount(stage.sizes, 200);
    const client = new Connections(stage.server.process.url, '', signUpsAtOnce);
    const keys: string[] = [];
    await inParallel(tenants, signUpsAtOnce, async (i) => {
      const person = { email: `tenant-${i}@example.com`, name: `T${i}`, password: 'correct horse' };
      const answer = await client.post('/v1/signup', Buffer.from(JSON.stringify(person)));
      const { key } = JSON.parse(answer) as { readonly key: string };
      keys[i] = key;
      const written = await client.send(
        'POST',
        '/v1/namespaces/notes/docs',
        batchBody(i * documents, documents),
        key,
      );
      if (written.status !== 200) throw new Error(`a first write: ${written.status} ${written.text}`);
    });
    client.close();
    const requests = keys.flatMap((_, tenant) =>
      Array.from({ length: readsOfEach + 1 }, (_, round) => requestOf(tenant, round)),
    );
    return {
      settings: { tenants, 'documents of each': documents },
      keys,
      phases: throughputAndLatency({
        name: 'reads and searches',
        tool: 'autocannon',
        connections: 32,
        requests,
      }),
    };
  },
};

function requestOf(tenant: number, round: number): LoopRequest {
  const base = '/v1/namespaces/notes';
  const id = documentIdOf(tenant * documents + round * 7);
  const path = round < readsOfEach ? `${base}/docs/${id}` : `${base}/search?q=snapshots&limit=10`;
  return { client: tenant, method: 'GET', path };
}
