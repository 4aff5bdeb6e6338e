import { postOf, throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';

const namespaces = 10;
const ids = 500;

export const smallWrites: Scenario = {
  name: 'small-writes',
  about: 'One small document in each request, new ones at first and replacements later, to ten namespaces.',
  async prepare({ server }) {
    const requests = Array.from({ length: namespaces * ids }, (_, i) =>
      postOf(`/v1/namespaces/events-${i % namespaces}/docs`, {
        docs: [{ id: `event-${i}`, text: `event ${i} of somebody with little to say`, meta: { number: i } }],
      }),
    );
    return {
      settings: { namespaces, 'different documents': requests.length },
      keys: [server.key],
      // A write waits for its group, up to a quarter of a second: with few connections that is all that is measured.
      phases: throughputAndLatency({ name: 'writes', tool: 'autocannon', connections: 1_024, requests }),
    };
  },
};
