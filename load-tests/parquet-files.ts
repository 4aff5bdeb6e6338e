/**
 * What an import makes of each Parquet file in a folder, beside what DuckDB reads: rows with the same values, or why it is refused.
 *
 * `npm run prove -- parquet-files` with PARQUET_FILES naming the folder; Apache's parquet-testing has one, `data`.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../protocol/errors.ts';
import { DuckParquet } from '../test/support/duckdb-parquet.ts';
import { readFileRows } from '../test/support/imported-rows.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);
const folder = process.env.PARQUET_FILES;
if (folder === undefined) throw new Error('PARQUET_FILES names a folder with Parquet files');
const duck = await DuckParquet.open();
const counts = { files: 0, imported: 0, refused: 0, read: 0, same: 0 };
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.parquet'))
  .toSorted();
for (const name of files) {
  const path = join(folder, name);
  counts.files++;
  const theirs = await duck.rows(path);
  if (typeof theirs !== 'string') counts.read++;
  const ours = await readFileRows('parquet', path);
  if (ours instanceof ApiError) {
    counts.refused++;
    say(`${ours.status} ${name}: ${ours.message}${typeof theirs === 'string' ? '' : '   (DuckDB reads it)'}`);
    continue;
  }
  counts.imported++;
  const difference = typeof theirs === 'string' ? null : theirs.differenceFrom(ours.documents);
  if (difference === null && typeof theirs !== 'string') counts.same++;
  const said = typeof theirs === 'string' ? 'DuckDB does not read it' : (difference ?? 'as DuckDB');
  say(`ok  ${name}: ${ours.documents.length} rows, ${said}`);
}
say(
  `${counts.files} files: ${counts.imported} imported, ${counts.refused} refused; DuckDB reads ${counts.read}, of which ${counts.same} have its values`,
);
