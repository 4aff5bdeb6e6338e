/**
 * Plots as inline SVG, whose colours are classes of the page's style: pure functions from results to markup. All have the same
 * frame, in units of the view box; the page scales them to its column.
 */
import { median, thousands } from '../bench-report.ts';
import { htmlText } from './html-text.ts';
import type { CurveResult, LoadResult, MemorySample, PointResult, ThroughputResult } from './result.ts';

const frame = { width: 460, height: 250, left: 58, right: 94, top: 14, bottom: 42 } as const;
const plotWidth = frame.width - frame.left - frame.right;
const plotHeight = frame.height - frame.top - frame.bottom;

export interface Scale {
  /** Where a value lies between 0 and 1. */
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

/** From 0 to a round number above the largest value. */
export function linearScale(max: number, ticksWanted = 4): Scale {
  const step = roundStep(Math.max(max, Number.MIN_VALUE) / ticksWanted);
  const top = Math.ceil(max / step) * step || step;
  const count = Math.round(top / step);
  return { at: (value) => value / top, ticks: Array.from({ length: count + 1 }, (_, i) => i * step) };
}

/** From a power of ten below the smallest value to one above the largest. */
export function logScale(min: number, max: number): Scale {
  const from = Math.floor(Math.log10(Math.max(min, 1e-3)));
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(max, 1e-3))));
  return {
    at: (value) => (Math.log10(Math.max(value, 10 ** from)) - from) / (to - from),
    ticks: Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i)),
  };
}

/** 1, 2 or 5 times a power of ten, no smaller than the value. */
export function roundStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((each) => each * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}

const x = (share: number) => (frame.left + share * plotWidth).toFixed(1);
const y = (share: number) => (frame.top + (1 - share) * plotHeight).toFixed(1);

/** Few digits, whatever the size. */
export function shortNumber(value: number): string {
  if (value >= 10_000) return `${Number((value / 1_000).toPrecision(3))} k`;
  return value >= 100 ? thousands(value) : String(Number(value.toPrecision(2)));
}

const percentiles = [
  ['p50', 'p50', 'line-1'],
  ['p99', 'p99', 'line-2'],
  ['p999', 'p99.9', 'line-3'],
] as const;

function svg(title: string, content: readonly string[]): string {
  return (
    `<svg viewBox="0 0 ${frame.width} ${frame.height}" role="img" aria-label="${htmlText(title)}">` +
    `${content.join('')}</svg>`
  );
}

function yAxis(scale: Scale, unit: string, text: (value: number) => string = shortNumber): string[] {
  return [
    ...scale.ticks.map(
      (tick) =>
        `<line class="grid" x1="${frame.left}" x2="${frame.left + plotWidth}" y1="${y(scale.at(tick))}" y2="${y(scale.at(tick))}"/>` +
        `<text class="tick" text-anchor="end" x="${frame.left - 6}" y="${y(scale.at(tick))}" dy="0.32em">${htmlText(text(tick))}</text>`,
    ),
    `<text class="unit" text-anchor="middle" transform="translate(13 ${frame.top + plotHeight / 2}) rotate(-90)">${htmlText(unit)}</text>`,
  ];
}

function xAxis(scale: Scale, unit: string): string[] {
  return [
    ...scale.ticks.map(
      (tick) =>
        `<text class="tick" text-anchor="middle" x="${x(scale.at(tick))}" y="${frame.top + plotHeight + 16}">${shortNumber(tick)}</text>`,
    ),
    `<text class="unit" text-anchor="middle" x="${frame.left + plotWidth / 2}" y="${frame.height - 6}">${htmlText(unit)}</text>`,
  ];
}

/** The text of a line's end, moved apart where two ends lie close. */
export function apart(wanted: readonly number[], distance: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  const placed = [...wanted];
  let last = Number.NEGATIVE_INFINITY;
  for (const i of order) {
    last = Math.max(placed[i] ?? 0, last + distance);
    placed[i] = last;
  }
  return placed;
}

interface Line {
  readonly name: string;
  readonly style: string;
  readonly points: readonly (readonly [atX: number, atY: number, hint: string])[];
  readonly dots: boolean;
}

/** Lines with their names at their ends. */
function linesOf(lines: readonly Line[]): string[] {
  const ends = apart(
    lines.map(({ points }) => Number(y(points.at(-1)?.[1] ?? 0))),
    14,
  );
  return lines.flatMap(({ name, style, points, dots }, i) => {
    const path = points.map(([atX, atY]) => `${x(atX)},${y(atY)}`).join(' ');
    const marks = dots
      ? points.map(
          ([atX, atY, hint]) =>
            `<circle class="dot ${style}" cx="${x(atX)}" cy="${y(atY)}" r="3.5"><title>${htmlText(hint)}</title></circle>`,
        )
      : [];
    const end = Number(x(points.at(-1)?.[0] ?? 0)) + 9;
    return [
      `<polyline class="line ${style}" points="${path}"/>`,
      ...marks,
      `<text class="name ${style}" x="${end}" y="${ends[i]}" dy="0.32em">${htmlText(name)}</text>`,
    ];
  });
}

/** Latency over rate, or over time: three percentiles, on a logarithmic scale. */
export function latencyPlot({ name, over, points }: CurveResult): string {
  const values = points.flatMap(({ latencyMs }) => [latencyMs.p50, latencyMs.p999]);
  const scale = logScale(Math.min(...values), Math.max(...values));
  const xOf = ({ ratePerSecond }: PointResult, at: number) => (over === 'rate' ? ratePerSecond : at + 1);
  const across = linearScale(Math.max(...points.map(xOf)));
  const lines = percentiles.map(([field, title, style]) => ({
    name: title,
    style,
    dots: points.length <= 20,
    points: points.map((point, at) => {
      const value = point.latencyMs[field];
      const where =
        over === 'rate' ? `${shortNumber(point.ratePerSecond)} a second` : `window ${point.label}`;
      return [
        across.at(xOf(point, at)),
        scale.at(value),
        `${title} ${shortNumber(value)} ms at ${where}`,
      ] as const;
    }),
  }));
  return svg(`latency of ${name}`, [
    ...yAxis(scale, 'milliseconds'),
    ...xAxis(across, over === 'rate' ? 'requests a second, open loop' : 'window'),
    ...linesOf(lines),
  ]);
}

/** Latencies of steps side by side: from p50 to p99.9, with p99 between. */
export function stepsPlot({ name, points }: CurveResult): string {
  const values = points.flatMap(({ latencyMs }) => [latencyMs.p50, latencyMs.p999]);
  const scale = logScale(Math.min(...values), Math.max(...values));
  const steps = points.flatMap(({ label, latencyMs }, at) => {
    const middle = x((at + 0.5) / points.length);
    const places = apart(
      percentiles.map(([field]) => Number(y(scale.at(latencyMs[field])))),
      15,
    );
    const dots = percentiles.map(
      ([field, title, style], i) =>
        `<circle class="dot ${style}" cx="${middle}" cy="${y(scale.at(latencyMs[field]))}" r="5"/>` +
        `<text class="name ${style}" x="${Number(middle) + 10}" y="${places[i]}" dy="0.32em">${title} ${shortNumber(latencyMs[field])}</text>`,
    );
    return [
      `<line class="whisker" x1="${middle}" x2="${middle}" y1="${y(scale.at(latencyMs.p50))}" y2="${y(scale.at(latencyMs.p999))}"/>`,
      ...dots,
      `<text class="tick" text-anchor="middle" x="${middle}" y="${frame.top + plotHeight + 18}">${htmlText(label)}</text>`,
    ];
  });
  return svg(`latency of ${name}`, [...yAxis(scale, 'milliseconds'), ...steps]);
}

/** Our rate beside the bare server's, with the lowest and highest round. */
export function throughputPlot({ name, unit, own, bare }: ThroughputResult): string {
  const sides = [
    ['this server', own.perSecond, 'line-1'],
    ['a bare server', bare.perSecond, 'line-bare'],
  ] as const;
  const scale = linearScale(Math.max(...own.perSecond, ...bare.perSecond));
  const barHeight = 44;
  const bars = sides.flatMap(([title, rates, style], at) => {
    const top = frame.top + 44 + at * (barHeight + 34);
    const value = median(rates);
    const from = Number(x(scale.at(Math.min(...rates))));
    const to = Number(x(scale.at(Math.max(...rates))));
    const middle = top + barHeight / 2;
    return [
      `<text class="label" x="${frame.left}" y="${top - 7}">${title}: ${shortNumber(value)} ${htmlText(unit)} a second</text>`,
      `<rect class="bar ${style}" x="${frame.left}" y="${top}" width="${(Number(x(scale.at(value))) - frame.left).toFixed(1)}" height="${barHeight}" rx="3"/>`,
      `<line class="whisker" x1="${from}" x2="${to}" y1="${middle}" y2="${middle}"/>`,
      ...[from, to].map(
        (end) => `<line class="whisker" x1="${end}" x2="${end}" y1="${middle - 6}" y2="${middle + 6}"/>`,
      ),
    ];
  });
  const ticks = scale.ticks.map(
    (tick) =>
      `<line class="grid" x1="${x(scale.at(tick))}" x2="${x(scale.at(tick))}" y1="${frame.top}" y2="${frame.top + plotHeight}"/>`,
  );
  return svg(`throughput of ${name}`, [
    ...ticks,
    ...xAxis(scale, `${unit} a second; thin lines span the rounds`),
    ...bars,
  ]);
}

/** Resident and anonymous memory over time, with the beginnings of phases. */
export function memoryPlot({ memory, marks }: Pick<LoadResult, 'memory' | 'marks'>): string {
  const thin = thinned(memory, 400);
  const last = thin.at(-1)?.atSeconds ?? 0;
  const inMinutes = last > 300;
  const across = linearScale(inMinutes ? last / 60 : last);
  const scale = linearScale(Math.max(...thin.map(({ residentBytes }) => residentBytes)) / 1e6);
  const at = ({ atSeconds }: Pick<MemorySample, 'atSeconds'>) =>
    across.at(inMinutes ? atSeconds / 60 : atSeconds);
  const line = (name: string, style: string, bytes: (sample: MemorySample) => number): Line => ({
    name,
    style,
    dots: false,
    points: thin.map((sample) => [at(sample), scale.at(bytes(sample) / 1e6), '']),
  });
  const phases = marks.map(
    (mark, index) =>
      `<line class="mark" x1="${x(at(mark))}" x2="${x(at(mark))}" y1="${frame.top}" y2="${frame.top + plotHeight}">` +
      `<title>${htmlText(mark.name)}</title></line>` +
      `<text class="mark-number" x="${Number(x(at(mark))) + 3}" y="${frame.top + 9}">${index + 1}</text>`,
  );
  return svg('memory over time', [
    ...yAxis(scale, 'megabytes'),
    ...xAxis(across, inMinutes ? 'minutes since the start' : 'seconds since the start'),
    ...phases,
    ...linesOf([
      line('resident', 'line-1', ({ residentBytes }) => residentBytes),
      line('anonymous', 'line-2', ({ anonymousBytes }) => anonymousBytes),
    ]),
  ]);
}

/** Every so manieth value, the last one always. */
export function thinned<T>(values: readonly T[], most: number): T[] {
  const step = Math.max(1, Math.ceil(values.length / most));
  return values.filter((_, i) => i % step === 0 || i === values.length - 1);
}
