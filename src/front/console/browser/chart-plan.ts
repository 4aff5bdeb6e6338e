/** What a chart shows, decided before anything is drawn. Pure. */
export interface Point {
  readonly label: string;
  readonly value: number;
}

export interface ChartPlan {
  /** Categories as rows of bars; a course in time or number as a line; days as columns. */
  readonly kind: 'bars' | 'line' | 'columns';
  readonly labelName: string;
  readonly valueName: string;
  readonly points: readonly Point[];
  /** Rows that were left out. */
  readonly omitted: number;
}

const barsMax = 24;
/** More than a screen has pixels. */
const linePointsMax = 1_000;

interface Table {
  readonly columns: readonly string[];
  readonly types: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/** The first column names, the first number after it (or else before it) measures. Null where there is no such pair. */
export function planChart({ columns, types, rows }: Table): ChartPlan | null {
  if (rows.length < 2) return null;
  const isNumber = (type: string | undefined) => type === 'int' || type === 'float';
  const label = types.findIndex((type) => !isNumber(type));
  const named = label >= 0 ? label : types.indexOf('int');
  const value = types.findIndex((type, index) => index !== named && isNumber(type));
  if (named < 0 || value < 0) return null;
  const points = rows.flatMap((row) => pointOf(row[named], row[value]));
  if (points.length < 2) return null;
  const type = types[named];
  const isCourse = type === 'date' || type === 'time' || (isNumber(type) && ascends(rows, named));
  const most = isCourse ? linePointsMax : barsMax;
  return {
    kind: isCourse ? 'line' : 'bars',
    labelName: columns[named] ?? '',
    valueName: columns[value] ?? '',
    points: isCourse ? points.slice(0, most).toSorted(byLabelOf(type)) : points.slice(0, most),
    omitted: Math.max(0, points.length - most),
  };
}

function pointOf(label: unknown, value: unknown): Point[] {
  if (typeof value !== 'number' && typeof value !== 'bigint') return [];
  return [{ label: label === null ? 'NULL' : String(label), value: Number(value) }];
}

function ascends(rows: Table['rows'], column: number): boolean {
  return rows.every((row, index) => index === 0 || Number(row[column]) >= Number(rows[index - 1]?.[column]));
}

/** Times are text of one form, so their order is that of the text. */
function byLabelOf(type: string | undefined): (a: Point, b: Point) => number {
  if (type === 'date' || type === 'time')
    return (a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0);
  return (a, b) => Number(a.label) - Number(b.label);
}

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
}

/** Round numbers around values, zero among them. */
export function scaleOf(values: readonly number[], ticksWanted = 4): Scale {
  const lowest = values.reduce((least, value) => Math.min(least, value), 0);
  const highest = values.reduce((most, value) => Math.max(most, value), 0);
  const step = roundStep((highest - lowest || 1) / ticksWanted);
  const first = Math.floor(lowest / step);
  const last = Math.max(Math.ceil(highest / step), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  return { low: first * step, high: last * step, ticks };
}

/** The next of 1, 2 or 5 times a power of ten. */
function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5].find((candidate) => candidate * power >= rough * 0.999_999) ?? 10;
  return factor * power;
}
