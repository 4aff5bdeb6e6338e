import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DataError } from '../../../src/base/assert.ts';
import { decodeRecord, encodeRecord } from '../../../src/base/record.ts';

const value = {
  id: 2 ** 48 - 1,
  name: 'Zoë',
  tags: ['a', null, true],
  big: 2n ** 63n - 1n,
  nested: { n: -1.5 },
};

const format = (version: number, magic = 'TEST') =>
  ({ magic, versions: [version], check: (found: unknown) => found }) as const;

test('a record reads back as it was written', () => {
  const read = decodeRecord(encodeRecord(format(3), value), 'place', format(3));

  assert.deepEqual(read, value);
});

test('records written one after the other do not change each other', () => {
  const first = encodeRecord(format(1), { text: 'first' });
  const copy = Buffer.from(first);

  for (let i = 0; i < 1_000; i++) encodeRecord(format(1), { text: `other ${i}` });

  assert.deepEqual(Buffer.from(first), copy);
});

test('any flipped bit and any missing end is found as damage', () => {
  const record = encodeRecord(format(1), value);
  fc.assert(
    fc.property(fc.nat(record.length * 8 - 1), (bit) => {
      const damaged = Buffer.from(record);
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      assert.throws(() => decodeRecord(damaged, 'place', format(1)), DataError);
    }),
  );
  for (let length = 0; length < record.length; length++) {
    assert.throws(() => decodeRecord(record.subarray(0, length), 'place', format(1)), DataError);
  }
});

test('a record of another kind or of another format version is refused by name', () => {
  const record = encodeRecord(format(2), value);

  assert.throws(() => decodeRecord(record, 'place', format(2, 'ELSE')), /place at byte 0: not a ELSE record/);
  assert.throws(() => decodeRecord(record, 'place', format(1)), /format version 2, this server reads 1/);
});

test('a record decodes from the middle of a larger buffer', () => {
  const record = encodeRecord(format(1), value);
  const larger = Buffer.concat([Buffer.alloc(7, 1), record, Buffer.alloc(5, 2)]);

  assert.deepEqual(decodeRecord(larger.subarray(7, 7 + record.length), 'place', format(1)), value);
});

test('a record that is bound to its place reads nowhere else', () => {
  const record = encodeRecord(format(1), value, 'tenant/a');

  assert.deepEqual(decodeRecord(record, 'tenant/a', format(1)), value);
  assert.throws(() => decodeRecord(record, 'tenant/b', format(1)), /tenant\/b at byte 8: the checksum/);
  const unbound = Buffer.from(record);
  unbound[6] = 0;
  assert.throws(() => decodeRecord(unbound, 'tenant/a', format(1)), DataError);
});

test('a value that its format refuses is damage, with what is wrong', () => {
  const record = encodeRecord(format(1), { rows: 'three' });
  const check = () => {
    throw new Error('rows: must be a number');
  };

  assert.throws(() => decodeRecord(record, 'place', { ...format(1), check }), {
    name: 'DataError',
    message: /place at byte 16: not what its format has: rows: must be a number/,
  });
});

test('an older version is read too, and the check is told which it is', () => {
  const record = encodeRecord({ magic: 'TEST', versions: [3] }, value);
  const check = (_: unknown, version: number) => version;

  assert.equal(decodeRecord(record, 'place', { magic: 'TEST', versions: [4, 3], check }), 3);
});
