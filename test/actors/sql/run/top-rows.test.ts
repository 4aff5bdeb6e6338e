import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Evaluator } from '../../../../actors/sql/expression/evaluate.ts';
import { type Column, dictionaryOf } from '../../../../actors/sql/frame/column.ts';
import { allRows, type Frame } from '../../../../actors/sql/frame/frame.ts';
import { Interruption } from '../../../../actors/sql/interruption.ts';
import type { Bound, BoundOrder } from '../../../../actors/sql/plan/bound.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { TopRows } from '../../../../actors/sql/run/top-rows.ts';
import { seededRandom } from '../../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 71);
const strings = [
  '',
  'bay',
  'ebb',
  'ebb tide',
  'é',
  'the tide turns at',
  'the tide turns at noon',
  'the tide turns at night, é',
];
/** A dictionary that some frames share: what is known of its codes stays known. */
const shared = dictionaryOf(strings);

type Value = number | bigint | string | null;
/** A kind of column: what it has in a row, for a small number. */
type Kind = 'numbers' | 'wide' | 'texts' | 'constant';

/** The largest of the small numbers are larger than all others, and alike. */
const double = (number: number) => (number >= 38 ? Number.POSITIVE_INFINITY : number);

const columnBound = (index: number, type: Bound['type']): Bound => ({ kind: 'column', index, type });

/** Makes a column of small numbers in one of the forms that columns have; null where a number is negative. */
function columnOf(
  kind: Kind,
  numbers: readonly number[],
): { readonly column: Column; readonly values: readonly Value[] } {
  const nulls = Uint8Array.from(numbers, (number) => Number(number < 0));
  const some = nulls.includes(1) ? nulls : null;
  const valuesOf = (value: (number: number) => Value) =>
    numbers.map((number) => (number < 0 ? null : value(number)));
  switch (kind) {
    case 'numbers':
      return {
        column: { kind, values: Float64Array.from(numbers, double), nulls: some },
        values: valuesOf(double),
      };
    case 'wide': {
      // Both halves of 32 bits differ, with and without their highest bit.
      const wide = (number: number) => BigInt((number % 5) - 2) * 2n ** 61n + BigInt(number) * 0x3fff_ffffn;
      return {
        column: { kind, values: BigInt64Array.from(numbers, wide), nulls: some },
        values: valuesOf(wide),
      };
    }
    case 'texts': {
      const codes = Int32Array.from(numbers, (number) => Math.max(number, 0) % strings.length);
      const dictionary = numbers.length % 2 === 0 ? shared : dictionaryOf(strings);
      return {
        column: { kind, codes, dictionary, nulls: some },
        values: valuesOf((number) => strings[number % strings.length] as string),
      };
    }
    case 'constant':
      return { column: { kind, value: 'same' }, values: numbers.map(() => 'same') };
  }
}

function compared(a: Value, b: Value, { descending, nullsFirst }: BoundOrder): number {
  if (a === null || b === null) return a === b ? 0 : (a === null) === nullsFirst ? -1 : 1;
  const order =
    typeof a === 'string'
      ? Buffer.compare(Buffer.from(a), Buffer.from(String(b)))
      : a < (b as number | bigint)
        ? -1
        : Number(a > (b as number | bigint));
  return descending ? -order : order;
}

/** An evaluator of columns alone, which is interrupted now and then, and notes which columns it was asked for. */
function evaluatorOf(random: () => number) {
  const asked: number[] = [];
  const known = new WeakMap<Frame, Set<number>>();
  const evaluate = (bound: Bound, frame: Frame): Column => {
    assert.ok(bound.kind === 'column');
    const done = known.get(frame) ?? new Set();
    known.set(frame, done);
    if (!done.has(bound.index) && random() < 0.2) {
      done.add(bound.index);
      throw new Interruption(async () => {});
    }
    asked.push(bound.index);
    return frame.column(bound.index);
  };
  return { evaluator: { evaluate } as unknown as Evaluator, asked };
}

function frameOf(columns: readonly Column[], rowCount: number): Frame {
  const none = () => assert.fail('frames of this test have columns alone');
  return { rowCount, rows: null, column: (index) => columns[index] as Column, slot: none, textMatch: none };
}

test('the first rows are those that sorting all of them puts first, among rows that are alike those that came first', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const pick = <T>(from: readonly T[]) => from[below(from.length)] as T;
  for (let round = 0; round < 60; round++) {
    const kinds = Array.from({ length: 1 + below(4) }, () =>
      pick<Kind>(['numbers', 'numbers', 'wide', 'texts', 'constant']),
    );
    const distinct = kinds.map(() => pick([1, 2, 3, 40, 1_000]));
    const nullShares = kinds.map(() => pick([0, 0.1]));
    const orderBy = kinds.map((kind, index) => ({
      expression: columnBound(index, kind === 'texts' || kind === 'constant' ? 'text' : 'int'),
      descending: random() < 0.5,
      nullsFirst: random() < 0.5,
    }));
    const outputs = [{ name: 'at', expression: columnBound(kinds.length, 'int') }];
    const [wanted, offset] = [1 + below(12), below(3) * 5];
    const { evaluator } = evaluatorOf(random);
    const top = new TopRows({ outputs, orderBy, offset }, wanted, evaluator, new Room(1_000_000));
    const all: { readonly keys: readonly Value[]; readonly at: number }[] = [];
    for (let from = 0; from < 2_000; ) {
      // Few rows, so that in many frames none comes before all others by its first key.
      const rowsOfFrame = 1 + below(30);
      const made = kinds.map((kind, key) =>
        columnOf(
          // A key's numbers come as doubles or as integers of 64 bits, as each chunk has them.
          kind === 'wide' ? pick<Kind>(['numbers', 'wide']) : kind,
          Array.from(
            { length: rowsOfFrame },
            () => below(distinct[key] as number) - Number(random() < (nullShares[key] as number)) * 9_000,
          ),
        ),
      );
      const ats = Float64Array.from({ length: rowsOfFrame }, (_, row) => from + row);
      const columns = [
        ...made.map(({ column }) => column),
        { kind: 'numbers', values: ats, nulls: null } as const,
      ];
      const rows = allRows(rowsOfFrame).filter(() => random() < 0.9);
      for (const row of rows)
        all.push({ keys: made.map(({ values }) => values[row] as Value), at: ats[row] as number });
      for (const step of top.add(frameOf(columns, rowsOfFrame), rows)) void step;
      from += rowsOfFrame;
    }
    for (const step of top.finish()) void step;

    const sorted = all.toSorted((a, b) => {
      for (const [at, order] of orderBy.entries()) {
        const difference = compared(a.keys[at] as Value, b.keys[at] as Value, order);
        if (difference !== 0) return difference;
      }
      return a.at - b.at;
    });
    const expected = sorted.slice(offset, offset + wanted).map(({ at }) => `[${at}]`);
    assert.deepEqual(top.rows(), expected, `${kinds}, round ${round}`);
  }
});

test('a key is evaluated where rows are alike in those before it, and rows that can not be among the first are not looked at further', () => {
  const { evaluator, asked } = evaluatorOf(() => 1);
  const orderBy = [0, 1].map((index) => ({
    expression: columnBound(index, 'int'),
    descending: true,
    nullsFirst: false,
  }));
  const outputs = [{ name: 'at', expression: columnBound(2, 'int') }];
  const top = new TopRows({ outputs, orderBy, offset: 0 }, 2, evaluator, new Room(1_000));
  const numbers = (of: (row: number) => number): Column => ({
    kind: 'numbers',
    values: Float64Array.from({ length: 200 }, (_, row) => of(row)),
    nulls: null,
  });
  const askedFor = (...columns: readonly Column[]) => {
    asked.length = 0;
    for (const step of top.add(frameOf(columns, 200), allRows(200))) void step;
    return [...asked];
  };
  const at = numbers((row) => row);
  const falling = numbers((row) => 199 - row);
  const constant = (value: number) => numbers(() => value);

  assert.deepEqual(askedFor(falling, at, at), [0, 1, 2], 'there are no first rows yet');
  assert.deepEqual(askedFor(constant(197), at, at), [0], 'all come after 198');
  assert.deepEqual(askedFor(constant(198), constant(0), at), [0, 1], 'as 198, of a lesser second key');
  assert.deepEqual(askedFor(constant(198), constant(1), at), [0, 1], 'the same keys, but later');
  assert.deepEqual(askedFor(constant(198), constant(7), at), [0, 1, 2], 'as 198, of a greater second key');
  for (const step of top.finish()) void step;
  assert.deepEqual(top.rows(), ['[0]', '[0]']);
});

test('rows that are alike in one key are not lost or doubled where the next key of another row is better', () => {
  const { evaluator } = evaluatorOf(() => 1);
  const orderBy = [0, 1, 2].map((index) => ({
    expression: columnBound(index, 'int'),
    descending: true,
    nullsFirst: false,
  }));
  const outputs = [{ name: 'at', expression: columnBound(3, 'int') }];
  const top = new TopRows({ outputs, orderBy, offset: 0 }, 4, evaluator, new Room(1_000));
  const add = (...keys: readonly (readonly number[])[]) => {
    const columns = keys.map(
      (values): Column => ({ kind: 'numbers', values: Float64Array.from(values), nulls: null }),
    );
    const rowCount = keys[0]?.length ?? 0;
    for (const step of top.add(frameOf(columns, rowCount), allRows(rowCount))) void step;
  };
  const falling = Array.from({ length: 150 }, (_, row) => 150 - row);
  const same = (value: number) => falling.map(() => value);

  add(same(6), same(3), falling, falling);
  add([6, 6, 6], [0, 3, 9], [0, 500, 0], [-1, -2, -3]);

  for (const step of top.finish()) void step;
  assert.deepEqual(top.rows(), ['[-3]', '[-2]', '[150]', '[149]']);
});
