/**
 * The lock of a data folder: a socket whose name is the folder's, which the system takes away with its process, however that ends. Two processes on
 * one folder would have one name in the cluster, and each would seal the log of the other.
 *
 * It spares operators a mistake, and no write rests on it: of two processes the log decides, by its seal. Linux has such names, without a file, and
 * each container has names of its own; elsewhere nothing is locked.
 */
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Clock } from '../base/clock.ts';

/** The data folder is another process's. The message says what an operator can do about it. */
export class FolderInUse extends Error {
  override name = 'FolderInUse';
}

/** Between two looks whether the process that has the folder has ended. */
const lookEveryMs = 100;

/**
 * Locks the folder; the answer lets it go. Waits for another process that is about to end, as one does whose supervisor was killed; then throws
 * FolderInUse.
 */
export async function lockFolder(
  folder: string,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): Promise<() => void> {
  if (process.platform !== 'linux') return () => {};
  const { dev, ino } = await stat(folder, { bigint: true });
  for (const untilMs = clock.monotonic() + waitMs; ; await clock.sleep(lookEveryMs)) {
    const release = await take(`\0tidebase-data-folder-${dev}-${ino}`);
    if (release !== null) return release;
    if (clock.monotonic() >= untilMs)
      throw new FolderInUse(
        `another server is running on the data folder ${folder}: stop it first, or set TIDEBASE_DATA_DIR to a folder of its own`,
      );
  }
}

/** Null where another process has the name. */
async function take(name: string): Promise<(() => void) | null> {
  // Nobody has anything to say here.
  const server = createServer((socket) => socket.destroy());
  // The lock alone keeps no process alive.
  server.unref();
  server.listen(name);
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
  return () => void server.close();
}
