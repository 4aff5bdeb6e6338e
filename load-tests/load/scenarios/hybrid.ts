import { Chance } from '../../../test/simulation/chance.ts';
import { logLines } from '../../log-line-texts.ts';
import { Connections } from '../../measured-server.ts';
import { postUntilTaken } from '../../put-texts.ts';
import type { LoopRequest } from '../../request-loop.ts';
import { whenVectorsIndexed } from '../../vector-counts.ts';
import { clusteredVectors } from '../../vector-set.ts';
import { postOf, throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const namespace = 'hybrid';
const dims = 128;
const asked = 100;
const batchDocuments = 1_000;
const seed = 20_260_101;
/** Words of the lines' paths: each stands in one line of five or more. */
const words = ['users', 'orders', 'invoices', 'sessions', 'payments', 'shipments'];

export const hybrid: Scenario = {
  name: 'hybrid',
  about: 'The nearest of a vector among lines that have a word, and the two orders fused by rank.',
  async prepare(stage) {
    const documents = sizedCount(stage.sizes, 50_000);
    const { values } = clusteredVectors(documents + asked, dims, seed);
    const base64 = (row: number) => Buffer.from(values.buffer, row * dims * 4, dims * 4).toString('base64');
    const client = new Connections(stage.server.process.url, stage.server.key, 1);
    let batch: object[] = [];
    let row = 0;
    for (const { id, text } of logLines(documents, new Chance(seed, 0))) {
      batch.push({ id, text, vector_b64: base64(row++) });
      if (batch.length < batchDocuments && row < documents) continue;
      const body = Buffer.from(JSON.stringify({ docs: batch }));
      await postUntilTaken(client, `/v1/namespaces/${namespace}/docs`, body);
      batch = [];
    }
    client.close();
    await stage.settle([namespace]);
    const requests = Array.from({ length: asked }, (_, i) =>
      postOf(`/v1/namespaces/${namespace}/search`, {
        q: words[i % words.length],
        vector_b64: base64(documents + i),
        limit: 10,
        ...(i % 2 === 0 ? {} : { rank: 'rrf' }),
      }),
    );
    // A quick run has too few for a graph. What nobody has searched since the restart gets none.
    if (!stage.sizes.isQuick) {
      const searching = new Connections(stage.server.process.url, stage.server.key, 1);
      const { path, body = '' } = requests[0] as LoopRequest;
      await searching.post(path, Buffer.from(body));
      searching.close();
      await whenVectorsIndexed(stage.server.process, documents / 2);
    }
    return {
      settings: { documents, dimensions: dims },
      keys: [stage.server.key],
      phases: throughputAndLatency({
        name: 'hybrid searches',
        tool: 'autocannon',
        connections: 16,
        requests,
      }),
    };
  },
};
