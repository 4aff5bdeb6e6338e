import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Oracle } from '../../support/duckdb.ts';
import { endImporting, importFileName, importInto, startImporting } from '../../support/imports.ts';
import type { InProcess } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

let server: InProcess;
let oracle: Oracle;
let names = 0;

before(async () => {
  server = await startImporting();
  await server.createTenant();
  oracle = await Oracle.open();
});
after(async () => {
  oracle.close();
  await server.drain();
  endImporting();
});

const fresh = () => `vectors-${++names}`;
const dims = 5;
const random = seededRandom(20);
/** Rows with vectors of 32 bits; the third has none. */
const rows = Array.from({ length: 60 }, (_, at) => ({
  key: `k${at}`,
  text: `row ${at % 7}`,
  embedding: at === 2 ? null : Array.from({ length: dims }, () => Math.fround(random() * 2 - 1)),
}));

const base64 = (numbers: readonly number[]) =>
  Buffer.from(Float32Array.from(numbers).buffer).toString('base64');

type Write = (numbers: readonly number[]) => string;
const asList: Write = (numbers) => JSON.stringify(numbers);

const csv = (write: Write) =>
  [
    'key,text,embedding',
    ...rows.map(
      ({ key, text, embedding }) => `${key},${text},${embedding === null ? '' : `"${write(embedding)}"`}`,
    ),
  ].join('\n');

const ndjson = (write: (numbers: readonly number[]) => unknown) =>
  rows
    .map((row) => JSON.stringify({ ...row, embedding: row.embedding === null ? null : write(row.embedding) }))
    .join('\n');

async function parquet(sqlOf: (numbers: readonly number[]) => string): Promise<Buffer> {
  const path = importFileName('vectors.parquet');
  const values = rows.map(
    ({ key, text, embedding }) => `('${key}', '${text}', ${embedding === null ? 'NULL' : sqlOf(embedding)})`,
  );
  await oracle.rows(`COPY (FROM (VALUES ${values}) t(key, text, embedding)) TO '${path}' (FORMAT parquet)`);
  return readFileSync(path);
}

/** Without an exponent DuckDB takes numbers for decimals, which it rounds otherwise. */
const doubles = (numbers: readonly number[]) => `[${numbers.map((number) => number.toExponential()).join()}]`;

const blob = (numbers: readonly number[]) =>
  `'${Buffer.from(Float32Array.from(numbers).buffer).toString('hex').replaceAll(/../gu, '\\x$&')}'::BLOB`;

const files: readonly (readonly [string, string, () => string | Promise<Buffer>])[] = [
  ['csv', 'lists', () => csv(asList)],
  ['csv', 'base64', () => csv(base64)],
  ['ndjson', 'lists', () => ndjson((numbers) => numbers)],
  ['ndjson', 'base64', () => ndjson(base64)],
  ['parquet', 'texts of lists', () => parquet((numbers) => `'${asList(numbers)}'`)],
  ['parquet', 'texts of base64', () => parquet((numbers) => `'${base64(numbers)}'`)],
  ['parquet', 'bytes', () => parquet(blob)],
  ['parquet', 'lists of floats', () => parquet((numbers) => `${doubles(numbers)}::FLOAT[]`)],
  ['parquet', 'lists of doubles', () => parquet((numbers) => doubles(numbers))],
];

/** The same rows, written. */
async function writtenRows(): Promise<string> {
  const namespace = fresh();
  const docs = rows.map(({ key, text, embedding }) => ({
    id: key,
    text,
    meta: { key, text },
    ...(embedding === null ? {} : { vector: embedding }),
  }));
  const { status, body } = await server.put(namespace, docs);
  assert.equal(status, 200, JSON.stringify(body));
  return namespace;
}

const query = { id: 'key', text: 'text', vector: 'embedding' };

describe('vectors of a file are those of a write', () => {
  for (const [format, what, content] of files)
    test(`${format}: ${what}`, async () => {
      const namespace = fresh();
      const answer = await importInto(server, namespace, await content(), { format, ...query });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      const written = await writtenRows();
      const described = await server.ask('getNamespace', namespace);
      assert.deepEqual(described.body.vector, { dims, metric: 'cosine' });
      for (const asked of [rows[7], rows[31]]) {
        const search = { vector: asked?.embedding, limit: 10, include: ['vector'] };
        const hitsOf = async (name: string) =>
          (await server.search(name, search)).body.hits.map(
            ({ id, score, vector, meta }: Record<string, unknown>) => ({
              id,
              score,
              vector,
              meta,
            }),
          );
        const ours = await hitsOf(namespace);
        assert.equal(ours[0].id, asked?.key);
        assert.deepEqual(ours, await hitsOf(written));
      }
      assert.equal((await server.get(namespace, 'k2')).body.vector, undefined);
    });
});

test('rows that are written beside imported ones are found with them', async () => {
  const namespace = await writtenRows();
  const more = 'key,text,embedding\nnew,hello,"[1, 0, 0, 0, 0]"\nk7,again,"[0,0,0,0,1]"\n';
  const { status, body } = await importInto(server, namespace, more, query);
  assert.equal(status, 200, JSON.stringify(body));
  const nearest = async (vector: readonly number[]) =>
    (await server.search(namespace, { vector, limit: 1 })).body.hits[0].id;
  assert.equal(await nearest([1, 0, 0, 0, 0]), 'new');
  assert.equal(await nearest([0, 0, 0, 0, 1]), 'k7');
  assert.equal(await nearest(rows[9]?.embedding ?? []), 'k9');
});

const lines = (...values: readonly string[]) => values.map((value) => `{"v":${value}}`).join('\n');
const wrong: readonly (readonly [string, string, string, RegExp])[] = [
  [
    'csv',
    'a length that differs',
    'v\n"[1,2]"\n"[1,2,3]"\n',
    /row 2, column "v": a vector must have 2 numbers, as the vectors before it: it has 3/u,
  ],
  ['csv', 'a text', 'v\nabc\n', /row 1, column "v": a vector must be base64/u],
  ['csv', 'NaN', 'v\n"[1,2]"\n"[1,NaN]"\n', /row 2, column "v"/u],
  [
    'csv',
    'something behind the list',
    'v\n"[1,2],3"\n',
    /row 1, column "v": a vector must be one list of numbers/u,
  ],
  [
    'csv',
    'a list that does not end',
    'v\n"[1,2"\n',
    /row 1, column "v": a vector must be a list of numbers/u,
  ],
  [
    'csv',
    'an infinite number in base64',
    `v\n${base64([Number.POSITIVE_INFINITY])}\n`,
    /row 1, column "v": a vector must have finite/u,
  ],
  ['csv', 'no numbers', 'v\n"[]"\n', /row 1, column "v": a vector must have 1 to 2048 numbers/u],
  [
    'csv',
    'too many numbers',
    `v\n"[${'1,'.repeat(2_048)}1]"\n`,
    /row 1, column "v": a vector must have 1 to 2048 numbers/u,
  ],
  ['ndjson', 'a length that differs', lines('[1,2]', '[1]'), /row 2, column "v": a vector must have 2/u],
  ['ndjson', 'a number past 32 bits', lines('[1e39]'), /row 1, column "v": a vector must have finite/u],
  [
    'ndjson',
    'a null in a list',
    lines('[1,null]'),
    /row 1, column "v": a vector must be an array of numbers/u,
  ],
  ['ndjson', 'an object', lines('{}'), /row 1, column "v": a vector must be an array of numbers/u],
];
for (const [format, what, content, message] of wrong)
  test(`${format}: ${what} is refused by its row, and nothing is there`, async () => {
    const namespace = fresh();
    const { status, body } = await importInto(server, namespace, content, { format, vector: 'v' });
    assert.equal(status, 422);
    assert.match(body.error, message);
    assert.equal((await server.count(namespace)).status, 404);
  });

test('vectors of another length than the namespace’s, or for one that has none, are refused', async () => {
  const namespace = await writtenRows();
  const short = await importInto(server, namespace, 'v\n"[1,2]"\n', { vector: 'v' });
  assert.equal(short.status, 422);
  assert.match(
    short.body.error,
    /row 1, column "v": a vector must have 5 numbers, as the namespace's vectors/u,
  );
  const plain = fresh();
  await importInto(server, plain, 'v\nx\n');
  const refused = await importInto(server, plain, 'v\n"[1,2]"\n', { vector: 'v' });
  assert.deepEqual([refused.status, Object.keys(refused.body.fields)], [422, ['vector']]);
});

const wrongLists: readonly (readonly [string, string, RegExp])[] = [
  [
    'a length that differs',
    'VALUES ([1, 2]::FLOAT[]), ([1]::FLOAT[])',
    /row 2, column "v": a vector must have 2 numbers/u,
  ],
  ['NaN', "VALUES ([1, 'nan'::FLOAT])", /row 1, column "v": a vector must have finite/u],
  ['null in a list', 'VALUES ([1, NULL]::INT[])', /row 1, column "v": a vector must have finite/u],
  ['no numbers', 'VALUES ([]::DOUBLE[])', /row 1, column "v": a vector must have 1 to 2048 numbers/u],
  [
    'too many numbers',
    'VALUES (range(2049))',
    /row 1, column "v": a vector must have 1 to 2048 numbers: it has 2049/u,
  ],
];
for (const [what, values, message] of wrongLists)
  test(`parquet: ${what} is refused by its row`, async () => {
    const path = importFileName('wrong.parquet');
    await oracle.rows(`COPY (FROM (${values}) t(v)) TO '${path}' (FORMAT parquet)`);
    const { status, body } = await importInto(server, fresh(), readFileSync(path), {
      format: 'parquet',
      vector: 'v',
    });
    assert.equal(status, 422);
    assert.match(body.error, message);
  });

test('whole numbers and halves of lists are vectors, and other columns are none', async () => {
  const path = importFileName('whole.parquet');
  await oracle.rows(
    `COPY (SELECT [1, 2::BIGINT] AS whole, ['a'] AS texts, 7 AS n, {'a': 1} AS s) TO '${path}' (FORMAT parquet)`,
  );
  const imported = (vector: string) =>
    importInto(server, fresh(), readFileSync(path), { format: 'parquet', vector });
  assert.equal((await imported('whole')).status, 200);
  for (const name of ['texts', 'n', 's']) {
    const { status, body } = await imported(name);
    assert.deepEqual([status, Object.keys(body.fields)], [422, ['vector']], name);
  }
});

test('a column that is not there, or has another use, is refused', async () => {
  for (const [content, asked] of [
    ['v\n1\n', { vector: 'w' }],
    ['v\n1\n', { vector: 'v', text: 'v' }],
    ['{"v":1}', { vector: 'w', format: 'ndjson' }],
  ] as const) {
    const { status, body } = await importInto(server, fresh(), content, { ...asked });
    assert.deepEqual([status, Object.keys(body.fields)], [422, ['vector']]);
  }
});
