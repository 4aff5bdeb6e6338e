/** Columns that are a row's text stay in its meta as long as that fits 16 KB; where it would not, the longest are left out. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { endImporting, importInto, sqlRows, startImporting } from '../../support/imports.ts';
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

const fresh = () => `long-${++names}`;
const x = (bytes: number, of = 'x') => of.repeat(bytes);

interface Row {
  readonly key: string;
  readonly title: string;
  readonly body: string;
  readonly n: number;
}

const csvOf = (rows: readonly Row[]) =>
  `key,title,body,n\n${rows.map(({ key, title, body, n }) => `${key},"${title.replaceAll('"', '""')}","${body.replaceAll('"', '""')}",${n}`).join('\n')}\n`;
const ndjsonOf = (rows: readonly Row[]) => rows.map((row) => JSON.stringify(row)).join('\n');

const formats = [
  ['csv', csvOf],
  ['ndjson', ndjsonOf],
] as const;

for (const [format, fileOf] of formats) {
  test(`${format}: a long text is left out of its meta, the longest first, and the answer says of how many rows`, async () => {
    const namespace = fresh();
    const rows: Row[] = [
      { key: 'short', title: 'one', body: 'two', n: 1 },
      { key: 'long', title: 'three', body: x(1_900_000), n: 2 },
      { key: 'both', title: x(20_000, 'é'), body: x(30_000, '"'), n: 3 },
      { key: 'just', title: x(7_000, 'a'), body: x(9_000, 'b'), n: 4 },
      { key: 'over', title: x(9_000, 'a'), body: x(8_000, 'b'), n: 5 },
      { key: 'escapes', title: 'six', body: x(9_000, '\\'), n: 6 },
    ];
    const { status, body } = await importInto(server, namespace, fileOf(rows), {
      format,
      id: 'key',
      text: 'title,body',
    });
    assert.deepEqual([status, body.rows, body.text_only], [200, 6, 4], JSON.stringify(body));
    const metas: Record<string, unknown> = {};
    for (const { key, title, body: long } of rows) {
      const stored = (await server.get(namespace, key)).body;
      assert.equal(stored.text, `${title}\n${long}`, key);
      metas[key] = Object.keys(stored.meta);
    }
    assert.deepEqual(metas, {
      short: ['key', 'title', 'body', 'n'],
      long: ['key', 'title', 'n'],
      both: ['key', 'n'],
      just: ['key', 'title', 'body', 'n'],
      over: ['key', 'body', 'n'],
      escapes: ['key', 'title', 'n'],
    });
    assert.deepEqual(
      await sqlRows(server, namespace, 'SELECT key, LENGTH(title), LENGTH(body), n FROM docs ORDER BY n'),
      [
        ['short', 3, 3, 1],
        ['long', 5, null, 2],
        ['both', null, null, 3],
        ['just', 7_000, 9_000, 4],
        ['over', null, 8_000, 5],
        ['escapes', 3, null, 6],
      ],
    );
  });

  test(`${format}: what fits 16 KB to the byte stays whole`, async () => {
    const namespace = fresh();
    const room = 16_384 - JSON.stringify({ key: 'a', title: '', body: '', n: 1 }).length;
    const rows = [0, 1].map((more) => ({ key: 'ab'.charAt(more), title: '', body: x(room + more), n: 1 }));
    // An empty field of a CSV file is missing.
    const file = fileOf(rows.map((row) => ({ ...row, title: 't', body: row.body.slice(1) })));
    const { body } = await importInto(server, namespace, file, { format, id: 'key', text: 'title,body' });
    assert.deepEqual([body.rows, body.text_only], [2, 1], JSON.stringify(body));
    assert.equal((await server.get(namespace, 'a')).body.meta.body.length, room - 1);
    assert.equal((await server.get(namespace, 'b')).body.meta.body, undefined);
  });

  test(`${format}: what is no text is not left out, and a text is bounded`, async () => {
    const long: Row = { key: 'a', title: x(17_000), body: 'b', n: 1 };
    const cases: readonly (readonly [string, Row[], string, RegExp])[] = [
      [
        'another column is long',
        [{ ...long, key: 'ok', title: '' }, long],
        'body',
        /row 2: its values take 17\d\d\d bytes as JSON, and a document's meta has at most 16384: name long columns in "text"/u,
      ],
      [
        'two others are',
        [{ ...long, title: x(9_000), body: x(9_000), key: 'k' }],
        'key',
        /row 1: its values take 18\d\d\d bytes/u,
      ],
      [
        'a text over 2 MB',
        [{ ...long, body: x(2_000_001) }],
        'body,title',
        /row 1: its text has 2017002 bytes, and a document's text has at most 2000000/u,
      ],
    ];
    for (const [what, rows, text, message] of cases) {
      const { status, body } = await importInto(server, fresh(), fileOf(rows), { format, id: 'key', text });
      assert.equal(status, 422, what);
      assert.match(body.error, message, what);
    }
  });
}

test('an id that is named as text stays in the meta', async () => {
  const namespace = fresh();
  const file = JSON.stringify({ key: 'a', body: x(20_000) });
  const { body } = await importInto(server, namespace, file, {
    format: 'ndjson',
    id: 'key',
    text: 'key,body',
  });
  assert.deepEqual([body.rows, body.text_only], [1, 1], JSON.stringify(body));
  const stored = (await server.get(namespace, 'a')).body;
  assert.deepEqual([stored.meta, stored.text], [{ key: 'a' }, `a\n${x(20_000)}`]);
});

test('a long line of NDJSON may have texts with escapes, keys twice, space, and nothing else', async () => {
  const namespace = fresh();
  const lines = [
    `{ "body" : "first", "n": 1, "b\\u006fdy": "${x(5_000, '\\u00e9')}\\n", "deep": {"body": [1]} }`,
    `{"body":"${x(20_000)}"}`,
    `{"n": 3,${x(20_000, ' ')}"body": "z"}`,
  ];
  const { status, body } = await importInto(server, namespace, lines.join('\n'), {
    format: 'ndjson',
    text: 'body',
  });
  assert.deepEqual([status, body.text_only], [200, 2], JSON.stringify(body));
  const documents = await Promise.all(['1', '2', '3'].map((id) => server.get(namespace, id)));
  assert.deepEqual(
    documents.map(({ body: { text, meta } }) => [text, meta]),
    [
      [`${x(5_000, 'é')}\n`, { n: 1, deep: { body: [1] } }],
      [x(20_000), {}],
      ['z', { n: 3, body: 'z' }],
    ],
  );
});

test('a line of NDJSON may have 8 MB, and no more', async () => {
  const line = (bytes: number) => `{"body":"${x(Math.floor(bytes / 6), '\\u0061')}"}`;
  const fits = await importInto(server, fresh(), `${line(7_900_000)}\n{"body":"b"}`, {
    format: 'ndjson',
    text: 'body',
  });
  assert.deepEqual([fits.status, fits.body.rows], [200, 2], JSON.stringify(fits.body));
  const { status, body } = await importInto(server, fresh(), line(8_400_000), {
    format: 'ndjson',
    text: 'body',
  });
  assert.equal(status, 422);
  assert.match(body.error, /row 1: its line is longer than 8388608 bytes/u);
});
