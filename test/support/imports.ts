/** Files that are imported into a whole process, as the front hands them over. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError } from '../../protocol/errors.ts';
import { systemClock } from '../../src/base/clock.ts';
import { packMessage } from '../../src/base/msgpack.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { type Answer, call, InProcess, seededBytes } from './in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'tidebase-imports-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
let files = 0;

export function importFileName(name: string): string {
  return join(folder, `${++files}-${name}`);
}

/** Nothing in a whole process in one thread keeps a test waiting. */
let waiting: NodeJS.Timeout | null = null;

export async function startImporting(store = new MemoryObjectStore(systemClock)): Promise<InProcess> {
  waiting ??= setInterval(() => {}, 1_000);
  const random = seededBytes(++files);
  return InProcess.start({ store, clock: systemClock, random, commitMs: 1 });
}

/** When the last of them has ended. */
export function endImporting(): void {
  if (waiting !== null) clearInterval(waiting);
  waiting = null;
}

/** `content`: of the file; `query`: as in the URL. */
export async function importInto(
  server: InProcess,
  namespace: string,
  content: string | Uint8Array,
  query: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const path = importFileName('file');
  writeFileSync(path, content);
  return importPath(server, namespace, path, query);
}

export async function importPath(
  server: InProcess,
  namespace: string,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const asked = call('importDocuments', namespace, { query: String(new URLSearchParams(query)) });
  try {
    const file = packMessage({ path, bytes: statSync(path).size });
    const { status, json } = await server.host.handle(asked, file);
    return { status, code: '', body: JSON.parse(json) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return {
      status: error.status,
      code: error.code,
      body: JSON.parse(Buffer.from(error.toBody()).toString()),
    };
  }
}

/** Rows of a statement, as JSON has them. */
export async function sqlRows(server: InProcess, namespace: string, sql: string): Promise<unknown[][]> {
  const { status, body } = await server.ask('sql', namespace, { body: { sql } });
  if (status !== 200) throw new Error(`${sql}: ${JSON.stringify(body)}`);
  return body.rows;
}

/** Columns and their types. */
export async function sqlTypes(server: InProcess, namespace: string): Promise<Record<string, string>> {
  const rows = await sqlRows(server, namespace, 'SHOW COLUMNS');
  return Object.fromEntries(rows.map(([name, type]) => [name, type]));
}
