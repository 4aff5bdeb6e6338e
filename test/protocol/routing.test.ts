import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../protocol/errors.ts';
import { operationList } from '../../protocol/operations.ts';
import { findOperation, successorOf } from '../../protocol/routing.ts';

function found(method: string, path: string) {
  const route = findOperation(method, path);
  assert.ok(route.kind === 'found', `${method} ${path}: ${JSON.stringify(route)}`);
  const given = Object.entries(route.parameters).filter(([, value]) => value !== undefined);
  return [route.operation.name, Object.fromEntries(given)];
}

test('routing: every operation is found by each of its methods', () => {
  for (const operation of operationList) {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, 'x-$1');
    const parameters = Object.fromEntries(
      [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, `x-${name}`]),
    );
    for (const method of operation.methods)
      assert.deepEqual(found(method, path), [operation.name, parameters]);
  }
});

const ids: readonly (readonly [raw: string, id: string])[] = [
  ['a', 'a'],
  ['a/b/c', 'a/b/c'],
  ['a%2Fb', 'a/b'],
  ['a//b/', 'a//b/'],
  ['/a', '/a'],
  ['..', '..'],
  ['../../keys', '../../keys'],
  ['%2E%2E%2F', '../'],
  ['%252F', '%2F'],
  ['a+b', 'a+b'],
  ['%C3%A9', 'é'],
  ['docs', 'docs'],
  ['', ''],
];

for (const [raw, id] of ids) {
  test(`routing: the document id ${JSON.stringify(raw)} is ${JSON.stringify(id)}`, () => {
    assert.deepEqual(found('GET', `/v1/namespaces/notes/docs/${raw}`), [
      'getDocument',
      { name: 'notes', id },
    ]);
  });
}

test('routing: names are percent-decoded once', () => {
  assert.deepEqual(found('GET', '/v1/namespaces/a%2Fb'), ['getNamespace', { name: 'a/b' }]);
  assert.deepEqual(found('GET', '/v1/namespaces/a%252Fb'), ['getNamespace', { name: 'a%2Fb' }]);
});

test('routing: a bad escape or invalid UTF-8 is a bad request', () => {
  for (const part of ['%', '%g0', '%ff', '%C3', '%ED%A0%80', '%C0%AF']) {
    for (const path of [`/v1/namespaces/${part}`, `/v1/namespaces/a/docs/x/${part}`]) {
      assert.throws(
        () => findOperation('GET', path),
        (error: unknown) => error instanceof ApiError && error.code === 'bad_request' && error.status === 400,
      );
    }
  }
});

test('routing: HEAD is a GET', () => {
  assert.deepEqual(found('HEAD', '/healthz'), ['healthz', {}]);
  assert.deepEqual(found('HEAD', '/v1/namespaces/a/docs/b'), ['getDocument', { name: 'a', id: 'b' }]);
});

const unknownPaths = [
  '',
  '/',
  '*',
  'healthz',
  '/healthz/',
  '//healthz',
  '/v1',
  '/v1/',
  '/v1/namespaces/',
  '/v1/namespaces//docs',
  '/v1/namespaces/a/',
  '/v1/namespaces/a/nothing',
  '/v1/namespaces/a/search/x',
  '/v1/keys/',
  '/v1/keys/1/limits/2',
  '/v2/me',
  '/V1/me',
  '/__proto__',
  '/constructor',
];

for (const path of unknownPaths) {
  test(`routing: ${JSON.stringify(path)} is no path`, () => {
    for (const method of ['GET', 'POST', 'DELETE'])
      assert.deepEqual(findOperation(method, path), { kind: 'no-path' });
  });
}

test('routing: a known path with another method says which are allowed', () => {
  const allow = (method: string, path: string) => {
    const route = findOperation(method, path);
    return route.kind === 'wrong-method' ? route.allow : route.kind;
  };

  assert.equal(allow('PUT', '/v1/namespaces/a/search'), 'GET, HEAD, POST');
  assert.equal(allow('GET', '/v1/signup'), 'POST');
  assert.equal(allow('GET', '/v1/namespaces/a/docs'), 'PATCH, POST');
  assert.equal(allow('POST', '/v1/namespaces/a/docs/%ff'), 'GET, HEAD');
  assert.equal(allow('OPTIONS', '/healthz'), 'GET, HEAD');
  assert.equal(allow('get', '/healthz'), 'GET, HEAD');
});

test('routing: the old prefix leads to every operation of /v1, and to nothing else', () => {
  for (const operation of operationList) {
    if (!operation.path.startsWith('/v1/')) continue;
    const path = operation.path.replaceAll(/\{(\w+)\}/g, 'x-$1');
    const old = path.replace('/v1/', '/api/');
    for (const method of operation.methods) assert.deepEqual(found(method, old), found(method, path));
    assert.equal(successorOf(old), path);
    assert.equal(successorOf(path), null);
  }
  for (const path of ['/api', '/api/', '/api/nothing', '/api/v1/keys', '/api/healthz', '/apiary/keys']) {
    assert.equal(findOperation('GET', path).kind, 'no-path', path);
    assert.equal(successorOf(path), null, path);
  }
});

test('routing: a successor is text that a Link header can carry, whatever the client sent', () => {
  const raw = '/api/namespaces/n/docs/a>b"c\u00e9\ud83e\udd8a\ud800 %2F../x';

  assert.equal(successorOf(raw), '/v1/namespaces/n/docs/a%3Eb%22c%C3%A9%F0%9F%A6%8A%EF%BF%BD%20%2F../x');
  assert.equal(successorOf(`/api/namespaces/n/docs/${'a'.repeat(3_000)}`), null);
});
