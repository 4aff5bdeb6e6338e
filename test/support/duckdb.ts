/** The door to DuckDB: what SQL answers are compared with. */
import { DuckDBInstance } from '@duckdb/node-api';

export type OracleValue = bigint | number | string | null;

export class Oracle {
  readonly #run: Awaited<ReturnType<typeof connect>>;

  private constructor(connection: Awaited<ReturnType<typeof connect>>) {
    this.#run = connection;
  }

  static async open(threads = 1): Promise<Oracle> {
    return new Oracle(await connect(threads));
  }

  /** Rows of a statement; integers as bigint. Throws what DuckDB says. */
  async rows(sql: string): Promise<OracleValue[][]> {
    const reader = await this.#run.runAndReadAll(sql);
    return reader.getRows().map((row) => row.map(oracleValue));
  }

  close(): void {
    this.#run.closeSync();
  }
}

async function connect(threads: number) {
  const instance = await DuckDBInstance.create(':memory:', { threads: String(threads) });
  const connection = await instance.connect();
  await connection.run('SET order_by_non_integer_literal = true');
  return connection;
}

function oracleValue(value: unknown): OracleValue {
  if (value === null || typeof value === 'bigint' || typeof value === 'string') return value;
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return String(value);
}
