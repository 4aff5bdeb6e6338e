import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
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

const format = { format: 'ndjson' };
const fresh = () => `lines-${++names}`;

test('an object a line is a document; null is not an empty text, and not missing', async () => {
  const namespace = fresh();
  const lines = [
    '{"key":"a","title":"One \\u00e9","n":435090932899640449,"x":null,"deep":{"list":[1, 2]}}',
    '',
    ' {"key":7,"title":null,"n":1.5,"x":""} \r',
    '{"key":"c","title":3}',
  ];
  const { status, body } = await importInto(server, namespace, lines.join('\n'), {
    ...format,
    id: 'key',
    text: 'title',
  });
  assert.deepEqual([status, body.rows], [200, 3], JSON.stringify(body));
  const first = (await server.get(namespace, 'a')).body;
  assert.equal(first.text, 'One é');
  assert.deepEqual(Object.keys(first.meta), ['key', 'title', 'n', 'x', 'deep']);
  assert.equal((await server.get(namespace, '7')).body.text, '');
  assert.equal((await server.get(namespace, 'c')).body.text, '3');
  const count = async (filter: object) => (await server.count(namespace, { filter })).body.count;
  assert.deepEqual(
    [await count({ x: null }), await count({ x: '' }), await count({ x: { ne: null } })],
    [1, 1, 2],
  );
  assert.deepEqual(await sqlRows(server, namespace, 'SELECT deep FROM docs WHERE deep IS NOT NULL'), [
    ['{"list":[1,2]}'],
  ]);
  const types = await sqlTypes(server, namespace);
  assert.deepEqual([types.n, types.title, types.key], ['float', 'text', 'text']);
});

const wrong: readonly (readonly [string, string, Record<string, string>, RegExp])[] = [
  ['a line that is no JSON', '{"a":1}\n{"a":}\n', {}, /row 2: it is no JSON object/u],
  ['a line that is no object', '[1]\n', {}, /row 1: it is no JSON object: it does not begin with/u],
  ['an object that goes on in the next line', '{"a":\n1}\n', {}, /row 1: it is no JSON object/u],
  ['two objects in a line', '{"a":1}{"a":2}\n', {}, /row 1: it is no JSON object: something follows it/u],
  ['an object cut at the end', '{"a":1}\n{"a":1', {}, /row 2: it is no JSON object/u],
  ['too deep an object', `{"a":${'['.repeat(40)}${']'.repeat(40)}}\n`, {}, /row 1: it is no JSON object/u],
  ['too large an object', `{"a":"${'x'.repeat(20_000)}"}\n`, {}, /row 1: its values take \d+ bytes/u],
  ['a line that never ends', `{"a":"${'x'.repeat(17_000_000)}`, {}, /longer than 8388608 bytes/u],
  ['an id that is missing', '{"a":1}\n', { id: 'b' }, /row 1, column "b": the id is missing/u],
  ['an id that is a list', '{"a":[1]}\n', { id: 'a' }, /row 1, column "a": the id "\[1\]" is no text/u],
  ['no line at all', '\n \n', {}, /it has no rows/u],
  ['a definition', '{"a":1}\n', { schema: 'a INT' }, /schema: is for CSV files only/u],
];
for (const [what, content, query, message] of wrong)
  test(`${what} is refused, and nothing is there`, async () => {
    const namespace = fresh();
    const { status, body } = await importInto(server, namespace, content, { ...format, ...query });
    assert.equal(status, 422, JSON.stringify(body));
    assert.match(body.error, message);
    assert.equal((await server.count(namespace)).status, 404);
  });
