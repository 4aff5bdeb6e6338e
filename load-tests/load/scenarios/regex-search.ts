import { importLogRows, logNamespace, writeLogRows } from '../log-rows.ts';
import { postOf, throughputAndLatency } from '../phases.ts';
import { besideRipgrep } from '../ripgrep-peer.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

/** As many digits of a trace as leave few lines to judge. */
const digitsKept = 6;

export const regexSearch: Scenario = {
  name: 'regex-search',
  about:
    'Log lines by regular expressions that few lines match, and exact counts of a rare word on one host.',
  async prepare(stage) {
    const rows = await writeLogRows(sizedCount(stage.sizes, 200_000));
    await importLogRows(stage, rows);
    const base = `/v1/namespaces/${logNamespace}`;
    const counted = (name: string, q: string) => ({
      name,
      ours: postOf(`${base}/count`, { q, regex: true, limit: 0 }),
      options: [q],
    });
    const requests = rows.traces.flatMap((trace, i) => {
      const search = postOf(`${base}/search`, {
        q: traceRegex(trace),
        regex: true,
        limit: 20,
      });
      const count = postOf(`${base}/count`, {
        q: `node-${10 + (i % 40)}\\..*quarantined`,
        regex: true,
        limit: 0,
      });
      return i % 10 === 9 ? [search, count] : [search];
    });
    return {
      settings: { lines: rows.rows },
      keys: [stage.server.key],
      phases: [
        ...throughputAndLatency({ name: 'searches', tool: 'autocannon', connections: 32, requests }),
        ...besideRipgrep(rows, [counted('few lines', traceRegex(rows.traces[0] ?? ''))]),
      ],
    };
  },
};

const traceRegex = (trace: string) =>
  `trace=${trace.slice(0, digitsKept)}[0-9a-f]+ (GET|POST|PUT|DELETE) /v2/\\w+`;
