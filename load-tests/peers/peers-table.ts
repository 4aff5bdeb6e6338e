/** What `npm run peers` found, as a file beside the results of `npm run load` and as tables. */
import type { MachineFacts } from '../bench-report.ts';
import { htmlText } from '../load/html-text.ts';
import type { PeerReport } from './ask-peers.ts';
import { type QuestionKind, questionKinds } from './peer.ts';

export const peersFile = 'peers.json';
export const peersFormat = 'tidebase peers 1';

export interface PeersResult {
  readonly format: typeof peersFormat;
  /** ISO 8601, UTC. */
  readonly began: string;
  readonly machine: MachineFacts;
  readonly rows: number;
  readonly isQuick: boolean;
  readonly reports: readonly PeerReport[];
}

export function parsePeersResult(text: string, place: string): PeersResult {
  const value = JSON.parse(text) as PeersResult;
  if (value.format !== peersFormat) throw new Error(`${place} is no result of this version: npm run peers`);
  return value;
}

interface Row {
  readonly title: string;
  readonly of: (report: PeerReport) => string;
}

const rows: readonly Row[] = [
  { title: 'start, rows and indexes', of: ({ loadSeconds }) => `${loadSeconds.toFixed(1)} s` },
  ...(Object.keys(questionKinds) as QuestionKind[]).map((kind) => ({
    title: questionKinds[kind],
    of: ({ medianMs }: PeerReport) => {
      const ms = medianMs[kind];
      return ms === undefined ? '–' : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
    },
  })),
  {
    title: 'of the true ten nearest',
    of: ({ recall }) => (recall === null ? '–' : `${(recall * 100).toFixed(0)} %`),
  },
  { title: 'answers that were not true', of: ({ wrong }) => String(wrong.length) },
];

/** For a terminal: a line for each kind of question. */
export function peersTable({ reports }: PeersResult): string[] {
  const asked = reports.filter(({ skipped }) => skipped === null);
  const width = Math.max(...rows.map(({ title }) => title.length));
  const line = (title: string, cells: readonly string[]) =>
    `${title.padEnd(width)} ${cells.map((cell) => cell.padStart(11)).join('')}`;
  return [
    '',
    line(
      '',
      asked.map(({ name }) => name),
    ),
    ...rows.map(({ title, of }) => line(title, asked.map(of))),
  ];
}

/** A section of the report page. */
export function peersSection(result: PeersResult): string {
  const { reports, machine, began } = result;
  const asked = reports.filter(({ skipped }) => skipped === null);
  const head = asked.map(({ name }) => `<th class="number">${htmlText(name)}</th>`).join('');
  const body = rows.map(
    ({ title, of }) =>
      `<tr><td>${htmlText(title)}</td>${asked.map((report) => `<td class="number">${htmlText(of(report))}</td>`).join('')}</tr>`,
  );
  const notes = reports.map(({ name, version, about, skipped, wrong }) =>
    skipped === null
      ? `<li>${htmlText(`${name} ${version}: ${about}`)}${wrong.map((each) => `<br>not true: ${htmlText(each)}`).join('')}</li>`
      : `<li>${htmlText(`${name} was skipped: ${skipped}`)}</li>`,
  );
  return `<section id="peers">
<h2>Beside other programs</h2>
<p>The same ${result.rows.toLocaleString('en-GB')} rows and questions to each, one at a time; medians. Each was started and ended for it.</p>
<p class="muted">${htmlText(`${began.slice(0, 10)} · commit ${machine.commit}${result.isQuick ? ' · a smoke run, whose figures say little' : ''}`)}</p>
<div class="scroll"><table>
<thead><tr><th></th>${head}</tr></thead>
<tbody>
${body.join('\n')}
</tbody></table></div>
<ul class="muted">
${notes.join('\n')}
</ul>
</section>`;
}
