import { importLogRows, logNamespace, writeLogRows } from '../log-rows.ts';
import { postOf, throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const hosts = 60;

export const filters: Scenario = {
  name: 'filters',
  about: 'Rows by conditions on their columns, with and without text: pages of 20 hits, and exact counts.',
  async prepare(stage) {
    const rows = await writeLogRows(sizedCount(stage.sizes, 200_000));
    await importLogRows(stage, rows);
    const base = `/v1/namespaces/${logNamespace}`;
    const requests = Array.from({ length: hosts }, (_, i) => {
      const host = `node-${i + 1}`;
      return [
        postOf(`${base}/search`, { filter: { host, level: 'ERROR' }, limit: 20 }),
        postOf(`${base}/search`, { filter: { status: [404, 500], took_ms: { gte: 1_000 + i } }, limit: 20 }),
        postOf(`${base}/search`, { q: 'payments', filter: { host, status: 500 }, limit: 20 }),
        postOf(`${base}/count`, { filter: { host, bytes: { gte: 500_000 } }, limit: 0 }),
      ];
    }).flat();
    return {
      settings: { rows: rows.rows, columns: 8 },
      keys: [stage.server.key],
      phases: throughputAndLatency({
        name: 'searches with filters',
        tool: 'autocannon',
        connections: 32,
        requests,
      }),
    };
  },
};
