import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DataError } from '../../../src/base/assert.ts';
import {
  decodeLogObject,
  encodeLogObject,
  type LogRecord,
  type RecordHead,
} from '../../../src/stored/log-object.ts';
import { goldenBytes } from '../../support/golden.ts';
import { seededRandom } from '../../support/segments.ts';

const header = {
  logId: '0lrj4k2a9'.padEnd(30, '7'),
  slot: 2 ** 40 + 3,
  kind: 'group',
  placement: 12,
  previousChecksum: 0xfedcba9876543210n,
  batchId: '00112233445566778899aabbccddeeff',
} as const;

function head(version: number, blob: RecordHead['blob'] = null): RecordHead {
  return {
    tenantId: 2 ** 47,
    namespace: 'notes',
    namespaceId: 'ab'.repeat(16),
    version,
    blob,
    detail: [9, 1.7e15],
  };
}

const records: LogRecord[] = [
  {
    head: { ...head(1), namespace: '', namespaceId: '', detail: null },
    payload: Buffer.from('a tenant event'),
  },
  { head: head(2), payload: new Uint8Array() },
  {
    head: head(3, { id: 'cd'.repeat(16), length: 5_000_000, checksum: 2n ** 64n - 1n }),
    payload: new Uint8Array(),
  },
  { head: head(4), payload: Uint8Array.from({ length: 300 }, (_, i) => i) },
];

const plain = (record: LogRecord) => ({ head: record.head, payload: [...record.payload] });

test('a log object comes back as it went in', () => {
  for (const kind of ['group', 'seal', 'barrier'] as const) {
    const some = kind === 'group' ? records : [];
    const { bytes, checksum } = encodeLogObject({ ...header, kind }, some);

    const read = decodeLogObject(bytes, 'here');

    assert.deepEqual({ ...read, records: [] }, { ...header, kind, checksum, records: [] });
    assert.deepEqual(read.records.map(plain), some.map(plain));
  }
});

test('a payload in shared memory is stored as any other', () => {
  const shared = Buffer.from(new SharedArrayBuffer(4));
  shared.write('tide');

  const { bytes } = encodeLogObject(header, [{ head: head(1), payload: shared }]);

  assert.equal(Buffer.from(decodeLogObject(bytes, 'here').records[0]?.payload ?? []).toString(), 'tide');
  assert.equal(bytes.buffer instanceof SharedArrayBuffer, false);
});

test('a change of any bit of a log object is found', () => {
  const { bytes } = encodeLogObject(header, records);

  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [1, 128]) {
      const spoilt = Buffer.from(bytes);
      spoilt[at] = (spoilt[at] ?? 0) ^ bit;
      assert.throws(() => decodeLogObject(spoilt, 'log/x/1'), DataError, `byte ${at} bit ${bit}`);
    }
  }
});

test('a log object that was cut, lengthened or is something else is refused as damage', () => {
  const { bytes } = encodeLogObject(header, records);
  const random = seededRandom(5);
  const noise = Uint8Array.from({ length: 500 }, () => Math.floor(random() * 256));

  for (let length = 0; length < bytes.length; length += 7)
    assert.throws(() => decodeLogObject(bytes.subarray(0, length), 'log/x/1'), DataError);
  assert.throws(() => decodeLogObject(Buffer.concat([bytes, Buffer.from([0])]), 'log/x/1'), DataError);
  assert.throws(() => decodeLogObject(noise, 'log/x/1'), DataError);
});

test('the bytes of a log object are those of the golden file', () => {
  const { bytes } = encodeLogObject(header, records);

  const golden = goldenBytes('log-group-v1.bin', bytes);

  assert.deepEqual(Buffer.from(bytes), golden);
  assert.deepEqual(decodeLogObject(golden, 'golden').records.map(plain), records.map(plain));
});
