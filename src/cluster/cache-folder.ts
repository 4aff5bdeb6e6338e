/**
 * Whether this server's local cache may have ended the process before: native code trusts what it maps, and a damaged
 * file of it ends every process that reads it. The cache is only a copy, so it is given up
 *
 * - at once after a crash of native code, which whoever started this process knows (`afterCrash`),
 * - after two abnormal ends within a minute, of whatever kind: a process that cannot tell how the last one ended still
 *   knows that it did not end in order,
 * - where the number of actor threads changes: a namespace may live on another thread then, and only its thread forgets
 *   what is deleted.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';

export interface CacheFolderOptions {
  readonly folder: string;
  /** One folder each, named by its number. */
  readonly actorThreads: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly afterCrash: boolean;
}

interface Ends {
  /** Until the process ends in order. */
  readonly running: boolean;
  /** When an abnormal end was last noticed, in milliseconds since 1970. */
  readonly abnormalAtMs: number | null;
  /** The actor threads of that process; null where it did not say. */
  readonly actorThreads: number | null;
}

const endsWithinMs = 60_000;

/** Files that are on their way into a thread's cache. */
export function scratchFolderOf(folder: string): string {
  return join(folder, 'scratch');
}

/** Before any thread opens its cache. Never throws: a cache that can't be prepared is the threads' to do without. */
export async function prepareCacheFolder(options: CacheFolderOptions): Promise<void> {
  const { folder, clock, log, afterCrash } = options;
  try {
    await mkdir(folder, { recursive: true });
    const now = clock.now();
    const previous = await readEnds(folder);
    const again =
      previous.running &&
      previous.abnormalAtMs !== null &&
      Math.abs(now - previous.abnormalAtMs) < endsWithinMs;
    const isMoved = previous.actorThreads !== null && previous.actorThreads !== options.actorThreads;
    const wipe = afterCrash || again || isMoved;
    if (afterCrash || again) log.info('the cache starts empty after abnormal ends', { afterCrash });
    else if (isMoved) log.info('the cache starts empty: it was of another number of actor threads');
    // What was on its way into the cache of the process before.
    await rm(scratchFolderOf(folder), { recursive: true, force: true });
    await removeFolders(folder, (index) => wipe || index >= options.actorThreads);
    const abnormalAtMs = previous.running ? now : previous.abnormalAtMs;
    await writeEnds(folder, { running: true, abnormalAtMs, actorThreads: options.actorThreads });
  } catch (error) {
    log.error('the cache folder cannot be prepared', { folder, error: describeError(error) });
  }
}

/** After every thread has ended. */
export async function noteCacheEnd(folder: string): Promise<void> {
  // What can't be written counts as an abnormal end, which costs at most the cache.
  const { actorThreads } = await readEnds(folder);
  await writeEnds(folder, { running: false, abnormalAtMs: null, actorThreads }).catch(() => {});
}

/** Those of threads, and nothing else: whoever keeps other things in the folder keeps them. */
async function removeFolders(folder: string, isOver: (index: number) => boolean): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!/^[0-9]{1,4}$/.test(name) || !isOver(Number(name))) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

const fileOf = (folder: string) => join(folder, 'ends.json');

async function readEnds(folder: string): Promise<Ends> {
  try {
    const found = JSON.parse(await readFile(fileOf(folder), 'utf8')) as Partial<Ends>;
    const { running, abnormalAtMs, actorThreads } = found;
    return {
      running: running === true,
      abnormalAtMs: typeof abnormalAtMs === 'number' ? abnormalAtMs : null,
      actorThreads: typeof actorThreads === 'number' ? actorThreads : null,
    };
  } catch {
    return { running: false, abnormalAtMs: null, actorThreads: null }; // Missing, or damaged like what it speaks of.
  }
}

async function writeEnds(folder: string, ends: Ends): Promise<void> {
  try {
    await writeFile(fileOf(folder), JSON.stringify(ends));
  } catch {
    await rm(fileOf(folder), { recursive: true, force: true });
    await writeFile(fileOf(folder), JSON.stringify(ends));
  }
}
