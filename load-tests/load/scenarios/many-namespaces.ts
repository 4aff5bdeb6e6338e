import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { batchBody } from '../../documents.ts';
import { inParallel } from '../../in-parallel.ts';
import { Connections } from '../../measured-server.ts';
import { getOf } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const documents = 50;
const writers = 16;
const ratePerSecond = 50;

export const manyNamespaces: Scenario = {
  name: 'many-namespaces',
  about: 'One search in each of many namespaces: cold (an empty cache), from the local disk, and warm.',
  async prepare(stage) {
    const namespaces = sizedCount(stage.sizes, 600, 60);
    const client = new Connections(stage.server.process.url, stage.server.key, writers);
    await inParallel(namespaces, writers, async (i) => {
      await client.post(`/v1/namespaces/many-${i}/docs`, batchBody(i * documents, documents));
    });
    client.close();
    const requests = Array.from({ length: namespaces }, (_, i) =>
      getOf(`/v1/namespaces/many-${i}/search?q=snapshots&limit=5`),
    );
    const emptyCache = (folders: readonly string[]) => {
      for (const folder of folders) rmSync(join(folder, 'cache'), { recursive: true, force: true });
    };
    return {
      settings: { namespaces, 'documents of each': documents, store: 'a folder of this machine' },
      keys: [stage.server.key],
      phases: [
        {
          kind: 'passes',
          name: 'first and later searches',
          ratePerSecond,
          connections: 32,
          requests,
          passes: [
            { name: 'cold', before: () => stage.restart(emptyCache) },
            { name: 'local', before: () => stage.restart(() => undefined) },
            { name: 'warm', before: async () => undefined },
          ],
        },
      ],
    };
  },
};
