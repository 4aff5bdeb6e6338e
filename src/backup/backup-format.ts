import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { orDamage } from '../base/record.ts';

/** One object of the store as a backup has it. */
const entrySchema = z.strictObject({
  /** The object's key in the store. */
  key: z.string(),
  /** Its size in bytes. */
  size: z.int().min(0),
  /** The digest of its bytes, in hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** The key of the bytes among the objects of the backups, without the prefix that all of these have. */
  at: z.string(),
  /** The version that was read, of an object that may be replaced: the next backup asks whether it is still there. */
  etag: z.string().optional(),
});
export type BackupEntry = Readonly<z.output<typeof entrySchema>>;

const headSchema = z.strictObject({
  format: z.literal('tidebase backup'),
  version: z.literal(formats.backup.version),
  /** What is restored is the store as it was at this time: ISO 8601, UTC, by the clock of the machine that made the backup. */
  moment: z.string(),
});
export type BackupHead = Readonly<z.output<typeof headSchema>>;

const endSchema = z.strictObject({
  objects: z.int().min(0),
  bytes: z.int().min(0),
  /** The digest of all lines before this one, their line feeds too. */
  sha256: z.string(),
});
export type BackupEnd = Readonly<z.output<typeof endSchema>>;

const checkEntry = storedCheck(entrySchema);
const checkHead = storedCheck(headSchema);
const checkEnd = storedCheck(endSchema);

/** A line of an index or of a journal, its line feed included. */
export function lineOf(value: BackupHead | BackupEntry | BackupEnd): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

/** Reads the line of one object. Throws a `DataError` that names `place`. */
export function parseEntry(line: string, place: string): BackupEntry {
  return parsed(line, place, checkEntry);
}

export function parseHead(line: string, place: string): BackupHead {
  return parsed(line, place, checkHead);
}

export function parseEnd(line: string, place: string): BackupEnd {
  return parsed(line, place, checkEnd);
}

function parsed<T>(line: string, place: string, check: (value: unknown) => T): T {
  return orDamage(
    `a line of it can't be read (${line.slice(0, 80)})`,
    () => check(JSON.parse(line)),
    place,
    0,
  );
}
