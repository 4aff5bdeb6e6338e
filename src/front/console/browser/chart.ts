import { type ChartPlan, type Point, scaleOf } from './chart-plan.ts';
import { element, refill, svg } from './element.ts';
import { formatPrecise, formatShort } from './format.ts';

/**
 * Charts as SVG, drawn for the width that they have and drawn again when it changes: scaled text would be too small on a
 * phone. To a screen reader a chart is a picture with a sentence; the numbers are in a table beside it.
 */
export function chart(plan: ChartPlan, formatValue: (value: number) => string = formatPrecise): HTMLElement {
  const frame = element('div', { class: 'chart' });
  let drawnFor = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry?.contentRect.width ?? 0);
    if (width < 40 || width === drawnFor) return;
    drawnFor = width;
    refill(frame, draw(plan, width, formatValue));
  }).observe(frame);
  return frame;
}

function draw(plan: ChartPlan, width: number, formatValue: (value: number) => string): SVGElement {
  if (plan.kind === 'bars') return drawBars(plan, width, formatValue);
  return drawCourse(plan, width, formatValue);
}

/** Says in one sentence what the picture shows. */
function summaryOf(
  { valueName, labelName, points }: ChartPlan,
  formatValue: (value: number) => string,
): string {
  const top = points.reduce((best, point) => (point.value > best.value ? point : best), points[0] as Point);
  return `${valueName} by ${labelName}, ${points.length} values; the highest is ${formatValue(top.value)} at ${top.label}.`;
}

function picture(
  plan: ChartPlan,
  size: { width: number; height: number },
  formatValue: (value: number) => string,
) {
  const { width, height } = size;
  const label = summaryOf(plan, formatValue);
  return svg('svg', { role: 'img', 'aria-label': label, width, height, viewBox: `0 0 ${width} ${height}` });
}

const barHeight = 18;
const barGap = 10;
const characterWidth = 6.6;

/** One row a category: its words have room, and the eye compares lengths. */
function drawBars(plan: ChartPlan, width: number, formatValue: (value: number) => string): SVGElement {
  const { points } = plan;
  const height = points.length * (barHeight + barGap) + barGap;
  const made = picture(plan, { width, height }, formatValue);
  const longest = points.reduce((most, { label }) => Math.max(most, label.length), 0);
  const labelWidth = Math.min(width * 0.34, longest * characterWidth + 14);
  const widestValue = points.reduce((most, { value }) => Math.max(most, formatValue(value).length), 0);
  const room = width - labelWidth - widestValue * characterWidth - 12;
  const { low, high } = scaleOf(points.map(({ value }) => value));
  const at = (value: number) => labelWidth + ((value - low) / (high - low)) * room;
  for (const [index, { label, value }] of points.entries()) {
    const y = barGap + index * (barHeight + barGap);
    const [from, to] = [Math.min(at(0), at(value)), Math.max(at(0), at(value))];
    made.append(
      svg('text', { x: labelWidth - 10, y: y + 13, class: 'label end' }, shortened(label, labelWidth - 14)),
      svg(
        'rect',
        { x: from, y, width: Math.max(to - from, 1), height: barHeight, rx: 3, class: 'mark-fill' },
        svg('title', {}, `${label}: ${formatValue(value)}`),
      ),
      svg('text', { x: to + 6, y: y + 13, class: 'value' }, formatValue(value)),
    );
  }
  return made;
}

function shortened(text: string, width: number): string {
  const most = Math.max(3, Math.floor(width / characterWidth));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

const courseHeight = 220;
const margin = { top: 12, right: 12, bottom: 28 };

/** A line, or columns where each value stands for a day. */
function drawCourse(plan: ChartPlan, width: number, formatValue: (value: number) => string): SVGElement {
  const { points, kind } = plan;
  const made = picture(plan, { width, height: courseHeight }, formatValue);
  const { low, high, ticks } = scaleOf(points.map(({ value }) => value));
  const tickText = ticks.map((tick) =>
    formatValue === formatPrecise ? formatShort(tick) : formatValue(tick),
  );
  const left = Math.max(...tickText.map((text) => text.length)) * characterWidth + 14;
  const bottom = courseHeight - margin.bottom;
  const y = (value: number) => bottom - ((value - low) / (high - low)) * (bottom - margin.top);
  const step = (width - left - margin.right) / points.length;
  const x = (index: number) => left + (index + 0.5) * step;
  for (const [index, tick] of ticks.entries()) {
    made.append(
      svg('line', {
        x1: left,
        x2: width - margin.right,
        y1: y(tick),
        y2: y(tick),
        class: tick === 0 ? 'axis' : 'grid',
      }),
      svg('text', { x: left - 8, y: y(tick) + 4, class: 'label end' }, tickText[index] ?? ''),
    );
  }
  made.append(...labelsBelow(points, { x, width: width - left, y: courseHeight - 8 }));
  if (kind === 'columns') made.append(...columnMarks(points, { x, y, step, formatValue }));
  else made.append(...lineMarks(points, { x, y, formatValue }));
  return made;
}

interface Axes {
  readonly x: (index: number) => number;
  readonly y: (value: number) => number;
  readonly formatValue: (value: number) => string;
}

function columnMarks(
  points: readonly Point[],
  { x, y, step, formatValue }: Axes & { readonly step: number },
): SVGElement[] {
  const thickness = Math.max(1, Math.min(36, step * 0.7));
  return points.map(({ label, value }, index) => {
    const [top, foot] = [Math.min(y(value), y(0)), Math.max(y(value), y(0))];
    return svg(
      'rect',
      {
        x: x(index) - thickness / 2,
        y: top,
        width: thickness,
        height: foot - top,
        rx: 2,
        class: 'mark-fill',
      },
      svg('title', {}, `${label}: ${formatValue(value)}`),
    );
  });
}

/** More dots than this would be a line of their own. */
const dotsMax = 60;

function lineMarks(points: readonly Point[], { x, y, formatValue }: Axes): SVGElement[] {
  const path = points.map(
    ({ value }, index) => `${index === 0 ? 'M' : 'L'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`,
  );
  const line = svg('path', { d: path.join(''), class: 'mark-line' });
  if (points.length > dotsMax) return [line];
  const dots = points.map(({ label, value }, index) =>
    svg(
      'circle',
      { cx: x(index), cy: y(value), r: 3.5, class: 'mark-dot' },
      svg('title', {}, `${label}: ${formatValue(value)}`),
    ),
  );
  return [line, ...dots];
}

/** The labels below the bars: as many as have room, the first and then every so many. */
function labelsBelow(
  points: readonly Point[],
  place: { readonly x: (index: number) => number; readonly width: number; readonly y: number },
): SVGElement[] {
  const longest = points.reduce((most, { label }) => Math.max(most, label.length), 1);
  const room = Math.max(1, Math.floor(place.width / (longest * characterWidth + 18)));
  const every = Math.ceil(points.length / room);
  return points.flatMap(({ label }, index) =>
    index % every === 0 ? [svg('text', { x: place.x(index), y: place.y, class: 'label middle' }, label)] : [],
  );
}
