import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byteStreamSplit, readRleBitPackedHybrid } from 'hyparquet/src/encoding.js';
import { readRuns, readValues } from '../../../../actors/import/parquet/encoding.ts';
import type { SchemaElement } from '../../../../actors/import/parquet/metadata.ts';
import { ParquetError } from '../../../../actors/import/parquet/parquet-error.ts';
import { seededBytes } from '../../../support/in-process.ts';

const viewOf = (bytes: Buffer) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

test('values in streams of bytes are what hyparquet reads', () => {
  const count = 100;
  for (const [type, length] of [
    ['INT32', undefined],
    ['INT64', undefined],
    ['FLOAT', undefined],
    ['DOUBLE', undefined],
    ['FIXED_LEN_BYTE_ARRAY', 3],
  ] as const) {
    const bytes = Buffer.from(seededBytes(7).bytes(count * 8));
    const element = { name: 'v', type, type_length: length } as SchemaElement;

    const ours = readValues(bytes, 0, { element, encoding: 'BYTE_STREAM_SPLIT', count });

    const theirs = byteStreamSplit({ view: viewOf(bytes), offset: 0 }, count, type, length);
    const values =
      ours.kind === 'bytes'
        ? [...ours.starts].map((start, at) => ours.source.subarray(start, ours.ends[at]).toString('hex'))
        : [...ours.values];
    const expected = [...theirs].map((value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    );
    assert.deepEqual(values, expected, type);
  }
});

test('runs and packed numbers are what hyparquet reads, and a run never makes more than was asked for', () => {
  // Eight packed numbers of 3 bits, then a run of a million fives.
  const bytes = Buffer.from([0x03, 0x88, 0xc6, 0xfa, 0x80, 0x89, 0x7a, 0x05]);

  const numbers = readRuns(bytes, 3, 20);

  const theirs: number[] = new Array(20);
  readRleBitPackedHybrid({ view: viewOf(bytes), offset: 0 }, 3, theirs, bytes.length);
  assert.deepEqual([...numbers], theirs.slice(0, 20));
  assert.deepEqual([...numbers], [0, 1, 2, 3, 4, 5, 6, 7, ...new Array(12).fill(5)]);
  // The reason why its decoders are not used: the run is as long as the file says, whoever asked for how many.
  assert.equal(theirs.length, 8 + 1_000_000);
});

test('an encoding that a column of that type cannot have is named', () => {
  const refused = (type: string, encoding: string) => () =>
    readValues(Buffer.alloc(64), 0, { element: { name: 'v', type } as SchemaElement, encoding, count: 1 });

  assert.throws(refused('INT32', 'RLE'), /a column of INT32 can't have the encoding RLE/);
  assert.throws(refused('BYTE_ARRAY', 'BYTE_STREAM_SPLIT'), /BYTE_ARRAY can't have/);
  assert.throws(refused('DOUBLE', 'DELTA_BINARY_PACKED'), /DOUBLE is written as differences/);
  assert.throws(refused('INT32', 'ZIGZAG'), /the encoding ZIGZAG, which is not known/);
  assert.throws(refused('INT32', 'PLAIN_DICTIONARY'), ParquetError);
});
