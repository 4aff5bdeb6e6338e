/**
 * The door to LMDB: the environment of one warm cache. It trusts its file, so `warm-folder.ts` says whether it may be
 * opened at all; a damaged page that gets through throws, or ends the process.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { diskPageBytes } from './warm-entry.ts';

export interface Databases {
  readonly root: RootDatabase<Buffer, string>;
  /** Name → head, and the bytes where they are inline. */
  readonly entries: Database<Buffer, string>;
  /** Number, rising with time → name: whom to evict next. A hint: names may be gone or appear twice. */
  readonly ages: Database<string, number>;
  /** File number → name, so that files without an entry are found after a crash. */
  readonly files: Database<string, number>;
  readonly state: Database<number, string>;
}

/** What an environment says of itself when it is opened. */
export interface FoundState {
  /** All entries together, as they were charged. */
  readonly bytes: number;
  /** How many of these bytes lie in files. */
  readonly fileBytes: number;
  /** The highest age or file number. */
  readonly lastNumber: number;
}

export function openDatabases(path: string, bytesMax: number): Databases {
  // Mutexes lie in the lock file, and a damaged one might be waited for without end. Nobody else opens this environment,
  // so each opening gets a new one, and it keeps no name under which anybody could come to it.
  const lockFile = join(path, 'lock.mdb');
  rmSync(lockFile, { recursive: true, force: true });
  const root = open<Buffer, string>({
    path,
    noSubdir: false,
    // Nothing is synchronised: prepareFolder wipes what a machine's crash may have left half-written.
    noSync: true,
    noMetaSync: true,
    overlappingSync: false,
    // With it lmdb keeps a promise of each batch to itself, and a full disk ends the process as an unhandled rejection.
    // Without it writes keep their order and may land in two transactions, which nothing here minds.
    eventTurnBatching: false,
    // Address space, not disk: room for pages between values that are free and too few in a row.
    mapSize: mapBytesFor(bytesMax),
    maxDbs: 8,
    encoding: 'binary',
  });
  rmSync(lockFile, { force: true });
  return {
    root,
    entries: root.openDB<Buffer, string>({ name: 'entries', encoding: 'binary' }),
    ages: root.openDB<string, number>({ name: 'ages', encoding: 'string' }),
    files: root.openDB<string, number>({ name: 'files', encoding: 'string' }),
    state: root.openDB<number, string>({ name: 'state', encoding: 'ordered-binary' }),
  };
}

/** Throws where the numbers cannot be ours: then nothing else is believed either. */
export function readState(databases: Databases): FoundState {
  const bytes: unknown = databases.state.get('bytes') ?? 0;
  const fileBytes: unknown = databases.state.get('fileBytes') ?? 0;
  const lastNumber = Math.max(lastKey(databases.ages), lastKey(databases.files));
  if (!isCount(bytes) || !isCount(fileBytes) || !isCount(lastNumber)) {
    throw new Error('its counters are no counters');
  }
  return { bytes, fileBytes, lastNumber };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function mapBytesFor(bytesMax: number): number {
  const slackBytes = 64 * 1024 * 1024;
  return Math.ceil((bytesMax * 2 + slackBytes) / diskPageBytes) * diskPageBytes;
}

function lastKey(database: Database<string, number>): number {
  for (const key of database.getKeys({ reverse: true, limit: 1 })) return key;
  return 0;
}

/**
 * Queues the writes at once and waits for all: none is left without a handler, and one that throws while it is queued
 * counts as failed. Rejects with the first failure.
 */
export async function settled(queue: () => readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(queue())) {
    if (result.status === 'fulfilled') continue;
    silenceCommitError(result.reason);
    throw result.reason;
  }
}

/** lmdb hangs a second promise on a failed commit's error, which would end the process as an unhandled rejection. */
function silenceCommitError(error: unknown): void {
  if (!(error instanceof Error) || !('commitError' in error)) return;
  if (error.commitError instanceof Promise) error.commitError.catch(() => {});
}
