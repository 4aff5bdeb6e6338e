import { batchBody, documentBytes, documentIdOf } from '../../documents.ts';
import { Connections } from '../../measured-server.ts';
import { getOf, throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const namespace = 'reads';
const batchDocuments = 1_000;
/** Different documents that are asked for, spread over all of them. */
const asked = 1_000;

export const pointReads: Scenario = {
  name: 'point-reads',
  about: 'Single documents by their ids, warm, from segments.',
  async prepare(stage) {
    const documents = sizedCount(stage.sizes, 100_000, 10_000);
    const client = new Connections(stage.server.process.url, stage.server.key, 1);
    for (let first = 0; first < documents; first += batchDocuments)
      await client.post(`/v1/namespaces/${namespace}/docs`, batchBody(first, batchDocuments));
    client.close();
    await stage.settle([namespace]);
    const requests = Array.from({ length: asked }, (_, i) =>
      getOf(`/v1/namespaces/${namespace}/docs/${documentIdOf(Math.floor((i * documents) / asked))}`),
    );
    return {
      settings: { documents, 'bytes a document': documentBytes },
      keys: [stage.server.key],
      phases: throughputAndLatency({ name: 'reads', tool: 'wrk', connections: 64, requests }),
    };
  },
};
