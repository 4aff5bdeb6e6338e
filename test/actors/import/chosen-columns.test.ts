import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Oracle } from '../../support/duckdb.ts';
import { endImporting, importFileName, importInto, startImporting } from '../../support/imports.ts';
import type { InProcess } from '../../support/in-process.ts';

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

type Row = Readonly<Record<string, string | number>>;
const rows: readonly Row[] = [
  { key: 'a', title: 'One "é"', n: 1, note: 'x'.repeat(9_000) },
  { key: 'b', title: 'Two', n: 2, note: 'y'.repeat(9_000) },
];
const formats = ['csv', 'ndjson', 'parquet'] as const;

async function fileOf(format: (typeof formats)[number]): Promise<string | Buffer> {
  const keys = Object.keys(rows[0] as Row);
  const quotedValue = (value: unknown) => `"${String(value).replaceAll('"', '""')}"`;
  if (format === 'csv')
    return [keys.join(), ...rows.map((row) => keys.map((key) => quotedValue(row[key])).join())].join('\n');
  if (format === 'ndjson') return rows.map((row) => JSON.stringify(row)).join('\n');
  const path = importFileName('chosen.parquet');
  const values = rows.map(({ key, title, n, note }) => `('${key}', '${title}', ${n}, '${note}')`);
  await oracle.rows(`COPY (FROM (VALUES ${values}) t(key, title, n, note)) TO '${path}' (FORMAT parquet)`);
  return readFileSync(path);
}

/** What an import keeps, by the words of its query alone. */
function expectedOf(row: Row, at: number, query: Readonly<Record<string, string>>) {
  const { id, text, columns, skip = '' } = query;
  const meta = Object.entries(row).filter(
    ([name]) => !skip.split(',').includes(name) && (columns?.split(',').includes(name) ?? true),
  );
  return {
    id: id === undefined ? String(at + 1) : String(row[id]),
    text:
      text === undefined
        ? ''
        : text
            .split(',')
            .map((name) => row[name])
            .join('\n'),
    meta: meta.length === 0 ? undefined : Object.fromEntries(meta),
  };
}

const queries: readonly Readonly<Record<string, string>>[] = [
  { columns: 'n' },
  { columns: 'n,key', id: 'key', text: 'title' },
  { skip: 'note', id: 'key', text: 'note,title' },
  { skip: 'key,title', id: 'key', text: 'title' },
  { skip: 'key,n,note,title', text: 'n' },
  { columns: '', id: 'key', text: 'note' },
];

for (const format of formats)
  describe(format, () => {
    for (const query of queries)
      test(`keeps what ${JSON.stringify(query)} names, and reads ids and texts all the same`, async () => {
        const namespace = `chosen-${++names}`;
        const { status, body } = await importInto(server, namespace, await fileOf(format), {
          format,
          ...query,
        });
        assert.equal(status, 200, JSON.stringify(body));
        for (const [at, row] of rows.entries()) {
          const expected = expectedOf(row, at, query);
          const found = (await server.get(namespace, expected.id)).body;
          const meta =
            found.meta === undefined || Object.keys(found.meta).length === 0 ? undefined : found.meta;
          assert.deepEqual({ text: found.text, meta }, { text: expected.text, meta: expected.meta });
        }
        const kept = await server.ask('sql', namespace, { body: { sql: 'SHOW COLUMNS' } });
        const keys = Object.keys(expectedOf(rows[0] as Row, 0, query).meta ?? {});
        for (const key of Object.keys(rows[0] as Row))
          assert.equal(
            kept.body.rows.some(([name]: string[]) => name === key),
            keys.includes(key),
            key,
          );
      });

    for (const [field, query] of [
      ['columns', { columns: 'n,missing' }],
      ['skip', { skip: 'missing' }],
      ['skip', { skip: 'n', columns: 'key' }],
    ] as const)
      test(`refuses ${JSON.stringify(query)} by the name of its parameter`, async () => {
        const namespace = `refused-${++names}`;
        const { status, body } = await importInto(server, namespace, await fileOf(format), {
          format,
          ...query,
        });
        assert.equal(status, 422);
        assert.deepEqual(Object.keys(body.fields), [field]);
        assert.equal((await server.count(namespace)).status, 404);
      });
  });

test('a value that is wrong in a column that is not read is nobody’s concern', async () => {
  const { status } = await importInto(server, 'unread', 'n,m\n1,x\n2,y\n', {
    schema: 'n INT, m INT',
    skip: 'm',
  });
  assert.equal(status, 200);
});
