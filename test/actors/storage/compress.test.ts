import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  blockRawBytesMax,
  codecs,
  compressBlock,
  DecompressError,
  decompressBlock,
} from '../../../actors/storage/compress.ts';
import { BlockOwner, blockKinds, encodeBlock } from '../../../actors/storage/segment-format.ts';

test('what was compressed comes back, whatever its length', () => {
  for (const length of [0, 1, 2, 100, 4096, 131_072, 3_000_000]) {
    const raw = Buffer.alloc(length, 'tide ');

    const { codec, bytes } = compressBlock(raw);

    assert.deepEqual(decompressBlock(codec, bytes, length), raw);
  }
});

test('bytes that do not get smaller are kept as they are', () => {
  const raw = randomBytes(1000);

  const { codec, bytes } = compressBlock(raw);

  assert.equal(codec, codecs.none);
  assert.deepEqual(Buffer.from(bytes), raw);
});

test('a stored block is its own memory, untouched by the next one', () => {
  const owner = new BlockOwner('some/object');
  const encoded = (text: string) =>
    encodeBlock(blockKinds.documents, Buffer.alloc(5000, text), { compress: true, owner, offset: 0 });
  const first = encoded('a');
  const copy = Buffer.from(first);

  encoded('bcd');

  assert.deepEqual(first, copy);
});

test('another length than promised is refused, larger or smaller', () => {
  const { codec, bytes } = compressBlock(Buffer.alloc(5000, 'a'));

  for (const rawLength of [0, 4999, 5001, 6000]) {
    assert.throws(() => decompressBlock(codec, bytes, rawLength), DecompressError);
  }
});

test('a promise beyond the largest block is refused before anything is allocated', () => {
  const { bytes } = compressBlock(Buffer.alloc(5000, 'a'));

  assert.throws(() => decompressBlock(codecs.zstd, bytes, blockRawBytesMax + 1), DecompressError);
  assert.throws(() => decompressBlock(codecs.zstd, bytes, 0xffff_ffff), DecompressError);
});

test('bytes that are not compressed, and codecs that do not exist, are refused', () => {
  assert.throws(() => decompressBlock(codecs.zstd, randomBytes(100), 1000), DecompressError);
  assert.throws(() => decompressBlock(codecs.none, randomBytes(100), 1000), DecompressError);
  assert.throws(() => decompressBlock(2, randomBytes(100), 100), DecompressError);
});

test('decompressed blocks begin at a multiple of eight bytes, for typed arrays over them', () => {
  const { codec, bytes } = compressBlock(Buffer.alloc(64, 'x'));

  assert.equal(decompressBlock(codec, bytes, 64).byteOffset % 8, 0);
});
