import type { SqlAnswer } from '../protocol/sql.ts';
import { parseJson } from '../src/base/json.ts';
import type { Oracle } from '../test/support/duckdb.ts';
import type { WebQuery } from './corpus/web-queries.ts';
import type { Connections } from './measured-server.ts';
import { percentile } from './open-loop.ts';

export interface AskedOf {
  readonly client: Connections;
  readonly oracle: Oracle;
  /** The path of a namespace's SQL. */
  readonly path: string;
  readonly runs: number;
}

/** A question to a server, and to DuckDB beside it. */
export class Asked {
  readonly query: WebQuery;
  readonly #of: AskedOf;
  readonly #body: Buffer;
  firstMs = 0;
  cpuMs = 0;
  isSame = false;

  constructor(of: AskedOf, query: WebQuery) {
    this.query = query;
    this.#of = of;
    this.#body = Buffer.from(JSON.stringify({ sql: query.ours }));
  }

  async first(): Promise<void> {
    const began = performance.now();
    const answer = await this.#ours();
    this.firstMs = performance.now() - began;
    this.isSame = isSameAnswer(answerOf(answer), await this.#theirs());
  }

  /** Medians, in milliseconds. One after the other: neither finds the other's data in the processor's caches. */
  async hot(): Promise<{ readonly ours: number; readonly theirs: number }> {
    let answer = '';
    const ours = await medianMs(this.#of.runs, async () => {
      answer = await this.#ours();
    });
    const theirs = await medianMs(this.#of.runs, () => this.#theirs());
    this.cpuMs = answerOf(answer).cpu_ms;
    return { ours, theirs };
  }

  #ours(): Promise<string> {
    return this.#of.client.post(this.#of.path, this.#body);
  }

  #theirs(): Promise<unknown[][]> {
    return this.#of.oracle.rows(this.query.theirs ?? this.query.ours);
  }
}

async function medianMs(runs: number, run: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let at = 0; at < runs; at++) {
    const began = performance.now();
    await run();
    took.push(performance.now() - began);
  }
  return percentile(took, 0.5);
}

function answerOf(answer: string): SqlAnswer {
  return parseJson(Buffer.from(answer), { depthMax: 8 }) as unknown as SqlAnswer;
}

function isSameAnswer({ rows: found, types }: SqlAnswer, expected: readonly unknown[][]): boolean {
  const shown = (cells: readonly (readonly unknown[])[]) =>
    cells.map((row) => row.map((value, at) => shownValue(value, types[at] === 'float')).join('|')).join('\n');
  const [ours, theirs] = [shown(found), shown(expected)];
  if (ours !== theirs) process.stderr.write(`${ours.slice(0, 300)}\n---\n${theirs.slice(0, 300)}\n`);
  return ours === theirs;
}

/** Floats may differ in their last digits. */
function shownValue(value: unknown, isFloat: boolean): string {
  if (isFloat && value !== null) return Number(value).toPrecision(10);
  const isWhole = typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
  return isWhole ? String(BigInt(value as number | bigint)) : String(value);
}
