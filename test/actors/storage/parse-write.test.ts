import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import fc from 'fast-check';
import { documentId, documentMeta, documentText, readBatch } from '../../../actors/storage/document-batch.ts';
import {
  type ParsedWrite,
  parseDelete,
  parsePatch,
  parsePut,
  readPatches,
} from '../../../actors/storage/parse-write.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { documentIdProblem } from '../../../protocol/ids.ts';
import { isWellFormedDeep, type JsonValue } from '../../../src/base/json.ts';
import { damaged, damages, fuzz, jsonString, jsonSuite, jsonText } from '../../support/json-cases.ts';

type Parse = (body: Uint8Array) => ParsedWrite;

interface PlainDocument {
  readonly id: string;
  readonly text: string | null;
  readonly meta: string | null;
}

interface PlainWrite {
  readonly docs: readonly PlainDocument[];
  readonly deletes: readonly string[];
  readonly wait: boolean;
}

function plain({ batch, wait, documentCount, deleteCount }: ParsedWrite): PlainWrite {
  const read = readBatch(batch);
  assert.equal(read.bytes, batch.length);
  assert.equal(read.documentCount, documentCount);
  assert.equal(read.deletes.length, deleteCount);
  const docs = Array.from(read.documentOffsets, (offset) => ({
    id: documentId(batch, offset),
    text: documentText(batch, offset)?.toString() ?? null,
    meta: documentMeta(batch, offset)?.toString() ?? null,
  }));
  return { docs, deletes: read.deletes, wait };
}

const put = (body: string | Uint8Array) => plain(parsePut(Buffer.from(body)));

function refusal(parse: Parse, body: string | Uint8Array): ApiError {
  try {
    parse(Buffer.from(body));
  } catch (error) {
    assert.ok(error instanceof ApiError, `not an ApiError but ${error}`);
    return error;
  }
  assert.fail(`accepted: ${Buffer.from(body).toString().slice(0, 200)}`);
}

const repeated = (count: number, item: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => item(i)).join(',');
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

test('a put reads documents, deletes and wait, with fields in any order', () => {
  const body = ` { "wait" : true, "deletes":["x","y/😀"],
    "docs":[ {"meta": {"k": 1 } , "text":"hello","id":"a"}, {"id":"b","text":""} ] } `;

  assert.deepEqual(put(body), {
    docs: [
      { id: 'a', text: 'hello', meta: '{"k": 1 }' },
      { id: 'b', text: '', meta: null },
    ],
    deletes: ['x', 'y/😀'],
    wait: true,
  });
});

test('a batch lies in shared memory, from small and large bodies', () => {
  for (const bytes of [10, 300_000]) {
    const { batch } = parsePut(Buffer.from(`{"docs":[{"id":"a","text":"${'x'.repeat(bytes)}"}]}`));

    assert.ok(batch.buffer instanceof SharedArrayBuffer);
    assert.equal(batch.length, 20 + 16 + 1 + bytes);
    assert.ok(batch.buffer.byteLength <= batch.length * 1.2);
  }
});

test('batches of one thread do not share memory with each other or with their body', () => {
  const body = Buffer.from('{"docs":[{"id":"a","text":"first"}]}');
  const first = parsePut(body);
  body.fill(0);
  parsePut(Buffer.from('{"docs":[{"id":"b","text":"other"}]}'));

  assert.equal(plain(first).docs[0]?.text, 'first');
});

test('escapes become UTF-8, with surrogate pairs as one character', () => {
  const body = String.raw`{"docs":[{"id":"a\/\u00e9","text":"\"\\\/\b\f\n\r\t\u0041\u00e9\u8a9e\ud83d\ude00\u0000 tail"}],"deletes":["\u0062"]}`;

  assert.deepEqual(put(body), {
    docs: [{ id: 'a/é', text: '"\\/\b\f\n\r\tAé語😀\0 tail', meta: null }],
    deletes: ['b'],
    wait: false,
  });
});

test('an optional field that is null is absent, and null inside meta is data', () => {
  assert.deepEqual(put('{"docs":null,"deletes":["a"],"wait":null}'), {
    docs: [],
    deletes: ['a'],
    wait: false,
  });
  assert.deepEqual(put('{"wait":true,"deletes":null,"docs":[{"id":"a","text":"t"}],"wait":null}'), {
    docs: [{ id: 'a', text: 't', meta: null }],
    deletes: [],
    wait: false,
  });
  const fields = '"text":"t","meta":null,"vector": null ,"vector_b64":null';
  assert.deepEqual(put(`{"docs":[{"id":"a",${fields}},{"id":"b","text":"","meta":{"k":null}}]}`).docs, [
    { id: 'a', text: 't', meta: null },
    { id: 'b', text: '', meta: '{"k":null}' },
  ]);
  const { batch } = parsePatch(
    Buffer.from('{"docs":[{"id":"a","text":null,"meta":{"k":null},"vector":null}]}'),
  );
  assert.deepEqual(
    readPatches(batch).map(({ text, metaPatch, vector }) => [text, metaPatch?.toString(), vector]),
    [[null, '{"k":null}', null]],
  );
});

test('the field of the first vector is told, for a refusal to name', () => {
  const fieldOf = (body: string) => parsePut(Buffer.from(body)).vectorField;

  assert.equal(fieldOf('{"docs":[{"id":"a","text":"t"}]}'), null);
  assert.equal(fieldOf('{"docs":[{"id":"a","vector":[1]}]}'), 'vector');
  assert.equal(
    fieldOf('{"docs":[{"id":"a","text":""},{"id":"b","vector_b64":"AACAPw=="},{"id":"c","vector":[1]}]}'),
    'vector_b64',
  );
});

test('keys may be written with escapes', () => {
  const body = '{"d\\u006fcs":[{"\\u0069d":"a","te\\u0078t":"t"}]}';

  assert.deepEqual(put(body).docs, [{ id: 'a', text: 't', meta: null }]);
});

test('numbers in meta stay as they are written', () => {
  const meta = '{"big":435090932899640449,"huge":1e999,"small":-0.10,"n":null,"l":[1,{"a":{}}]}';

  assert.equal(put(`{"docs":[{"id":"a","text":"","meta":${meta}}]}`).docs[0]?.meta, meta);
});

test('the last of duplicate fields wins, even over a wrong one', () => {
  const body =
    '{"docs":[{"id":"z","text":"z"}],"docs":[{"id":1,"id":"a","text":[],"text":"b","meta":3,"meta":{},"meta":{"x":1}}]}';

  assert.deepEqual(put(body).docs, [{ id: 'a', text: 'b', meta: '{"x":1}' }]);
});

test('a put may hold deletes alone', () => {
  assert.deepEqual(put('{"deletes":["a"]}'), { docs: [], deletes: ['a'], wait: false });
});

test('sizes at their limits are accepted', () => {
  const text = 'é'.repeat(1_000_000);
  const escaped = '\\u00e9'.repeat(1_000_000);
  const meta = `{"m":"${'x'.repeat(16 * 1024 - 8)}"}`;
  const deep = `{"m":${nested(31)}}`;
  const id = 'é'.repeat(256);

  assert.equal(put(`{"docs":[{"id":"a","text":"${text}"}]}`).docs[0]?.text, text);
  assert.equal(put(`{"docs":[{"id":"a","text":"${escaped}"}]}`).docs[0]?.text, text);
  assert.equal(put(`{"docs":[{"id":"a","text":"","meta":${meta}}]}`).docs[0]?.meta, meta);
  assert.equal(put(`{"docs":[{"id":"a","text":"","meta":${deep}}]}`).docs[0]?.meta, deep);
  assert.equal(put(`{"docs":[{"id":"${'\\u00e9'.repeat(256)}","text":""}]}`).docs[0]?.id, id);
  assert.equal(
    put(`{"docs":[${repeated(9_999, (i) => `{"id":"${i}","text":""}`)}],"deletes":["a"]}`).docs.length,
    9_999,
  );
});

test('a part of a larger buffer is read alone', () => {
  const whole = Buffer.from('xyz{"docs":[{"id":"a","text":"t"}]}}}');

  assert.deepEqual(plain(parsePut(whole.subarray(3, -2))).docs, [{ id: 'a', text: 't', meta: null }]);
});

/** parser, body, status, the field that is named. */
const wrong: readonly (readonly [Parse, string, number, string | null])[] = [
  [parsePut, '', 400, null],
  [parsePut, '  ', 400, null],
  [parsePut, '\ufeff{"deletes":["a"]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"t"}]', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"t"}],}', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"t"}]} x', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"t",}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"line\nfeed"}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"\\x"}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"\\ud83d\\u12"}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","text":"t","meta":{"a":01}}]}', 400, null],
  [parsePut, '{"docs":[{"id":5,"text":"t"}], "wait": tru }', 400, null],
  [parsePut, `{"foo":${nested(60)}}`, 400, null],
  [parsePut, nested(60), 400, null],
  [parsePut, '[]', 422, 'body'],
  [parsePut, '"docs"', 422, 'body'],
  [parsePut, 'null', 422, 'body'],
  [parsePut, '{}', 422, 'docs'],
  [parsePut, '{"docs":[],"deletes":[]}', 422, 'docs'],
  [parsePut, '{"docs":{}}', 422, 'docs'],
  [parsePut, '{"docs":null,"deletes":null}', 422, 'docs'],
  [parsePut, '{"docs":nul,"deletes":["a"]}', 400, null],
  [parsePut, '{"docs":[1]}', 422, 'docs[0]'],
  [parsePut, '{"docs":[{"id":"a","text":"t"},null]}', 422, 'docs[1]'],
  [parsePut, '{"docs":[{"text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":7,"text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"","text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a\\nb","text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a\\u0000","text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a\\ud800","text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a\u0085","text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a\u007f","text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, `{"docs":[{"id":"${'x'.repeat(513)}","text":"t"}]}`, 422, 'docs[0].id'],
  [parsePut, `{"docs":[{"id":"${'é'.repeat(257)}","text":"t"}]}`, 422, 'docs[0].id'],
  [parsePut, `{"docs":[{"id":"${'x'.repeat(1_000_000)}","text":"t"}]}`, 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a"}]}', 422, 'docs[0].text'],
  [parsePut, '{"docs":[{}]}', 422, 'docs[0].id'],
  [parsePut, '{"docs":[{"id":"a","text":null}]}', 422, 'docs[0].text'],
  [parsePut, '{"docs":[{"id":"a","text":"ok"},{"id":"b","text":["x"]}]}', 422, 'docs[1].text'],
  [parsePut, '{"docs":[{"id":"a","text":"\\udc00x"}]}', 422, 'docs[0].text'],
  [parsePut, '{"docs":[{"id":"a","text":"\\ud83d\\u0041"}]}', 422, 'docs[0].text'],
  [parsePut, `{"docs":[{"id":"a","text":"${'x'.repeat(2_000_001)}"}]}`, 422, 'docs[0].text'],
  [parsePut, `{"docs":[{"id":"a","text":"\\n${'x'.repeat(2_000_000)}"}]}`, 422, 'docs[0].text'],
  [parsePut, `{"docs":[{"id":"a","text":"${'\\n'.repeat(6_000_001)}"}]}`, 422, 'docs[0].text'],
  [parsePut, '{"docs":[{"id":"a","text":"","meta":[]}]}', 422, 'docs[0].meta'],
  [parsePut, '{"docs":[{"id":"a","text":"","meta":{"\\ud800":1}}]}', 422, 'docs[0].meta'],
  [parsePut, `{"docs":[{"id":"a","text":"","meta":{"m":"${'x'.repeat(16 * 1024)}"}}]}`, 422, 'docs[0].meta'],
  [parsePut, `{"docs":[{"id":"a","text":"","meta":{"m":${nested(32)}}}]}`, 422, 'docs[0].meta'],
  [parsePut, `{"docs":[{"id":"a","text":"","meta":{"m":${'['.repeat(2_000_000)}`, 422, 'docs[0].meta'],
  [parsePut, '{"docs":[{"id":"a","text":"t","foo":1}]}', 422, 'docs[0].foo'],
  [parsePut, '{"docs":[{"id":"a","text":"t","__proto__":{}}]}', 422, 'docs[0].__proto__'],
  [parsePut, '{"docs":[{"id":"a","text":"t"}],"extra":1}', 422, 'extra'],
  [parsePut, `{"${'k'.repeat(1_000)}":1}`, 422, `${'k'.repeat(64)}…`],
  [parsePut, '{"docs":[{"id":"a","text":"t"}],"wait":1}', 422, 'wait'],
  [parsePut, '{"docs":[{"id":null,"text":"t"}]}', 422, 'docs[0].id'],
  [parsePut, '{"deletes":"a"}', 422, 'deletes'],
  [parsePut, '{"deletes":["a",1]}', 422, 'deletes[1]'],
  [parsePut, '{"deletes":["a",""]}', 422, 'deletes[1]'],
  [parsePut, '{"docs":[{"id":"a","vector":1}]}', 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":null}]}', 422, 'docs[0].text'],
  [parsePut, '{"docs":[{"id":"a","vector":[1],"vector":null}]}', 422, 'docs[0].text'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":null,"vector":[null]}]}', 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[]}]}', 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[1,"2"]}]}', 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[1,[2]]}]}', 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[1e39]}]}', 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[1e400]}]}', 422, 'docs[0].vector'],
  [parsePut, `{"docs":[{"id":"a","vector":[${repeated(2_049, () => '0')}]}]}`, 422, 'docs[0].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[1]},{"id":"b","vector":[1,2]}]}', 422, 'docs[1].vector'],
  [parsePut, '{"docs":[{"id":"a","vector":[1],"vector_b64":"AACAPw=="}]}', 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":[1]}]}', 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":""}]}', 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":"AAAA"}]}', 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":"AACA_w=="}]}', 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":"AACAfw=="}]}', 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector_b64":"AADAfw=="}]}', 422, 'docs[0].vector_b64'],
  [parsePut, `{"docs":[{"id":"a","vector_b64":"${'A'.repeat(10_936)}"}]}`, 422, 'docs[0].vector_b64'],
  [parsePut, '{"docs":[{"id":"a","vector":[01]}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","vector":[1.]}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","vector":[-]}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","vector":[1,]}]}', 400, null],
  [parsePut, '{"docs":[{"id":"a","vector":[1', 400, null],
  [parsePut, '{"docs":[{"id":"a","vector":[1,2]}]', 400, null],
  [parsePut, `{"docs":[${repeated(10_001, (i) => `{"id":"${i}","text":""}`)}]}`, 413, null],
  [parsePut, `{"deletes":[${repeated(10_000, (i) => `"${i}"`)}],"docs":[{"id":"a","text":""}]}`, 413, null],
  [parsePut, `{"deletes":[${repeated(10_001, (i) => `"${i}"`)}]}`, 413, null],
  [parsePatch, '{}', 422, 'docs'],
  [parsePatch, '{"docs":[]}', 422, 'docs'],
  [parsePatch, '{"docs":[{"text":"t"}]}', 422, 'docs[0].id'],
  [parsePatch, '{"docs":[{"id":"a","text":1}]}', 422, 'docs[0].text'],
  [parsePatch, '{"docs":null}', 422, 'docs'],
  [parsePatch, '{"docs":[{"id":"a","vector":[]}]}', 422, 'docs[0].vector'],
  [parsePatch, '{"docs":[{"id":"a"}],"deletes":[]}', 422, 'deletes'],
  [parsePatch, `{"docs":[${repeated(10_001, (i) => `{"id":"${i}"}`)}]}`, 413, null],
  [parsePatch, '{"docs":', 400, null],
  [parseDelete, '', 400, null],
  [parseDelete, '{}', 422, 'ids'],
  [parseDelete, '{"ids":null}', 422, 'ids'],
  [parseDelete, '{"ids":["a",null]}', 422, 'ids[1]'],
  [parseDelete, '{"ids":["a"],"docs":[]}', 422, 'docs'],
  [parseDelete, `{"ids":[${repeated(10_001, (i) => `"${i}"`)}]}`, 422, 'ids'],
];

const codes: Readonly<Record<number, string>> = {
  400: 'bad_request',
  413: 'too_large',
  422: 'invalid',
};

for (const [parse, body, status, field] of wrong) {
  test(`${parse.name} answers ${status}${field === null ? '' : ` for ${field}`} to ${body.slice(0, 80)}`, () => {
    const error = refusal(parse, body);

    assert.equal(error.status, status, error.message);
    assert.equal(error.code, codes[status]);
    assert.deepEqual(Object.keys(error.fields ?? {}), field === null ? [] : [field]);
    if (status === 400 && body !== '') assert.match(error.message, / at byte \d+$/);
  });
}

test('bytes that are not UTF-8 are malformed wherever they stand', () => {
  for (const bad of ['c080', 'ff', 'eda080', 'e282']) {
    for (const place of ['{"docs":[{"id":"a","text":"_"}]}', '{"docs":[{"id":"_","text":""}]}', '{"_":1}']) {
      const [before, after] = place.split('_');
      const body = Buffer.concat([
        Buffer.from(before ?? ''),
        Buffer.from(bad, 'hex'),
        Buffer.from(after ?? ''),
      ]);

      assert.equal(refusal(parsePut, body).status, 400);
    }
  }
});

test('bodies made to exhaust a parser are refused', () => {
  const bytes = 4_000_000;
  const bombs = [
    '[',
    '{"a":',
    '[],',
    '{},',
    '9',
    '{"docs":[',
    '{"docs":[{"meta":',
    '"',
    '\\',
    ' ',
    '-',
    '{"a":[{},',
  ];
  for (const bomb of bombs) {
    const body = bomb.repeat(bytes / bomb.length);
    for (const parse of [parsePut, parsePatch, parseDelete]) {
      for (const [before, after] of [
        ['', ''],
        ['{"docs":[', ']}'],
        ['{"docs":[{"id":"a","text":', '}]}'],
        ['{"ids":', '}'],
      ]) {
        const { status } = refusal(parse, before + body + after);
        assert.ok(status >= 400 && status < 500);
      }
    }
  }
});

test('a patch tells what is given from what is kept', () => {
  const { batch, wait } = parsePatch(
    Buffer.from('{"docs":[{"id":"a"},{"id":"b","text":""},{"meta":{"k":null},"id":"c"}],"wait":true}'),
  );

  assert.equal(wait, true);
  assert.deepEqual(
    readPatches(batch).map(({ id, text, metaPatch, vector }) => [
      id,
      text?.toString(),
      metaPatch?.toString(),
      vector,
    ]),
    [
      ['a', undefined, undefined, null],
      ['b', '', undefined, null],
      ['c', undefined, '{"k":null}', null],
    ],
  );
});

test('ten thousand patches with ids alone fit, though they are longer encoded than as JSON', () => {
  const { batch } = parsePatch(Buffer.from(`{"docs":[${repeated(10_000, (i) => `{"id":"${i % 10}"}`)}]}`));

  assert.equal(readPatches(batch).length, 10_000);
});

test('a delete reads its ids, and an empty list is nothing to do', () => {
  assert.deepEqual(plain(parseDelete(Buffer.from('{"wait":false,"ids":["a","b\\u0063"]}'))), {
    docs: [],
    deletes: ['a', 'bc'],
    wait: false,
  });
  assert.deepEqual(plain(parseDelete(Buffer.from('{"ids":[]}'))), { docs: [], deletes: [], wait: false });
  assert.equal(
    parseDelete(Buffer.from(`{"ids":[${repeated(10_000, (i) => `"${i}"`)}]}`)).deleteCount,
    10_000,
  );
});

test('the JSON test suite inside a meta: accepted as it is written, or malformed', () => {
  for (const { name, input } of jsonSuite) {
    const body = `{"docs":[{"id":"a","text":"t","meta":{"v":${input}}}]}`;
    const deep =
      name.includes('nested_arrays') || name.includes('100000') || name.includes('open_array_object');
    const expected = naivePut(Buffer.from(body));

    if (deep) assert.equal(refusal(parsePut, body).status, 422, name);
    else if (typeof expected === 'number') assert.equal(refusal(parsePut, body).status, expected, name);
    else assert.equal(put(body).docs[0]?.meta, `{"v":${input}}`, name);
    if (name.startsWith('y_')) assert.equal(typeof expected, 'object', name);
    if (name.startsWith('n_')) assert.equal(expected, 400, name);
  }
});

test('the JSON test suite as texts reads back as it was sent', () => {
  const well = jsonSuite.filter(({ input }) => input.isWellFormed());
  const docs = well.map(({ name, input }) => ({ id: name, text: input }));

  const texts = put(JSON.stringify({ docs })).docs.map(({ text }) => text);

  assert.deepEqual(
    texts,
    well.map(({ input }) => input),
  );
});

/** What a put should be, by JSON.parse: the write, or the status of its refusal. Depth is not its business. */
function naivePut(body: Buffer): PlainWrite | number {
  if (body.length === 0 || !isUtf8(body)) return 400;
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return 400;
  }
  if (!isRecord(value) || !onlyKeys(value, ['docs', 'deletes', 'wait'])) return 422;
  const docs = value.docs ?? [];
  const deletes = value.deletes ?? [];
  const wait = value.wait ?? false;
  if (!Array.isArray(docs) || !Array.isArray(deletes) || typeof wait !== 'boolean') return 422;
  if (docs.length + deletes.length === 0) return 422;
  if (!docs.every(isDocument) || !deletes.every(isId)) return 422;
  const plainDocs = docs.map(({ id, text, meta }) => ({
    id,
    text,
    meta: meta === undefined || meta === null ? null : JSON.stringify(meta),
  }));
  return { docs: plainDocs, deletes, wait };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function onlyKeys(value: object, keys: readonly string[]): boolean {
  return Object.keys(value).every((key) => keys.includes(key));
}

const isId = (id: unknown): id is string => typeof id === 'string' && documentIdProblem(id) === null;

function isDocument(value: unknown): value is { id: string; text: string; meta?: object | null } {
  if (!isRecord(value) || !onlyKeys(value, ['id', 'text', 'meta']) || !isId(value.id)) return false;
  const { text, meta } = value;
  if (typeof text !== 'string' || !text.isWellFormed()) return false;
  return (
    meta === undefined ||
    meta === null ||
    (isRecord(meta) && isWellFormedDeep(meta as JsonValue as Record<string, JsonValue>))
  );
}

/** Mostly proper bodies with now and then another field or another type. */
const document = fc
  .tuple(
    jsonString,
    fc.oneof({ weight: 9, arbitrary: jsonString }, { weight: 1, arbitrary: jsonText.value }),
    fc.oneof({ weight: 9, arbitrary: jsonText.object }, { weight: 1, arbitrary: jsonText.value }),
    fc.constantFrom('', ' ', '\n\t'),
    fc.shuffledSubarray([0, 1, 2], { minLength: 2 }),
  )
  .map(([id, text, meta, gap, order]) => {
    const fields = [
      `"id"${gap}:"n${id.slice(1)}`,
      `"text":${gap}${text}`,
      `"meta"${gap}:${gap}${meta}${gap}`,
    ];
    return `{${gap}${order.map((i) => fields[i]).join(`${gap},${gap}`)}}`;
  });

const putBody = fc
  .tuple(
    fc.array(document, { maxLength: 3 }),
    fc.array(jsonString, { maxLength: 2 }),
    fc.constantFrom('true', 'false', '1'),
  )
  .map(
    ([docs, deletes, wait]) => `{"docs":[${docs.join(' , ')}],"deletes":[${deletes.join()}],"wait":${wait}}`,
  );

test('random and damaged bodies are read or refused as a parser by JSON.parse does', () => {
  let accepted = 0;
  fc.assert(
    fc.property(putBody, damages, (text, list) => {
      const body = damaged(text, list);
      const expected = naivePut(body);

      if (typeof expected === 'number') {
        const { status } = refusal(parsePut, body);
        assert.equal(status, expected);
        return;
      }
      const actual = put(body);
      const docs = actual.docs.map((doc) => ({
        ...doc,
        meta: doc.meta === null ? null : JSON.stringify(JSON.parse(doc.meta)),
      }));
      assert.deepEqual({ ...actual, docs }, expected);
      accepted++;
    }),
    fuzz,
  );
  assert.ok(accepted > 0);
});
