/**
 * Lines of a log as rows: what searches, filters and SQL of several scenarios ask. About 300 bytes of text and eight columns each;
 * the same rows for the same count.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Chance } from '../../test/simulation/chance.ts';
import { importFile } from '../import-file.ts';
import { type LogLine, logLines, traceOf } from '../log-line-texts.ts';
import { temporaryFolder } from '../server.ts';
import type { Stage } from './scenario.ts';

export const logNamespace = 'log';
const seed = 20_260_101;
const tracesKept = 200;

export interface LogRows {
  /** NDJSON. */
  readonly file: string;
  readonly rows: number;
  /** Each stands in one row alone; spread over all of them. */
  readonly traces: readonly string[];
}

export async function writeLogRows(rows: number): Promise<LogRows> {
  const file = join(temporaryFolder(), 'log.ndjson');
  const out = createWriteStream(file);
  const chance = new Chance(seed, 1);
  const every = Math.max(1, Math.floor(rows / tracesKept));
  const traces: string[] = [];
  let i = 0;
  for (const line of logLines(rows, new Chance(seed, 0))) {
    if (i % every === 0) traces.push(traceOf(line));
    if (!out.write(rowOf(line, i++, chance))) await once(out, 'drain');
  }
  out.end();
  await once(out, 'finish');
  return { file, rows, traces };
}

/** Writes rows to a namespace and leaves them in segments. */
export async function importLogRows(stage: Stage, { file, rows }: LogRows): Promise<void> {
  const path = `/v1/namespaces/${logNamespace}/import?format=ndjson&id=id&text=text`;
  const answer = await importFile(stage.server, path, file);
  if (answer.rows !== rows) throw new Error(`of ${rows} rows ${answer.rows} were imported`);
  await stage.settle([logNamespace]);
}

const levels = { INFO: 80, DEBUG: 10, WARN: 7, ERROR: 3 } as const;

function rowOf({ id, text }: LogLine, number: number, chance: Chance): string {
  const row = {
    id,
    text,
    level: chance.weighted(levels),
    host: `node-${chance.integer(1, 60)}`,
    region: `eu-${chance.integer(1, 3)}`,
    status: chance.pick([200, 200, 200, 204, 304, 404, 500]),
    took_ms: Math.round(chance.fraction() ** 4 * 20_000) / 10,
    bytes: chance.integer(100, 1_000_000),
    user_id: chance.integer(1, 20_000),
    at_minute: Math.floor(number / 40 / 60),
  };
  return `${JSON.stringify(row)}\n`;
}
