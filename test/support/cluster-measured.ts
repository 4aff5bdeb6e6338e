import type { SpaceFigures } from './cluster-load.ts';

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

  /** The row of a table: what, rounds, affected namespaces, gaps of reads and of writes as p50, p95 and longest, p99 of the others' reads, failures. */
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
    ];
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
