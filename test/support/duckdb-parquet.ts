import {
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  DuckDBUUIDValue,
} from '@duckdb/node-api';
import type { ImportedDocument } from './imported-rows.ts';

type Connection = Awaited<ReturnType<DuckDBInstance['connect']>>;

/** What a column of a type that has no JSON is compared as: not at all. */
const incomparable = Symbol('incomparable');

/** Parquet files as DuckDB reads them, as the JSON that an import should make of their rows. */
export class DuckParquet {
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  static async open(): Promise<DuckParquet> {
    const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
    return new DuckParquet(await instance.connect());
  }

  /** Makes a file of what a statement answers. */
  async write(select: string, path: string, options = ''): Promise<void> {
    await this.#connection.run(`COPY (${select}) TO '${path}' (FORMAT parquet${options})`);
  }

  /** The rows of a file, or what DuckDB says of it. */
  async rows(path: string): Promise<DuckRows | string> {
    try {
      const reader = await this.#connection.runAndReadAll(`FROM read_parquet('${path}')`);
      return new DuckRows(reader.columnNames(), reader.getRows());
    } catch (error) {
      return String(error);
    }
  }

  close(): void {
    this.#connection.closeSync();
  }
}

export class DuckRows {
  readonly #names: readonly string[];
  readonly rows: readonly (readonly unknown[])[];

  constructor(names: readonly string[], rows: readonly (readonly unknown[])[]) {
    this.#names = names;
    this.rows = rows;
  }

  /** What is different first; null where nothing is. */
  differenceFrom(documents: readonly ImportedDocument[]): string | null {
    if (documents.length !== this.rows.length)
      return `DIFFERENT: ${documents.length} rows, DuckDB has ${this.rows.length}`;
    for (const [at, row] of this.rows.entries()) {
      const meta = JSON.parse(documents[at]?.meta ?? '{}') as Record<string, unknown>;
      for (const [column, name] of this.#names.entries()) {
        const theirs = row[column];
        if (isSame(meta[name], theirs)) continue;
        const shown = JSON.stringify(meta[name]).slice(0, 200);
        return `DIFFERENT in row ${at + 1}, ${name}: ${shown}, DuckDB has ${String(theirs).slice(0, 200)}`;
      }
    }
    return null;
  }
}

/** Whether JSON of ours is what a value of DuckDB means. */
function isSame(ours: unknown, theirs: unknown): boolean {
  if (theirs instanceof DuckDBBlobValue) {
    const bytes = Buffer.from(theirs.bytes);
    return ours === bytes.toString('base64') || ours === bytes.toString('utf8');
  }
  if (theirs instanceof DuckDBListValue)
    return (
      Array.isArray(ours) &&
      ours.length === theirs.items.length &&
      theirs.items.every((item, at) => isSame(ours[at], item))
    );
  if (theirs instanceof DuckDBStructValue)
    return areMembers(ours, Object.entries(theirs.entries as Record<string, unknown>));
  if (theirs instanceof DuckDBMapValue)
    return areMembers(
      ours,
      theirs.entries.map(({ key, value }): [string, unknown] => [String(key), value]),
    );
  const plain = plainOf(theirs);
  if (plain === incomparable) return true;
  return Object.is(ours, plain);
}

function areMembers(ours: unknown, members: readonly (readonly [string, unknown])[]): boolean {
  if (typeof ours !== 'object' || ours === null || Array.isArray(ours)) return false;
  const known = ours as Record<string, unknown>;
  return (
    Object.keys(known).length === members.length &&
    members.every(([name, value]) => isSame(known[name], value))
  );
}

/** Scalars as JSON.parse reads them. */
function plainOf(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (value instanceof DuckDBDecimalValue) return Number(String(value));
  if (value instanceof DuckDBDateValue || value instanceof DuckDBUUIDValue) return String(value);
  // Fractions of a second are cut off.
  if (value instanceof DuckDBTimeValue) return String(value).slice(0, 8);
  if (value instanceof DuckDBTimestampValue || value instanceof DuckDBTimestampTZValue)
    return isWide(value) ? String(value).replace(/\..*$/u, '') : secondsText(value.micros, 1_000_000n);
  if (value instanceof DuckDBTimestampNanosecondsValue) return secondsText(value.nanos, 1_000_000_000n);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  return incomparable;
}

/** Whether a time is of a year of more than four digits. */
function isWide(value: DuckDBTimestampValue | DuckDBTimestampTZValue): boolean {
  return value.micros >= 253_402_300_800_000_000n;
}

function secondsText(value: bigint, units: bigint): string {
  const seconds = value / units - (value < 0n && value % units !== 0n ? 1n : 0n);
  return new Date(Number(seconds) * 1_000).toISOString().slice(0, 19).replace('T', ' ');
}
