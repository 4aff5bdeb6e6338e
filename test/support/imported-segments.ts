/** Imports of small files, whose readers and builder all run in this thread, into the bytes of a segment. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildImport } from '../../actors/compute/build-import.ts';
import { type ImportThreads, importByThreads } from '../../actors/compute/import-by-threads.ts';
import type { BuiltImport } from '../../actors/compute/lanes.ts';
import { readImport } from '../../actors/compute/read-import.ts';
import { importRequest } from '../../actors/import/import-request.ts';
import type { ImportRequest } from '../../actors/import/import-rows.ts';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';

export type Help = ImportThreads['help'];

export interface ImportedSegment {
  readonly built: BuiltImport;
  readonly segment: Buffer;
  /** How often the first reader has begun. */
  readonly readings: number;
}

export type HowToImport = Pick<ImportRequest, 'rangeRows' | 'rowByRow'> & {
  readonly help?: Help;
  /** Where the segment goes; default: a store of its own. */
  readonly store?: MemoryObjectStore;
};

const key = 'ns/ab/n/segment/imported';

/** Between two tries of an upload nobody waits. */
const clock: Clock = {
  ...systemClock,
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  sleep: () => Promise.resolve(),
};

/** A folder of files that are imported. Nothing in one thread keeps a test waiting: this does until it is closed. */
export class ImportFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'tidebase-import-threads-'));
  readonly #waiting = setInterval(() => {}, 1_000);

  close(): void {
    clearInterval(this.#waiting);
    rmSync(this.path, { recursive: true });
  }

  fileOf(name: string, content: string | Uint8Array): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  /** Imports a file by one reader, and `help` where it is given. */
  async import(
    path: string,
    query: string,
    { help, store = new MemoryObjectStore(systemClock), ...how }: HowToImport = {},
  ): Promise<ImportedSegment> {
    let readings = 0;
    const threads: ImportThreads = {
      read: (task) => {
        readings++;
        return readImport({ ...task, ...how });
      },
      help: (task, moved) => (help ?? never)({ ...task, ...how }, moved),
      build: (task) => buildImport({ store, clock, scratchFolder: this.path }, task),
    };
    assert.ok(statSync(path).size < limits.importHelpedBytesMin, 'the file itself is small');
    const bytes = help === undefined ? 0 : limits.importHelpedBytesMin;
    const given = { path, bytes, dims: null, key, firstSequence: 5, writtenAt: 1e15 };
    const built = await importByThreads(threads, { ...importRequest(query), ...given });
    const stored = await store.get(key);
    return { built, segment: Buffer.from(stored?.bytes ?? []), readings };
  }

  /** What the refusal of a file says; `none` where it is imported. */
  async refusal(path: string, query: string, how: HowToImport = {}): Promise<string> {
    try {
      await this.import(path, query, how);
    } catch (error) {
      if (error instanceof ApiError) return error.message;
      throw error;
    }
    return 'none';
  }
}

export const never: Help = () => Promise.reject(new Error('no thread is idle'));
