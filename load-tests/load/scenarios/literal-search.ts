import { frequentWord, rareWord } from '../../log-line-texts.ts';
import { importLogRows, logNamespace, writeLogRows } from '../log-rows.ts';
import { getOf, postOf, throughputAndLatency } from '../phases.ts';
import { besideRipgrep } from '../ripgrep-peer.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

/** The mix of ten searches: seven for what stands in one line, two for a frequent word and one for a rare one. */
const perTen = { selective: 7, frequent: 2, rare: 1 };

export const literalSearch: Scenario = {
  name: 'literal-search',
  about:
    'Log lines by literal text: mostly what one line says, some frequent and rare words; 20 hits a page.',
  async prepare(stage) {
    const rows = await writeLogRows(sizedCount(stage.sizes, 200_000));
    await importLogRows(stage, rows);
    const searches = rows.traces.flatMap((trace, i) => {
      const isOther = i % perTen.selective === perTen.selective - 1;
      const others = [...Array<string>(perTen.frequent).fill(frequentWord), rareWord];
      return isOther ? [trace, ...others] : [trace];
    });
    const counted = (name: string, q: string) => ({
      name,
      ours: postOf(`/v1/namespaces/${logNamespace}/count`, { q, limit: 0 }),
      options: ['-i', '-F', q],
    });
    const requests = searches.map((text) =>
      getOf(`/v1/namespaces/${logNamespace}/search?limit=20&q=${encodeURIComponent(text)}`),
    );
    return {
      settings: { lines: rows.rows },
      keys: [stage.server.key],
      phases: [
        ...throughputAndLatency({ name: 'searches', tool: 'autocannon', connections: 32, requests }),
        ...besideRipgrep(rows, [
          counted('in one line', rows.traces[0] ?? ''),
          counted('a rare word', rareWord),
        ]),
      ],
    };
  },
};
