import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ApiError } from '../../../../protocol/errors.ts';
import { DuckParquet } from '../../../support/duckdb-parquet.ts';
import { type ReadFile, readBytesRows, readFileRows } from '../../../support/imported-rows.ts';
import { importFileName } from '../../../support/imports.ts';
import { repositoryRoot } from '../../../support/repository.ts';
import { seededRandom } from '../../../support/segments.ts';

let duck: DuckParquet;

before(async () => {
  duck = await DuckParquet.open();
});
after(() => duck.close());

async function rowsOf(path: string): Promise<ReadFile> {
  const found = await readFileRows('parquet', path);
  if (found instanceof ApiError) return assert.fail(`${path}: ${found.message}`);
  return found;
}

async function assertAsDuck(path: string): Promise<void> {
  const theirs = await duck.rows(path);
  if (typeof theirs === 'string') return assert.fail(theirs);
  assert.equal(theirs.differenceFrom((await rowsOf(path)).documents), null, path);
}

const depthMost = 4;

/** An expression of some type, with nulls and empty lists, over the row number `i`. */
function expression(random: () => number, depth: number): string {
  const pick = Math.floor(random() * (depth < depthMost ? 9 : 5));
  const rare = 2 + Math.floor(random() * 5);
  const inner = () => expression(random, depth + 1);
  switch (pick) {
    case 0:
      return `CASE WHEN i % ${rare} > 0 THEN i * ${rare} END`;
    case 1:
      return `'text "é' || (i % ${rare * 3})`;
    case 2:
      return `CASE WHEN i % ${rare} > 0 THEN i / ${rare}.0::DOUBLE END`;
    case 3:
      return `CASE WHEN i % ${rare} = 0 THEN true WHEN i % ${rare} = 1 THEN false END`;
    case 4:
      return `DATE '2020-01-01' + (i % ${rare * 100})::INT`;
    case 5:
    case 6:
      return `CASE WHEN i % ${rare} > 0 THEN list_resize([${inner()}, ${inner()
        .replaceAll(/.*/gsu, '')
        .concat('NULL')}], i % ${rare}) END`;
    case 7:
      return `CASE WHEN i % ${rare} <> 1 THEN {'a': ${inner()}, 'b c"': ${inner()}} END`;
    default:
      return `CASE WHEN i % ${rare} <> 1 THEN MAP {'k' || (i % 3): ${inner()}, 'other': NULL} END`;
  }
}

describe('nested columns are what DuckDB reads', () => {
  const random = seededRandom(2024);
  for (let round = 0; round < 24; round++) {
    const columns = Array.from({ length: 4 }, (_, at) => `${expression(random, at === 0 ? 3 : 1)} AS c${at}`);
    const version = round % 2 === 0 ? 'v1' : 'v2';
    const codec = ['UNCOMPRESSED', 'SNAPPY', 'ZSTD'][round % 3];
    test(`of random types: ${round}, ${version}, ${codec}`, async () => {
      const path = importFileName('nested.parquet');
      const rows = [1, 70, 3_000][round % 3];
      const select = `SELECT ${columns.join(', ')} FROM range(${rows}) t(i)`;
      await duck.write(
        select,
        path,
        `, PARQUET_VERSION ${version}, COMPRESSION ${codec}, ROW_GROUP_SIZE 2048`,
      );
      await assertAsDuck(path);
    });
  }

  test('rows of which each has lists of lists, in many pages', async () => {
    const path = importFileName('deep.parquet');
    const select =
      'SELECT list_transform(range(i % 7), x -> list_transform(range(x % 3), y -> x * y + i)) AS deep FROM range(30000) t(i)';
    await duck.write(select, path);
    await assertAsDuck(path);
  });
});

const folder = join(repositoryRoot(), 'test/data/parquet-testing');
const files = readdirSync(folder).filter((name) => name.endsWith('.parquet'));

describe('files of other writers', () => {
  /** Why each of these is not what DuckDB reads: it reads none of the first, and passes over checksums. */
  const ownValues: Readonly<Record<string, (rows: ReadFile) => void>> = {
    'byte_stream_split_extended.gzip.parquet': ({ documents }) => {
      for (const { meta } of documents) {
        const row = JSON.parse(meta) as Record<string, unknown>;
        for (const [name, value] of Object.entries(row))
          if (name.endsWith('_byte_stream_split'))
            assert.deepEqual(value, row[name.replace('_byte_stream_split', '_plain')], name);
      }
    },
    'hadoop_lz4_compressed.parquet': ({ documents }) =>
      assert.deepEqual(
        documents.map(({ meta }) => JSON.parse(meta).c0),
        [1593604800, 1593604800, 1593604801, 1593604801],
      ),
    'map_no_value.parquet': ({ documents }) =>
      assert.deepEqual(JSON.parse(documents[0]?.meta ?? '').my_map_no_v, [1, 2, 3]),
    // Spark's own overflow: DuckDB's time of day overflows once more.
    'int96_from_spark.parquet': ({ documents }) =>
      assert.equal(JSON.parse(documents[5]?.meta ?? '').a, '-294554-12-13 14:58:10'),
  };

  for (const name of files)
    test(name, async () => {
      const path = join(folder, name);
      if (name.includes('corrupt-checksum')) {
        const refused = await readFileRows('parquet', path);
        assert.match(refused instanceof ApiError ? refused.message : '', /a page is damaged: its checksum/u);
      } else if (ownValues[name] !== undefined) ownValues[name](await rowsOf(path));
      else await assertAsDuck(path);
    });
});

test('files of other writers that are cut or changed are refused in our words, or read', async () => {
  const random = seededRandom(5);
  const rounds = Number(process.env.PARQUET_DAMAGES ?? 100) * 3;
  let refused = 0;
  for (let round = 0; round < rounds; round++) {
    const whole = readFileSync(join(folder, files[round % files.length] as string));
    const file = Buffer.from(
      round % 7 === 0 ? whole.subarray(0, Math.floor(random() * whole.length)) : whole,
    );
    for (let flip = round % 3; flip >= 0 && file.length > 0; flip--)
      file[Math.floor(random() * file.length)] = Math.floor(random() * 256);
    const found = await readBytesRows('parquet', file);
    if (!(found instanceof ApiError)) continue;
    refused++;
    assert.ok([413, 422].includes(found.status), found.message);
    assert.doesNotMatch(
      found.message,
      /cannot|undefined|property|function|bounds|offset|invalid|thrift|\bat \d/iu,
    );
  }
  assert.ok(refused > rounds / 4, `${refused} of ${rounds}`);
});
