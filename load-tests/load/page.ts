import { median, thousands } from '../bench-report.ts';
import { type PeersResult, peersSection } from '../peers/peers-table.ts';
import { type Baselines, type Movement, movementsOf, percentText } from './baselines.ts';
import { htmlText } from './html-text.ts';
import { pageStyle } from './page-style.ts';
import { latencyPlot, memoryPlot, shortNumber, stepsPlot, throughputPlot } from './plots.ts';
import {
  type CurveResult,
  type JudgedFigure,
  type LoadResult,
  type PointResult,
  resultHolds,
  type SideResult,
  type ThroughputResult,
} from './result.ts';

/**
 * The report page: one HTML file that needs nothing else, with a table of all scenarios and a section for each. A pure function of
 * results and baselines: the same files make the same page.
 */
export function reportPage(
  results: readonly LoadResult[],
  baselines: Baselines,
  peers: PeersResult | null = null,
): string {
  const shown = results.map((result) => ({ result, movements: movementsOf(result, baselines) }));
  const beside = peers === null ? [] : [peersSection(peers)];
  const body = [head(results), summary(shown), ...shown.map(section), ...beside].join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tidebase under load</title>
<style>${pageStyle}</style>
</head>
<body>
${body}
</body>
</html>
`;
}

interface Shown {
  readonly result: LoadResult;
  readonly movements: readonly Movement[];
}

function head(results: readonly LoadResult[]): string {
  const machineText = ({ machine: { machine, node } }: LoadResult) => `${machine}; Node ${node}`;
  const facts = [...new Set(results.map(machineText))].map((text) => {
    const played = results.filter((result) => machineText(result) === text);
    const commits = [...new Set(played.map(({ machine: { commit } }) => commit))];
    return `${text}; commit${commits.length > 1 ? 's' : ''} ${commits.join(', ')}`;
  });
  const dates = new Set(results.map(({ began }) => began.slice(0, 10)));
  const quick = results.some(({ isQuick }) => isQuick)
    ? '<p class="notice">A smoke run (<code>--quick</code>): it shows that the scenarios work. Its figures say little.</p>'
    : '';
  return `<header>
<h1>Tidebase under load</h1>
<p class="muted">${[...dates].sort().join(', ')} · ${facts.map(htmlText).join(' · ')}</p>
${quick}
<p class="muted">Latencies are of an open loop: each counts from the moment at which its request was meant to begin. Throughput is of a closed loop, in turns with a bare server that sends one constant answer to the same requests. Generator and servers share this machine’s cores.</p>
</header>`;
}

function summary(shown: readonly Shown[]): string {
  const rows = shown.map(({ result, movements }) => {
    const { scenario, throughput, curves, memory } = result;
    const [first] = throughput;
    const points = curves.flatMap((curve) => curve.points);
    const most = Math.max(0, ...memory.map(({ residentBytes }) => residentBytes));
    const moved = movements.filter(({ verdict }) => verdict === 'better' || verdict === 'worse');
    const cells = [
      `<td><a href="#${scenario}">${scenario}</a></td>`,
      number(first === undefined ? '' : `${thousands(median(first.own.perSecond))} ${first.unit}/s`),
      number(
        first === undefined ? '' : shortNumber(median(first.own.perSecond) / median(first.bare.perSecond)),
      ),
      number(first === undefined ? '' : cpuText(first.own)),
      number(latencyRange(points)),
      number(most === 0 ? '' : `${Math.round(most / 1e6)} MB`),
      `<td>${verdictOf(result)}</td>`,
      `<td>${moved.map(({ verdict, change }) => `<span class="${verdict}">${percentText(change)}</span>`).join(' ')}</td>`,
    ];
    return `<tr>${cells.join('')}</tr>`;
  });
  const titles = ['throughput', 'of bare', 'processor time each', 'p99, lowest to highest', 'most memory'];
  return `<div class="summary scroll"><table>
<thead><tr><th>scenario</th>${titles.map((title) => `<th class="number">${title}</th>`).join('')}<th>bars</th><th>moved</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>`;
}

const number = (text: string) => `<td class="number">${htmlText(text)}</td>`;

function latencyRange(points: readonly PointResult[]): string {
  if (points.length === 0) return '';
  const p99s = points.map(({ latencyMs }) => latencyMs.p99);
  const [least, most] = [Math.min(...p99s), Math.max(...p99s)].map(durationText);
  return least === most ? `${least}` : `${least} to ${most}`;
}

function durationText(ms: number): string {
  if (ms < 0.1) return `${shortNumber(ms * 1_000)} µs`;
  return ms < 1_000 ? `${shortNumber(ms)} ms` : `${shortNumber(ms / 1_000)} s`;
}

function verdictOf(result: LoadResult): string {
  if (result.failure !== null) return '<span class="missed">ended early</span>';
  return resultHolds(result) ? '<span class="ok">held</span>' : '<span class="missed">missed</span>';
}

function section({ result, movements }: Shown): string {
  const { scenario, about, settings, throughput, curves, memory, marks, figures, failure } = result;
  const told = Object.entries(settings).map(
    ([name, value]) => `${name}: ${typeof value === 'number' ? value.toLocaleString('en-GB') : value}`,
  );
  const plots = [
    ...throughput.map((each) =>
      figure(`Throughput: ${each.name}`, throughputPlot(each), throughputNote(each)),
    ),
    ...curves.filter(({ points }) => points.length > 0).map(curveFigure),
    ...(memory.length > 1
      ? [
          figure(
            'Memory',
            memoryPlot({ memory, marks }),
            marks.map((mark, i) => `${i + 1}: ${mark.name}`).join(', '),
          ),
        ]
      : []),
  ];
  return `<section id="${scenario}">
<h2>${scenario}</h2>
<p>${htmlText(about)}</p>
<p class="muted">${[...told, `took ${Math.round(result.tookSeconds)} s`].map(htmlText).join(' · ')}</p>
${failure === null ? '' : `<pre>${htmlText(failure)}</pre>`}
<div class="plots">
${plots.join('\n')}
</div>
${figureTable(figures)}
${movementTable(movements)}
</section>`;
}

function figure(title: string, plot: string, note: string): string {
  return `<figure><h3>${htmlText(title)}</h3>${plot}<figcaption>${htmlText(note)}</figcaption></figure>`;
}

function curveFigure(curve: CurveResult): string {
  const plot = curve.over === 'step' ? stepsPlot(curve) : latencyPlot(curve);
  const notWarm = curve.points.flatMap(({ label, notWarm: counts }) =>
    Object.entries(counts).map(
      ([temperature, count]) => `${label}: ${thousands(count)} answers ${temperature}`,
    ),
  );
  const late = curve.points.filter(({ lateMs }) => lateMs > 5).map(({ label }) => label);
  const notes = [
    `${thousands(curve.points.reduce((sum, { sent }) => sum + sent, 0))} requests`,
    ...(curve.over === 'time' ? [] : notWarm),
    ...lateNote(curve.over, late),
  ];
  return figure(`Latency: ${curve.name}`, plot, notes.join('; '));
}

function lateNote(over: CurveResult['over'], late: readonly string[]): string[] {
  if (late.length === 0) return [];
  const where = over === 'time' ? `in ${late.length} windows` : `at ${late.join(', ')}`;
  return [`the generator itself was late ${where}`];
}

/** From here on a generator of one thread is taken for the bottleneck. */
const coresOfBottleneck = 0.9;

function cpuText(of: SideResult): string {
  const value = median(of.cpuMicros);
  return Number.isFinite(value) ? durationText(value / 1_000) : 'nothing answered';
}

function throughputNote({ tool, connections, own, bare }: ThroughputResult): string {
  const cpu = `processor time ${cpuText(own)} each against ${cpuText(bare)}`;
  const cores = [
    ['this server', own.generatorCores],
    ['the bare one', bare.generatorCores],
  ] as const;
  const bottleneck = cores.flatMap(([name, used]) =>
    used !== null && median(used) > coresOfBottleneck
      ? [`against ${name} ${tool} itself was the bottleneck`]
      : [],
  );
  return [`${tool}, ${connections} connections`, cpu, ...bottleneck].join('; ');
}

function figureTable(figures: readonly JudgedFigure[]): string {
  const rows = figures.map(({ name, value, bar = '', ok, note = '' }) => {
    const verdict =
      ok === undefined ? '' : ok ? '<span class="ok">ok</span>' : '<span class="missed">missed</span>';
    return `<tr><td>${htmlText(name)}</td><td class="short">${htmlText(value)}</td><td class="short">${htmlText(bar)}</td><td>${verdict}</td><td class="muted">${htmlText(note)}</td></tr>`;
  });
  return `<div class="scroll"><table>
<thead><tr><th>figure</th><th>value</th><th>bar</th><th></th><th></th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>`;
}

function movementTable(movements: readonly Movement[]): string {
  if (movements.length === 0) return '';
  const rows = movements.map(({ key, now, before, change, noise, verdict, isOtherMachine }) => {
    const known =
      before === null
        ? ['', '', '']
        : [before.toPrecision(3), percentText(change), percentText(noise).slice(1)];
    const cells = known.map((text) => number(text)).join('');
    const name = key.slice(key.indexOf('/') + 1);
    return `<tr><td>${htmlText(name)}</td>${number(now.toPrecision(3))}${cells}<td class="${verdict}">${verdict}${isOtherMachine ? ', another machine' : ''}</td></tr>`;
  });
  return `<div class="scroll"><table>
<thead><tr><th>ratio</th><th class="number">now</th><th class="number">baseline</th><th class="number">change</th><th class="number">noise</th><th></th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table></div>`;
}
