import { BackupSite } from '../backup/backup-site.ts';
import { keepNewest } from '../backup/keep-newest.ts';
import { CannotRestore, checkBackup, readBackup, restoreBackup } from '../backup/restore-backup.ts';
import { SiteLock, SiteLocked } from '../backup/site-lock.ts';
import { CannotBackUp, takeBackup } from '../backup/take-backup.ts';
import { DataError } from '../base/assert.ts';
import { systemClock } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import { makeOnlyPrivate } from '../base/private-folder.ts';
import { systemRandom } from '../base/random.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { openObjectStore } from '../object-store/open-object-store.ts';
import { readBucket } from '../settings.ts';
import { type Env, SettingsError } from '../settings-values.ts';
import { bucketStoreSettings, readStoreSettings } from '../store-settings.ts';
import { counted, megabytes } from './amounts.ts';
import {
  type BackupArguments,
  type BackupPlace,
  backupUsage,
  backupUsageLine,
  parseBackupArguments,
  parseRestoreArguments,
  type RestoreArguments,
  restoreUsage,
  restoreUsageLine,
} from './backup-arguments.ts';
import { ProgressBar } from './progress-bar.ts';
import { UsageError } from './target-arguments.ts';

const components = { clock: systemClock, random: systemRandom };

/** `tidebase backup`: answers the exit code, 0 made, 1 not made, 2 not understood. */
export function runBackup(args: readonly string[], env: Env): Promise<number> {
  return told('backup', backupUsageLine, async () => {
    const asked = parseBackupArguments(args);
    if (asked === null) return help(backupUsage);
    return backUp(asked, env);
  });
}

/** `tidebase restore`: answers the exit code as `runBackup` does; 1 is also a backup that is damaged. */
export function runRestore(args: readonly string[], env: Env): Promise<number> {
  return told('restore', restoreUsageLine, async () => {
    const asked = parseRestoreArguments(args);
    if (asked === null) return help(restoreUsage);
    return asked.does === 'list' ? list(asked.from, env) : restore(asked, env);
  });
}

async function backUp({ to, keep }: BackupArguments, env: Env): Promise<number> {
  return withStores(to, env, async ({ store, site, place, lockKey }) => {
    const lock = await SiteLock.take(place, lockKey, components);
    const bar = new ProgressBar();
    try {
      const onProgress = (done: { readonly objects: number; readonly bytes: number }) => {
        lock.assertHeld();
        bar.show(`${counted(done.objects, 'object')}, ${megabytes(done.bytes)}`);
      };
      const { backup, added } = await takeBackup({ store, site, clock: systemClock, onProgress });
      bar.clear();
      const { objects, bytes } = backup.end;
      say(`backup ${backup.name} has ${counted(objects, 'object')}, ${megabytes(bytes)}`);
      say(
        `${counted(added.objects, 'object')}, ${megabytes(added.bytes)} of it copied now; the moment is ${backup.head.moment}`,
      );
      lock.assertHeld();
      if (keep !== null) {
        const removed = await keepNewest(site, keep);
        say(
          `${counted(removed.backups, 'older backup')} removed, with ${counted(removed.objects, 'copy', 'copies')}`,
        );
      }
      return 0;
    } finally {
      bar.clear();
      await lock.release();
    }
  });
}

async function restore({ from, backup: name, does }: RestoreArguments, env: Env): Promise<number> {
  return withStores(from, env, async ({ store, site }) => {
    const found = await readBackup(site, name);
    const bar = new ProgressBar();
    const onProgress = (done: { readonly bytes: number }, all: { readonly bytes: number }) =>
      bar.show(`of ${megabytes(all.bytes)}`, done.bytes / Math.max(1, all.bytes));
    try {
      if (does === 'check') await checkBackup({ site, clock: systemClock, onProgress }, found);
      else await restoreBackup({ site, clock: systemClock, onProgress }, store, found);
    } finally {
      bar.clear();
    }
    const { objects, bytes } = found.backup.end;
    const done = does === 'check' ? 'is whole' : 'is restored';
    say(
      `backup ${found.backup.name} ${done}: ${counted(objects, 'object')}, ${megabytes(bytes)}, as of ${found.backup.head.moment}`,
    );
    return 0;
  });
}

async function list(from: BackupPlace, env: Env): Promise<number> {
  return withStores(from, env, async ({ site }) => {
    for (const name of await site.backups()) say(name);
    return 0;
  });
}

interface Stores {
  readonly store: ObjectStore;
  readonly place: ObjectStore;
  readonly site: BackupSite;
  readonly lockKey: string;
}

async function withStores(
  place: BackupPlace,
  env: Env,
  work: (stores: Stores) => Promise<number>,
): Promise<number> {
  makeOnlyPrivate();
  const settings =
    place.kind === 'folder'
      ? ({ kind: 'fs', folder: place.folder } as const)
      : bucketStoreSettings(readBucket(env, place.bucket));
  const prefix = place.kind === 'folder' ? '' : place.prefix;
  const store = await openObjectStore(readStoreSettings(env), systemClock, systemRandom);
  const there = await openObjectStore(settings, systemClock, systemRandom);
  try {
    const site = new BackupSite(there, prefix, components);
    return await work({ store, place: there, site, lockKey: `${prefix}lock` });
  } finally {
    await Promise.all([store.close(), there.close()]);
  }
}

async function told(command: string, usageLine: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`tidebase ${command}: ${error.message}\n\n${usageLine}`);
      return 2;
    }
    process.stderr.write(`tidebase ${command}: ${sentenceOf(error)}\n`);
    return 1;
  }
}

/** Errors whose messages are for a person. */
const forPeople = [CannotBackUp, CannotRestore, SiteLocked, DataError, SettingsError];

function sentenceOf(error: unknown): string {
  return error instanceof Error && forPeople.some((kind) => error instanceof kind)
    ? error.message
    : describeError(error);
}

function help(usage: string): number {
  process.stdout.write(usage);
  return 0;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
