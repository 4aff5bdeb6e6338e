import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operationList, operations, querySchemaOf, takesBody } from '../../protocol/operations.ts';
import { formats, wireHistory, wireVersion } from '../../protocol/version.ts';

test('operations: names and MCP tools are unique, and every tool of the service is there', () => {
  const tools = operationList.flatMap((operation) => operation.mcp ?? []);

  assert.equal(new Set(tools).size, tools.length);
  assert.deepEqual(tools.toSorted(), [
    'count',
    'create_namespace',
    'delete_documents',
    'delete_namespace',
    'get_document',
    'list_namespaces',
    'search',
    'sql_query',
    'update_namespace',
    'warm_namespace',
    'write_documents',
  ]);
});

test('operations: credentials, scope and authority do not contradict each other', () => {
  for (const { name, auth, scope, authority, rateLimitHeaders, path } of operationList) {
    if (auth === 'none') assert.deepEqual([name, scope, authority], [name, null, 'any']);
    if (authority !== 'any') assert.deepEqual([name, scope], [name, 'admin']);
    assert.deepEqual([name, rateLimitHeaders], [name, path.startsWith('/v1/namespaces')]);
  }
});

test('operations: reads need read, whatever changes a namespace needs write', () => {
  for (const { name, effect, scope, path } of operationList) {
    if (effect.meters === 'query') assert.deepEqual([name, scope], [name, 'read']);
    if (effect.meters === 'write') assert.deepEqual([name, scope], [name, 'write']);
    if (path.startsWith('/v1/namespaces')) assert.ok(scope === 'read' || scope === 'write', name);
  }
});

test('operations: the effect of each fits its methods, its scope and what it heeds', () => {
  for (const operation of operationList) {
    const { name, effect, methods, idempotent, changes, serves, needsFirst, scope } = operation;
    const isRead =
      methods.every((method) => method === 'GET') || effect.meters === 'query' || name === 'login';
    assert.deepEqual([name, effect.does], [name, isRead ? 'read' : 'write']);
    if (effect.meters === 'write' || idempotent || changes !== null)
      assert.deepEqual([name, effect.does], [name, 'write']);
    if (changes !== null) assert.deepEqual([name, effect.meters], [name, 'write']);
    if (scope === 'read') assert.deepEqual([name, effect.does], [name, 'read']);
    // What the front does before it asks the actor is for an actor.
    if (needsFirst !== null) assert.notEqual(serves, 'front', name);
  }
});

test('operations: path parameters are those of the path, in its order', () => {
  for (const { name, path, parameters, restParameter } of operationList) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    assert.deepEqual([name, Object.keys(parameters)], [name, inPath]);
    if (restParameter !== null) assert.ok(path.endsWith(`{${restParameter}}`), name);
  }
});

test('operations: a search has a body by POST and parameters by GET', () => {
  assert.ok(takesBody(operations.search, 'POST'));
  assert.ok(!takesBody(operations.search, 'GET') && !takesBody(operations.search, 'HEAD'));
  assert.equal(querySchemaOf(operations.search, 'POST'), null);
  assert.notEqual(querySchemaOf(operations.search, 'GET'), null);
  assert.notEqual(querySchemaOf(operations.importDocuments, 'POST'), null);
  assert.equal(operations.billingCheckout.bodyBytesMax, 0);
});

test('version: every format has one line of history for each of its numbers', () => {
  for (const [name, format] of Object.entries(formats)) {
    assert.equal(format.history.length, format.version, name);
  }
  assert.ok(wireHistory.at(-1)?.startsWith(`${wireVersion}:`));
});
