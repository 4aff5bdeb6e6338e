import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { nonEmpty, UsageError } from './target-arguments.ts';

/** Where backups lie: a folder, or a bucket and what its keys begin with. */
export type BackupPlace =
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'bucket'; readonly bucket: string; readonly prefix: string };

export interface BackupArguments {
  readonly to: BackupPlace;
  /** How many backups stay; null means all. */
  readonly keep: number | null;
}

export interface RestoreArguments {
  readonly from: BackupPlace;
  /** The newest where absent. */
  readonly backup: string | undefined;
  readonly does: 'restore' | 'check' | 'list';
}

const placeWords = `PLACE is a folder, or s3://BUCKET or s3://BUCKET/PREFIX, reached with the S3_… settings.
The object store is the one of the server's own settings (TIDEBASE_DATA_DIR, TIDEBASE_OBJECT_STORE, S3_…).
`;

export const backupUsageLine = 'tidebase backup --to PLACE [--keep NUMBER]\n';
export const backupUsage = `${backupUsageLine}
Copies the object store as it is at one moment, while servers go on writing. What an earlier backup in the same place has is
not copied again, and a backup that was ended is gone on with.
  --to    where backups lie
  --keep  so many of the newest backups stay, and older ones are removed (default: all stay)

${placeWords}`;

export const restoreUsageLine = 'tidebase restore --from PLACE [--backup NAME] [--check | --list]\n';
export const restoreUsage = `${restoreUsageLine}
Puts a backup into an object store that is empty. Start servers on it afterwards; they need the secrets of those before.
  --from    where backups lie
  --backup  which one (default: the newest)
  --check   read and check all of it, and put nothing anywhere
  --list    name the backups

${placeWords}`;

/** Reads the arguments of `tidebase backup`; null where help was asked for. Throws UsageError. */
export function parseBackupArguments(args: readonly string[]): BackupArguments | null {
  const values = parsed(args, { to: { type: 'string' }, keep: { type: 'string' } });
  if (values.help === true) return null;
  return { to: placeOf(text(values.to), '--to'), keep: keepOf(text(values.keep)) };
}

/** Reads the arguments of `tidebase restore`; null where help was asked for. Throws UsageError. */
export function parseRestoreArguments(args: readonly string[]): RestoreArguments | null {
  const values = parsed(args, {
    from: { type: 'string' },
    backup: { type: 'string' },
    check: { type: 'boolean' },
    list: { type: 'boolean' },
  });
  if (values.help === true) return null;
  if (values.check === true && values.list === true) throw new UsageError('--check or --list, not both');
  const does = values.check === true ? 'check' : values.list === true ? 'list' : 'restore';
  return { from: placeOf(text(values.from), '--from'), backup: nonEmpty(text(values.backup)), does };
}

function placeOf(place: string | undefined, option: string): BackupPlace {
  if (place === undefined || place === '')
    throw new UsageError(`where do the backups lie? Say ${option} PLACE`);
  if (!place.includes('://')) return { kind: 'folder', folder: resolve(place) };
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(place) ?? [];
  if (bucket === undefined)
    throw new UsageError(`"${place}" is no place for backups: name a folder, or s3://BUCKET/PREFIX`);
  const parts = prefix.split('/').filter((part) => part !== '');
  if (!parts.every((part) => /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$/.test(part)))
    throw new UsageError('a prefix has letters, digits and - _ . / only, and no part that begins with a dot');
  return { kind: 'bucket', bucket, prefix: parts.map((part) => `${part}/`).join('') };
}

function keepOf(keep: string | undefined): number | null {
  if (keep === undefined) return null;
  if (!/^[1-9][0-9]{0,5}$/.test(keep)) throw new UsageError(`--keep is a number from 1 on, not "${keep}"`);
  return Number(keep);
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;
type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

function parsed(args: readonly string[], options: Options): Values {
  try {
    const help = { help: { type: 'boolean', short: 'h' } } as const;
    return parseArgs({ args: [...args], options: { ...options, ...help } }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function text(value: Values[string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
