import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../../protocol/errors.ts';
import { limits } from '../../../../protocol/limits.ts';
import { tools } from '../../../../protocol/mcp-tools.ts';
import { must } from '../../../../src/base/assert.ts';
import { readMembers } from '../../../../src/front/mcp/json-members.ts';
import { errorForTool, restRequestOf } from '../../../../src/front/mcp/tool-arguments.ts';

const toolOf = (name: string) => must(tools.get(name), name);

/** `args`: the JSON of the arguments; null where there are none. */
function requestOf(name: string, args: string | null) {
  const members = args === null ? null : (readMembers(Buffer.from(args), {}, 1).elements[0]?.members ?? null);
  const { parameters, query, body } = restRequestOf(toolOf(name), members);
  return { parameters, query, body: body === null ? null : Buffer.from(body).toString() };
}

function refusal(name: string, args: string | null): Readonly<Record<string, string>> {
  try {
    requestOf(name, args);
  } catch (error) {
    assert.ok(error instanceof ApiError);
    assert.equal(error.status, 422);
    return error.fields ?? {};
  }
  assert.fail('it was taken');
}

test('arguments go where the operation has them, as the bytes that they are', () => {
  assert.deepEqual(requestOf('search', '{"namespace":"n","query":"x","filter":{"k":435090932899640449}}'), {
    parameters: { name: 'n' },
    query: '',
    body: '{"q":"x","filter":{"k":435090932899640449},"context":2,"max_bytes":32768}',
  });
  assert.deepEqual(requestOf('get_document', '{"namespace":"n","id":"a/b c","lines":"2-3","limit":"5"}'), {
    parameters: { name: 'n', id: 'a/b c' },
    query: 'lines=2-3&limit=5&max_bytes=32768',
    body: null,
  });
  assert.deepEqual(
    requestOf('create_namespace', '{"name":"n","dims":2,"metric":"cosine","embed_provider":"service"}'),
    {
      parameters: {},
      query: '',
      body: '{"name":"n","vector":{"dims":2,"metric":"cosine"},"embed":{"provider":"service"}}',
    },
  );
});

test('nothing that a client writes into a query string becomes another parameter', () => {
  const { query } = requestOf(
    'get_document',
    '{"namespace":"n","id":"x","lines":"1&max_bytes=9#&limit=1","max_bytes":2000}',
  );

  assert.deepEqual(Object.fromEntries(new URLSearchParams(query)), {
    lines: '1&max_bytes=9#&limit=1',
    max_bytes: '2000',
  });
});

test('null and nothing are the defaults', () => {
  assert.deepEqual(requestOf('list_namespaces', null), { parameters: {}, query: '', body: null });
  assert.deepEqual(requestOf('list_namespaces', '{"limit":null}'), { parameters: {}, query: '', body: null });
  assert.equal(requestOf('count', '{"namespace":"n"}').body, '{"max_bytes":32768}');
});

test('an update without a provider, or with an empty one, ends embedding', () => {
  for (const args of [
    '{"name":"n"}',
    '{"name":"n","embed_provider":""}',
    '{"name":"n","embed_provider":null}',
  ])
    assert.equal(requestOf('update_namespace', args).body, '{"embed":null}', args);
  assert.equal(
    requestOf('update_namespace', '{"name":"n","embed_provider":"service"}').body,
    '{"embed":{"provider":"service"}}',
  );
  // A model alone is the operation's to refuse.
  assert.equal(
    requestOf('update_namespace', '{"name":"n","embed_model":"m"}').body,
    '{"embed":{"model":"m"}}',
  );
});

test('what a tool does not have, what it needs, and what is too much are refused by their names', () => {
  assert.deepEqual(Object.keys(refusal('search', '{"namespace":"n","q":"x","__proto__":1}')), [
    'q',
    '__proto__',
  ]);
  assert.deepEqual(refusal('get_document', '{}'), { namespace: 'is required', id: 'is required' });
  assert.deepEqual(refusal('count', '{"namespace":["n"]}'), { namespace: 'must be a string' });
  const tooMuch = `must be an integer from ${limits.answerBytesMin} to ${limits.toolAnswerBytesMax}`;
  for (const bytes of [
    limits.toolAnswerBytesMax + 1,
    '1e99',
    `"${limits.toolAnswerBytesMax + 1}"`,
    '"x"',
    '9'.repeat(400),
  ])
    assert.deepEqual(refusal('sql_query', `{"namespace":"n","sql":"x","max_bytes":${bytes}}`), {
      max_bytes: tooMuch,
    });
  assert.equal(
    requestOf('sql_query', `{"namespace":"n","sql":"x","max_bytes":${limits.toolAnswerBytesMax}}`).body,
    `{"sql":"x","max_bytes":${limits.toolAnswerBytesMax}}`,
  );
});

test('half of a surrogate pair is refused where no address can carry it', () => {
  const half = { limit: 'must be well-formed Unicode: it holds half of a surrogate pair' };
  assert.deepEqual(refusal('list_namespaces', '{"limit":"\\ud800"}'), half);
  assert.deepEqual(refusal('get_document', '{"namespace":"n","id":"a","limit":"\\udc00\\ud800"}'), half);
  assert.deepEqual(Object.keys(refusal('get_document', '{"namespace":"\\ud800","id":"\\ud800"}')), [
    'namespace',
    'id',
  ]);
});

test('a refusal speaks of the tool’s own arguments', () => {
  const rest =
    '{"error":"q: must be a string","code":"invalid","fields":{"q":"must be a string","limit":"x"}}';
  const search = errorForTool(toolOf('search'), rest);

  assert.equal(
    search,
    '{"error":"query: must be a string","code":"invalid","fields":{"query":"must be a string","limit":"x"}}',
  );
  const plain = '{"error":"there is no namespace","code":"not_found"}';
  assert.equal(errorForTool(toolOf('search'), plain), plain);
});
