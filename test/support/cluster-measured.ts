import type { SpaceFigures } from './cluster-load.ts';

/** What is promised of a row: the gap at a quantile of the affected namespaces, in milliseconds, and whether requests may fail. */
interface Bar {
  readonly part: number;
  readonly gapMs: number;
  readonly mayFail: boolean;
}

/** Promises by the name of what happens. */
const bars: Readonly<Record<string, Bar>> = {
  leave: { part: 1, gapMs: 1_000, mayFail: false },
  join: { part: 1, gapMs: 1_000, mayFail: false },
  'kill -9': { part: 0.95, gapMs: 5_000, mayFail: true },
  'kill -9, supervised': { part: 0.95, gapMs: 4_000, mayFail: true },
  pause: { part: 1, gapMs: 18_000, mayFail: true },
  'peer cut': { part: 1, gapMs: 1_000, mayFail: false },
};

/** What was seen of namespaces while something happened, over all rounds. Times are in milliseconds. */
export class Measured {
  readonly name: string;
  rounds = 0;
  /** For how long reads, and writes, of each affected namespace had no answer in each round. */
  readonly #readGaps: number[] = [];
  readonly #writeGaps: number[] = [];
  /** How long each read of the other namespaces took. */
  readonly #others: number[] = [];
  readonly #failures = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  get failures(): ReadonlyMap<string, number> {
    return this.#failures;
  }

  add(
    figures: readonly SpaceFigures[],
    failures: ReadonlyMap<string, number>,
    isAffected: (name: string) => boolean,
  ): void {
    this.rounds++;
    for (const { name, readGapMs, writeGapMs, readsMs } of figures) {
      if (isAffected(name)) {
        this.#readGaps.push(readGapMs);
        this.#writeGaps.push(writeGapMs);
      } else for (const ms of readsMs) this.#others.push(ms);
    }
    for (const [kind, count] of failures) this.#failures.set(kind, (this.#failures.get(kind) ?? 0) + count);
  }

  /** The row of a table: what, rounds, affected namespaces, gaps of reads and of writes as p50, p95 and longest, p99 of the others' reads, failures, the promise. */
  get row(): readonly string[] {
    const gaps = (values: number[]) => [0.5, 0.95, 1].map((part) => quantile(values, part));
    const kinds = [...this.#failures].map(([kind, count]) => `${count} × ${kind}`).join(', ');
    return [
      this.name,
      String(this.rounds),
      String(this.#readGaps.length),
      gaps(this.#readGaps).join(' / '),
      gaps(this.#writeGaps).join(' / '),
      quantile(this.#others, 0.99),
      kinds || 'none',
      this.missed === null ? '-' : this.missed || 'met',
    ];
  }

  /** What of the promise does not hold; empty where all does, null where nothing is promised. */
  get missed(): string | null {
    const bar = bars[this.name];
    if (bar === undefined) return null;
    const { part, gapMs, mayFail } = bar;
    const isLonger = (values: number[]) => Number(quantile(values, part)) > gapMs;
    const gap = `${part === 1 ? 'max' : `p${100 * part}`} > ${gapMs} ms`;
    return [
      ...(isLonger(this.#readGaps) ? [`reads: ${gap}`] : []),
      ...(isLonger(this.#writeGaps) ? [`writes: ${gap}`] : []),
      ...(!mayFail && this.#failures.size > 0 ? ['errors'] : []),
    ].join(', ');
  }
}

/** What the columns of `Measured.row` are. */
export const measuredColumns = [
  'while',
  'rounds',
  'namespaces affected',
  'no read, p50 / p95 / max ms',
  'no write, p50 / p95 / max ms',
  'p99 of other reads, ms',
  'errors',
  'promise',
] as const;

/** Lines of a table whose columns are as wide as what stands in them. */
export function tableOf(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join(' | ')
      .trimEnd(),
  );
}

function quantile(values: readonly number[], part: number): string {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
  return value === undefined ? '-' : String(Math.round(value));
}
