import { extname } from 'node:path';
import { type ImportFormat, importFormats } from '../../protocol/write.ts';
import {
  type CommandTarget,
  onlyPositional,
  parsedOptions,
  targetOf,
  targetOptions,
  UsageError,
} from './target-arguments.ts';

/** What `tidebase import` was asked to do, from its arguments and the environment. */
export interface ImportArguments extends CommandTarget {
  readonly file: string;
  readonly format: ImportFormat;
  /** What the file is packed with, by its name; null for nothing. */
  readonly packing: 'gzip' | 'zstd' | null;
  readonly id: string | undefined;
  readonly text: string | undefined;
  readonly vector: string | undefined;
  readonly columns: string | undefined;
  readonly skip: string | undefined;
  /** The file of a table definition. */
  readonly schemaFile: string | undefined;
}

export const importUsageLine =
  'tidebase import FILE --namespace NAME [--id COLUMN] [--text COLUMNS] [--vector COLUMN] [--columns COLUMNS | --skip COLUMNS] [--schema FILE] [--format FORMAT] [--url URL] [--key KEY]\n';
export const importUsage = `${importUsageLine}
Sends a CSV, NDJSON or Parquet file: its rows become documents, all of them or none. A file whose name ends with .gz or .zst is sent as it
is, and unpacked by the server.
  --namespace, -n  the namespace; it is made if there is none
  --id             the column with the ids (default: row numbers); rows with the ids of documents replace them
  --text           columns to index as text, with commas between them
  --vector         the column with the vectors: lists of numbers, or base64 of little-endian float32 values
  --columns        columns to keep in meta, with commas between them (default: all)
  --skip           columns to leave out of meta
  --schema         CSV: a file with a table definition (CREATE TABLE …) that gives the column types
  --format         csv, ndjson or parquet (default: what the file's name ends with)
  --url            the server (or TIDEBASE_URL; default http://127.0.0.1:8080)
  --key            an API key that may write (or TIDEBASE_API_KEY, which other users of the machine cannot see)
`;

const formatsOfEndings: Readonly<Record<string, ImportFormat>> = {
  '.csv': 'csv',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.parquet': 'parquet',
};

const packingsOfEndings: Readonly<Record<string, 'gzip' | 'zstd'>> = { '.gz': 'gzip', '.zst': 'zstd' };

/** Null where help was asked for. Throws UsageError. */
export function parseImportArguments(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ImportArguments | null {
  const { values, positionals } = parsedOptions(args, options);
  if (values.help === true) return null;
  const file = onlyPositional(positionals, 'file');
  const packing = packingsOfEndings[extname(file).toLowerCase()] ?? null;
  return {
    file,
    ...targetOf(values, env),
    format: formatOf(values.format, packing === null ? file : file.slice(0, -extname(file).length)),
    packing,
    id: values.id,
    text: values.text,
    vector: values.vector,
    columns: values.columns,
    skip: values.skip,
    schemaFile: values.schema,
  };
}

const options = {
  ...targetOptions,
  id: { type: 'string' },
  text: { type: 'string' },
  vector: { type: 'string' },
  columns: { type: 'string' },
  skip: { type: 'string' },
  schema: { type: 'string' },
  format: { type: 'string' },
} as const;

function formatOf(asked: string | undefined, file: string): ImportFormat {
  const format = asked ?? formatsOfEndings[extname(file).toLowerCase()];
  const known = importFormats.find((name) => name === format);
  if (known !== undefined) return known;
  if (asked !== undefined) throw new UsageError(`"${asked}" is no format: csv, ndjson or parquet`);
  throw new UsageError(`what format has ${file}? Say --format csv, ndjson or parquet`);
}
