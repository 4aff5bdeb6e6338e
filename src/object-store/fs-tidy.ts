/**
 * What killed writers and earlier releases left in the folder of a store: bytes that nobody can read any more, but that
 * are on the disk. Writers remove what they supersede; only what was cut off, or was never removed, is found here.
 */
import { join } from 'node:path';
import { DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { repeat } from '../base/repeat.ts';
import { missing, readFolderEntries, unless } from './fs-calls.ts';
import { FsFolders } from './fs-folders.ts';
import { FsVersions, versionsMark } from './fs-versions.ts';

export interface TidyOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Between two rounds. */
  readonly everyMs: number;
}

/** Tidies now and then, from now on, until the answer is called. */
export function keepTidy({ folder, clock, random, logger, everyMs }: TidyOptions): () => void {
  let isOver = false;
  const stop = repeat(clock, 0, async () => {
    try {
      const onDamage = (error: DataError) =>
        logger.error('a damaged object of the folder was not tidied', { error: describeError(error) });
      await new FsFolders(folder).removeOldTemporary(clock.now());
      await tidyFolder(folder, random, { isOver: () => isOver, onDamage });
    } catch (error) {
      logger.error('the folder of the object store was not tidied', { error: describeError(error) });
    }
    return everyMs;
  });
  return () => {
    isOver = true;
    stop();
  };
}

/** One round, an object at a time; ends early where it is over. */
export async function tidyFolder(
  root: string,
  random: Random,
  { isOver, onDamage }: { readonly isOver: () => boolean; readonly onDamage: (error: DataError) => void },
): Promise<void> {
  const versions = new FsVersions(new FsFolders(root), random);
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined && !isOver(); folder = folders.pop()) {
    const entries = await unless(readFolderEntries(folder, { withFileTypes: true }), missing, []);
    for (const entry of entries) {
      if (isOver()) return;
      if (!entry.isDirectory() || entry.name.startsWith('.')) continue;
      const path = join(folder, entry.name);
      if (!entry.name.endsWith(versionsMark)) folders.push(path);
      else await versions.tidy(path.slice(0, -versionsMark.length)).catch(unlessDamaged(onDamage));
    }
  }
}

function unlessDamaged(onDamage: (error: DataError) => void): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof DataError)) throw error;
    onDamage(error);
  };
}
