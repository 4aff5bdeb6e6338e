import { batchBody, documentBytes } from '../../documents.ts';
import type { LoopRequest } from '../../request-loop.ts';
import { throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';

const batchDocuments = 1_000;
const batches = 8;
const namespaces = 4;

export const batchWrites: Scenario = {
  name: 'batches',
  about: 'A thousand documents of 500 bytes in each request, new ones at first and replacements later.',
  async prepare({ server }) {
    const requests = Array.from(
      { length: batches },
      (_, i): LoopRequest => ({
        client: 0,
        method: 'POST',
        path: `/v1/namespaces/batches-${i % namespaces}/docs`,
        body: batchBody(i * batchDocuments, batchDocuments).toString(),
      }),
    );
    return {
      settings: { 'documents a batch': batchDocuments, 'bytes a document': documentBytes, namespaces },
      keys: [server.key],
      phases: throughputAndLatency({
        name: 'batches',
        tool: 'autocannon',
        // Batches wait for their groups as small writes do: with few connections that is all that is measured.
        connections: 24,
        requests,
        carries: { unit: 'documents', count: batchDocuments },
      }),
    };
  },
};
