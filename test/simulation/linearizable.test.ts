import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentValue, type Op, type ReadOp } from './history.ts';
import { judge } from './linearizable.ts';

/** Spans are [begin, end] in milliseconds. */
const put = (
  token: string,
  ids: readonly string[],
  span: readonly [number, number],
  version: number | null,
): Op => ({
  kind: 'write',
  token,
  change: { kind: 'put', docs: ids.map((id) => [id, documentValue(token, token, '')]), deletes: [] },
  startMs: span[0],
  endMs: version === null ? Number.POSITIVE_INFINITY : span[1],
  acknowledged: version !== null,
  version,
  deleted: null,
});
const drop = (span: readonly [number, number]): Op => ({
  kind: 'write',
  token: 'drop',
  change: { kind: 'drop' },
  startMs: span[0],
  endMs: span[1],
  acknowledged: true,
  version: null,
  deleted: null,
});
const read = (saw: ReadOp['saw'], span: readonly [number, number], version: number | null = null): Op => ({
  kind: 'read',
  token: 'r',
  startMs: span[0],
  endMs: span[1],
  version,
  saw,
});
const one = (id: string, token: string | null): ReadOp['saw'] => ({
  kind: 'one',
  id,
  value: token === null ? null : documentValue(token, token, ''),
});
const kindOf = (ops: readonly Op[]) => judge(ops, () => 0).kind;

test('a read may see a concurrent write or not, but not lose it again', () => {
  const write = put('w', ['a'], [0, 100], 1);
  assert.equal(
    kindOf([write, read(one('a', null), [10, 20]), read(one('a', 'w'), [30, 40])]),
    'linearizable',
  );
  assert.equal(kindOf([write, read(one('a', 'w'), [10, 20]), read(one('a', null), [30, 40])]), 'violated');
});

test('an acknowledged write is seen by every later read', () => {
  assert.equal(kindOf([put('w', ['a'], [0, 10], 1), read(one('a', null), [20, 30])]), 'violated');
});

test('a write of unknown outcome may be seen late or never, and fills a gap of versions', () => {
  const unknown = put('u', ['a'], [0, 10], null);
  assert.equal(kindOf([unknown, read(one('a', null), [20, 30])]), 'linearizable');
  assert.equal(
    kindOf([unknown, read(one('a', null), [20, 30]), read(one('a', 'u'), [40, 50])]),
    'linearizable',
  );
  assert.equal(
    kindOf([unknown, put('w', ['b'], [20, 30], 2), read(one('a', 'u'), [40, 50])]),
    'linearizable',
  );
  assert.equal(kindOf([unknown, put('w', ['b'], [20, 30], 3)]), 'violated');
});

test('half of a request is never seen', () => {
  const docs = new Map([['a', documentValue('w', 'w', '')]]);
  assert.equal(
    kindOf([put('w', ['a', 'b'], [0, 50], 1), read({ kind: 'all', docs }, [10, 20], 1)]),
    'violated',
  );
});

test('versions begin again with a new namespace of the name', () => {
  const history = [put('w', ['a'], [0, 10], 1), drop([20, 30]), put('x', ['b'], [40, 50], 1)];
  assert.equal(kindOf([...history, read(one('a', null), [60, 70])]), 'linearizable');
  assert.equal(kindOf([...history, read(one('a', 'w'), [60, 70])]), 'violated');
});
