import assert from 'node:assert/strict';
import type { FileHandle } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { FileRanges } from '../../../../actors/import/file-ranges.ts';
import { unpackLz4, unpackLz4Block } from '../../../../actors/import/parquet/lz4.ts';
import type { ColumnMetaData, SchemaElement } from '../../../../actors/import/parquet/metadata.ts';
import { ColumnPages, UnpackedBytes } from '../../../../actors/import/parquet/pages.ts';
import { ParquetError } from '../../../../actors/import/parquet/parquet-error.ts';

/** A page with one integer, as Thrift's compact protocol has its header. */
function page(value: number): Buffer {
  const zigzag = (number: number) => number * 2;
  const header = [
    0x15,
    0,
    0x15,
    zigzag(4),
    0x15,
    zigzag(4),
    0x2c,
    0x15,
    zigzag(1),
    0x15,
    0,
    0x15,
    6,
    0x15,
    6,
    0,
    0,
  ];
  const values = Buffer.alloc(4);
  values.writeInt32LE(value);
  return Buffer.concat([Buffer.from(header), values]);
}

test('small pages that stand together are read together', async () => {
  const count = 20_000;
  const bytes = Buffer.concat([Buffer.from('PAR1'), ...Array.from({ length: count }, (_, at) => page(at))]);
  let reads = 0;
  const file = {
    read: async (into: Buffer, at: number, length: number, position: number) => {
      reads++;
      // A file system may give less than it was asked for.
      const most = Math.max(1, length - (reads % 3));
      return { bytesRead: bytes.copy(into, at, position, Math.min(bytes.length, position + most)) };
    },
  } as unknown as FileHandle;
  const metadata = {
    codec: 'UNCOMPRESSED',
    num_values: BigInt(count),
    data_page_offset: 4n,
    total_compressed_size: BigInt(bytes.length - 4),
  } as unknown as ColumnMetaData;
  const element = { type: 'INT32', name: 'n' } as SchemaElement;
  const shape = { element, repetitionMax: 0, definitionMax: 0, hasLevels: false, rowCount: count };
  const pages = new ColumnPages(
    { file, size: bytes.length, unpacked: new UnpackedBytes(new FileRanges()) },
    metadata,
    shape,
  );

  const found: number[] = [];
  for (let held = await pages.next(); held !== null; held = await pages.next()) {
    if (held.page.values.kind === 'numbers') found.push(...held.page.values.values);
    pages.giveBack(held);
  }

  assert.deepEqual(
    found,
    Array.from({ length: count }, (_, at) => at),
  );
  assert.ok(reads < 40, `${reads} reads of ${bytes.length} bytes`);
});

test('a page with more values than its row group has rows is refused before they are made', async () => {
  const bytes = Buffer.concat([Buffer.from('PAR1'), page(1), page(2)]);
  const file = {
    read: async (into: Buffer, at: number, length: number, position: number) => ({
      bytesRead: bytes.copy(into, at, position, position + length),
    }),
  } as unknown as FileHandle;
  const metadata = {
    codec: 'UNCOMPRESSED',
    num_values: 1_000_000_000n,
    data_page_offset: 4n,
    total_compressed_size: BigInt(bytes.length - 4),
  } as unknown as ColumnMetaData;
  // The count of the first page: thirty million, as a varint.
  const many = Buffer.from([0x80, 0x87, 0xa7, 0x0e]);
  const wide = Buffer.concat([bytes.subarray(0, 12), many, bytes.subarray(13)]);
  for (const [content, rowCount, fits] of [
    [bytes, 1, true],
    [wide, 1, false],
  ] as const) {
    const shape = {
      element: { type: 'INT32', name: 'n' } as SchemaElement,
      repetitionMax: 0,
      definitionMax: 0,
      hasLevels: false,
      rowCount,
    };
    content.copy(bytes);
    const pages = new ColumnPages(
      { file, size: bytes.length, unpacked: new UnpackedBytes(new FileRanges()) },
      metadata,
      shape,
    );
    if (fits) assert.equal((await pages.next())?.page.rows, 1);
    else await assert.rejects(pages.next(), /more values than it says/u);
  }
});

describe('a block of LZ4', () => {
  /** `abcabcabcabc!`: three literals, a match of nine bytes that overlaps itself, one literal. */
  const block = Buffer.from([0x35, 0x61, 0x62, 0x63, 3, 0, 0x10, 0x21]);
  const text = 'abcabcabcabc!';
  const framed = Buffer.concat([Buffer.from([0, 0, 0, text.length, 0, 0, 0, block.length]), block]);

  test('is read, in frames or alone', () => {
    assert.equal(Buffer.from(unpackLz4Block(block, text.length)).toString(), text);
    assert.equal(Buffer.from(unpackLz4(block, text.length)).toString(), text);
    const twice = Buffer.concat([framed, framed]);
    assert.equal(Buffer.from(unpackLz4(twice, text.length * 2)).toString(), text + text);
  });

  test('is refused where it makes more or less, is cut, or refers to what is not there', () => {
    for (const [bytes, length] of [
      [block, text.length + 1],
      [block, text.length - 1],
      [block.subarray(0, 5), text.length],
      [Buffer.from([0x35, 0x61, 0x62, 0x63, 4, 0, 0x10, 0x21]), text.length],
      [Buffer.from([0x35, 0x61, 0x62, 0x63, 0, 0, 0x10, 0x21]), text.length],
      [Buffer.from([0xf0, 255, 255, 255]), text.length],
      [Buffer.alloc(0), text.length],
    ] as const)
      for (const unpacked of [unpackLz4Block, unpackLz4])
        assert.throws(() => unpacked(bytes, length), ParquetError, bytes.toString('hex'));
  });
});
