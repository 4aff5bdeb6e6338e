import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { endImporting, importInto, sqlRows, sqlTypes, startImporting } from '../../support/imports.ts';
import type { InProcess } from '../../support/in-process.ts';

let server: InProcess;
let names = 0;

before(async () => {
  server = await startImporting();
  await server.createTenant();
});
after(async () => {
  await server.drain();
  endImporting();
});

const fresh = () => `csv-${++names}`;

async function imported(content: string | Uint8Array, query: Record<string, string> = {}) {
  const namespace = fresh();
  const { status, body } = await importInto(server, namespace, content, query);
  assert.equal(status, 200, JSON.stringify(body));
  return { namespace, body };
}

async function metas(namespace: string, rows: number): Promise<Record<string, unknown>[]> {
  const found = [];
  for (let row = 1; row <= rows; row++)
    found.push((await server.get(namespace, String(row))).body.meta ?? {});
  return found;
}

describe('csv-spectrum', () => {
  const folder = dirname(createRequire(import.meta.url).resolve('csv-spectrum/package.json'));
  const files = readdirSync(join(folder, 'csvs')).filter((name) => name.endsWith('.csv'));
  /** Bare quotes in a field: what they mean is a guess. */
  const refused = new Set(['location_coordinates.csv']);

  test('has the twelve files that we know', () => assert.equal(files.length, 12));

  for (const file of files) {
    const name = refused.has(file)
      ? `${file} is refused: it has bare quotes in a field`
      : `${file} has the expected values`;
    test(name, async () => {
      const content = readFileSync(join(folder, 'csvs', file));
      const expected = JSON.parse(
        readFileSync(join(folder, 'json', file.replace('.csv', '.json')), 'utf8'),
      ) as Record<string, string>[];
      if (refused.has(file)) {
        const { status, body } = await importInto(server, fresh(), content);
        assert.equal(status, 422);
        assert.match(body.error, /line 1.*a quote in it|quote/u);
        return;
      }
      const { namespace, body } = await imported(content);
      assert.equal(body.rows, expected.length);
      const found = await metas(namespace, expected.length);
      // Numbers are numbers to us, and an empty field is missing.
      const texts = found.map((meta) =>
        Object.fromEntries(Object.entries(meta).map(([key, value]) => [key, String(value)])),
      );
      const wanted = expected.map((row) =>
        Object.fromEntries(Object.entries(row).filter(([, value]) => value !== '')),
      );
      assert.deepEqual(texts, wanted);
    });
  }
});

test('kinds are inferred from all values of a column', async () => {
  const { namespace } = await imported(
    [
      'whole,part,truth,day,at,zip,mixed,wide,huge,nothing',
      '1,1.5,true,2024-02-29,2024-01-02 03:04:05,007,1,9223372036854775807,9223372036854775808,',
      '-2,2,FALSE,2023-12-31,1999-12-31 23:59:59,008,x,-9223372036854775808,1,',
    ].join('\n'),
  );
  const types = await sqlTypes(server, namespace);
  assert.deepEqual(types, {
    id: 'text',
    whole: 'int',
    part: 'float',
    truth: 'int',
    day: 'date',
    at: 'time',
    zip: 'text',
    mixed: 'text',
    wide: 'int',
    huge: 'text',
  });
  assert.deepEqual(
    await sqlRows(
      server,
      namespace,
      'SELECT whole, part, truth, day, at, zip, mixed FROM docs ORDER BY whole',
    ),
    [
      [-2, 2, 0, '2023-12-31', '1999-12-31 23:59:59', '008', 'x'],
      [1, 1.5, 1, '2024-02-29', '2024-01-02 03:04:05', '007', '1'],
    ],
  );
  const [first] = await metas(namespace, 1);
  assert.equal(first?.mixed, '1', 'a number among texts stays as it was written');
});

test('a value of another kind after thousands of rows changes the kind of the whole column', async () => {
  const lines = Array.from({ length: 12_000 }, (_, row) => (row === 11_500 ? 'late' : String(row)));
  const { namespace, body } = await imported(`n\n${lines.join('\n')}\n`);
  assert.equal(body.rows, 12_000);
  assert.equal((await sqlTypes(server, namespace)).n, 'text');
  assert.deepEqual(
    await sqlRows(server, namespace, "SELECT COUNT(*) FROM docs WHERE n = '0' OR n = 'late'"),
    [[2]],
  );
});

test('dates of imports are dates to SQL and strings to filters', async () => {
  const { namespace } = await imported('day,n\n2024-01-02,1\n2024-01-03,2\n,3\n');
  const count = async (filter: object) => (await server.count(namespace, { filter })).body.count;
  assert.equal(await count({ day: '2024-01-02' }), 1);
  assert.equal(await count({ day: { in: ['2024-01-02', '2024-01-03', 'x'] } }), 2);
  assert.equal(await count({ day: { ne: '2024-01-02' } }), 2);
  assert.equal(await count({ day: '2024-1-2' }), 0);
  assert.deepEqual(await sqlRows(server, namespace, "SELECT n FROM docs WHERE day > '2024-01-02'"), [[2]]);
  // What is written later in that form is a date too; anything else makes texts of all.
  await server.put(namespace, [{ id: 'a', text: '', meta: { day: '2024-01-04' } }]);
  assert.equal((await sqlTypes(server, namespace)).day, 'date');
  assert.deepEqual(await sqlRows(server, namespace, "SELECT COUNT(*) FROM docs WHERE day >= '2024-01-03'"), [
    [2],
  ]);
  await server.put(namespace, [{ id: 'b', text: '', meta: { day: 'soon' } }]);
  assert.equal((await sqlTypes(server, namespace)).day, 'text');
  assert.deepEqual(await sqlRows(server, namespace, 'SELECT day FROM docs WHERE n = 1'), [['2024-01-02']]);
});

test('a table definition says what columns are, whether there is a header or not', async () => {
  const schema = 'CREATE TABLE t (a INT, b TEXT, c DOUBLE, d TIMESTAMP, e BOOL, PRIMARY KEY (a))';
  for (const header of ['', 'a,b,c,d,e\n']) {
    const { namespace } = await imported(`${header}007,12,5,2024-01-02T03:04:05,t\n+8,,1e3,2024-01-02,no\n`, {
      schema,
    });
    assert.deepEqual(await sqlRows(server, namespace, 'SELECT a, b, c, d, e FROM docs ORDER BY a'), [
      [7, '12', 5, '2024-01-02 03:04:05', 1],
      [8, null, 1000, '2024-01-02 00:00:00', 0],
    ]);
    assert.equal((await sqlTypes(server, namespace)).c, 'float');
  }
});

test('the ids and texts are those of the columns that are named; of equal ids the last row stays', async () => {
  const { namespace, body } = await imported('key,title,body\na,One,first\nb,Two,\na,Three,third\n', {
    id: 'key',
    text: 'title, body',
  });
  assert.deepEqual([body.written, body.rows, body.deleted, body.created], [3, 3, 0, true]);
  assert.equal((await server.count(namespace)).body.count, 2);
  const { text, meta } = (await server.get(namespace, 'a')).body;
  assert.deepEqual([text, meta], ['Three\nthird', { key: 'a', title: 'Three', body: 'third' }]);
  assert.equal((await server.get(namespace, 'b')).body.text, 'Two');
  assert.equal((await server.count(namespace, { q: 'first' })).body.count, 0);
});

test('line ends, marks and characters of all sorts', async () => {
  const { namespace, body } = await imported('\uFEFFa,b\r\n"x\r\ny","""q"""\r\n\r\nü,€\rz,\u0000\t\n');
  assert.equal(body.rows, 3);
  assert.deepEqual(await metas(namespace, 3), [
    { a: 'x\r\ny', b: '"q"' },
    { a: 'ü', b: '€' },
    { a: 'z', b: '\u0000\t' },
  ]);
});

const hugeRow = `a\n${'x'.repeat(9_000_000)}\n`;
const wrong: readonly (readonly [string, string | Uint8Array, Record<string, string>, RegExp])[] = [
  ['an empty file', '\n\n', {}, /it is empty/u],
  ['a header alone', 'a,b\n', {}, /no rows/u],
  ['a row of more fields', 'a,b\n1,2\n1,2,3\n', {}, /row 2: it has 3 fields where there are 2 columns/u],
  ['a row of fewer fields', 'a,b\n1\n', {}, /row 1: it has 1 field where/u],
  ['a quote that is never closed', 'a,b\n1,"2\n3,4\n', {}, /line 2.*never closed/u],
  ['text behind a closing quote', 'a\n"b"c\n', {}, /line 2.*behind its closing quote/u],
  ['a row that is too long', hugeRow, {}, /longer than 8388608 bytes/u],
  ['a row whose meta is too large', `a\n${'x'.repeat(17_000)}\n`, {}, /row 1: its values take \d+ bytes/u],
  ['bytes that are no UTF-8', Buffer.from([0x61, 0x0a, 0xff, 0x0a]), {}, /no UTF-8 near byte \d/u],
  ['a column twice', 'a,b,a\n1,2,3\n', {}, /the column "a" twice/u],
  ['an id column that is not there', 'a\n1\n', { id: 'b' }, /id: there is no column "b"; columns are "a"/u],
  ['a text column that is not there', 'a\n1\n', { text: 'a,c' }, /text: there is no column "c"/u],
  ['an id that is missing', 'a,b\n,2\n', { id: 'a' }, /row 1, column "a": the id is missing/u],
  ['an id of two lines', 'a\n"x\ny"\n', { id: 'a' }, /row 1, column "a": the id must be one line/u],
  [
    'a value that the definition excludes',
    'a\n1\nx\n',
    { schema: 'a INT' },
    /row 2, column "a": "x" is no whole number/u,
  ],
  [
    'an integer beyond 64 bits',
    'a\n9223372036854775808\n',
    { schema: '(a BIGINT)' },
    /is no whole number of 64 bits/u,
  ],
  ['a day that is not there', 'a\n2023-02-29\n', { schema: 'a DATE' }, /"2023-02-29" is no date/u],
  [
    'a definition without columns',
    'a\n1\n',
    { schema: 'CREATE TABLE x' },
    /schema: CREATE TABLE has no list/u,
  ],
  ['an unknown type', 'a\n1\n', { schema: 'a BLOB' }, /schema: the column "a" has the unknown type "BLOB"/u],
];
for (const [what, content, query, message] of wrong)
  test(`${what} is refused, and nothing is there`, async () => {
    const namespace = fresh();
    const { status, code, body } = await importInto(server, namespace, content, query);
    assert.deepEqual([status, code], [422, 'invalid'], JSON.stringify(body));
    assert.match(body.error, message);
    assert.ok(Object.keys(body.fields).length === 1);
    assert.equal((await server.count(namespace)).status, 404);
  });

test('a file of another form is named', async () => {
  const rows = 'a\n1\n';
  const cases: readonly (readonly [Buffer, RegExp])[] = [
    [
      gzipSync(rows),
      /^nothing was imported: the file is packed with gzip: send it with Content-Encoding: gzip$/u,
    ],
    [
      Buffer.from('28b52ffd2004210000610a310a', 'hex'),
      /the file is packed with zstd: send it with Content-Encoding: zstd/u,
    ],
    [Buffer.from('504b0304140000000800ffff', 'hex'), /the file is a zip archive or a spreadsheet/u],
    [Buffer.from('\ufeffa\n1\n', 'utf16le'), /the file is UTF-16: save it as UTF-8/u],
    [Buffer.from('61ff0a', 'hex'), /its bytes are no UTF-8 near byte \d+: save it as UTF-8/u],
  ];
  for (const format of ['csv', 'ndjson'])
    for (const [content, message] of cases) {
      const { status, body } = await importInto(server, fresh(), content, { format });
      assert.equal(status, 422);
      assert.match(body.error, message);
    }
});

test('a file of more rows than an import may have is too large', async () => {
  const { status, code, body } = await importInto(server, fresh(), `a\n${'1\n'.repeat(1_000_001)}`);
  assert.deepEqual([status, code], [413, 'too_large']);
  assert.match(body.error, /more than 1000000 rows/u);
});
