import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Chance } from './chance.ts';
import { type Change, documentValue, type Op, type ReadOp, type Value } from './history.ts';
import { applied, judge } from './linearizable.ts';

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
const ids = ['a', 'b', 'c'];
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

test('asking whether a position leads anywhere changes no verdict', (context) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  const counts = { linearizable: 0, violated: 0, undecided: 0 };
  for (let i = 0; i < 2_000; i++) {
    const ops = history(new Chance(seed + i, 0));
    const { kind } = judge(ops, () => 0, null, Number.POSITIVE_INFINITY);
    assert.equal(judge(ops, () => 0, null, 0).kind, kind, `history of seed ${seed + i}`);
    counts[kind]++;
  }
  context.diagnostic(`seed ${seed}: ${JSON.stringify(counts)}`);
  assert.ok(counts.linearizable > 100 && counts.violated > 100);
});

/** What three clients hear of one name that is right, but for one answer in two histories, which is of another moment. */
function history(chance: Chance): Op[] {
  const ops: Op[] = [];
  let docs = new Map<string, Value>();
  let before = docs;
  let version = 0;
  for (let i = 0; i < 8; i++) {
    const span = { startMs: i * 10 - chance.integer(0, 24), endMs: i * 10 + chance.integer(0, 24) };
    const lying = chance.happens(1 / 16);
    if (chance.happens(1 / 2)) {
      const seen = lying ? before : docs;
      const id = chance.pick(ids);
      const saw: ReadOp['saw'] = chance.happens(1 / 2)
        ? { kind: 'all', docs: seen }
        : { kind: 'one', id, value: seen.get(id) ?? null };
      ops.push({
        kind: 'read',
        token: `r${i}`,
        ...span,
        version: chance.happens(1 / 2) ? version : null,
        saw,
      });
      continue;
    }
    const token = `w${i}`;
    const change = changeOf(token, docs, chance);
    const isUnknown = chance.happens(1 / 3);
    const takesEffect = !isUnknown || chance.happens(1 / 2);
    if (takesEffect) {
      before = docs;
      docs = applied(docs, change) as Map<string, Value>;
      version = change.kind === 'drop' ? 0 : version + 1;
    }
    ops.push({
      kind: 'write',
      token,
      change,
      startMs: span.startMs,
      endMs: isUnknown ? Number.POSITIVE_INFINITY : span.endMs,
      acknowledged: !isUnknown,
      version: isUnknown || change.kind === 'drop' ? null : lying ? version + 1 : version,
      deleted: null,
    });
  }
  return ops;
}

function changeOf(token: string, docs: ReadonlyMap<string, Value>, chance: Chance): Change {
  const there = ids.find((id) => docs.has(id));
  const roll = chance.integer(0, 5);
  if (roll === 0) return { kind: 'drop' };
  if (roll === 1 && there !== undefined) return { kind: 'patch', docs: [{ id: there, text: token }] };
  const id = chance.pick(ids);
  if (roll === 2) return { kind: 'put', docs: [], deletes: [id] };
  return { kind: 'put', docs: [[id, documentValue(token, token, '')]], deletes: [] };
}
