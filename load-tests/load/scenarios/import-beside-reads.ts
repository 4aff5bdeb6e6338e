import { thousands } from '../../bench-report.ts';
import { batchBody, documentIdOf } from '../../documents.ts';
import { importFile } from '../../import-file.ts';
import { Connections } from '../../measured-server.ts';
import { writeLogRows } from '../log-rows.ts';
import { getOf } from '../phases.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const namespace = 'reads';
const documents = 1_000;

export const importBesideReads: Scenario = {
  name: 'import-beside-reads',
  about: 'Single documents at a steady rate, alone and while files of rows are imported one after the other.',
  async prepare(stage) {
    const client = new Connections(stage.server.process.url, stage.server.key, 1);
    await client.post(`/v1/namespaces/${namespace}/docs`, batchBody(0, documents));
    client.close();
    await stage.settle([namespace]);
    const { file, rows } = await writeLogRows(sizedCount(stage.sizes, 200_000));
    const requests = Array.from({ length: documents }, (_, i) =>
      getOf(`/v1/namespaces/${namespace}/docs/${documentIdOf(i)}`),
    );
    return {
      settings: { 'rows a file': rows, 'reads a second': 500 },
      keys: [stage.server.key],
      phases: [
        {
          kind: 'beside',
          name: 'reads',
          ratePerSecond: 500,
          connections: 64,
          requests,
          work: { name: 'imports', start: () => startImports(stage, file) },
        },
      ],
    };
  },
};

function startImports(stage: Stage, file: string) {
  let [isStopping, rows, files] = [false, 0, 0];
  const began = performance.now();
  const running = (async () => {
    while (!isStopping) {
      const path = `/v1/namespaces/table-${files++}/import?format=ndjson&id=id&text=text`;
      rows += (await importFile(stage.server, path, file)).rows;
    }
    return (performance.now() - began) / 1_000;
  })();
  // Told by `stop`; without this a failure meanwhile would end the process.
  running.catch(() => undefined);
  return {
    async stop() {
      isStopping = true;
      const seconds = await running;
      return [
        { name: 'rows imported', value: `${thousands(rows / seconds)} a second, ${thousands(rows)} in all` },
      ];
    },
  };
}
