import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BatchBuilder,
  type DocumentParts,
  documentEntryLength,
  documentHeadBytes,
  documentId,
  documentIdBytes,
  documentMeta,
  documentText,
  documentTextLength,
  documentVector,
  encodeDocument,
  encodedDocumentLength,
  readBatch,
} from '../../../actors/storage/document-batch.ts';
import { DataError } from '../../../src/base/assert.ts';

const documents: readonly DocumentParts[] = [
  { id: 'a', text: Buffer.from('hello'), meta: Buffer.from('{"k":1}'), vector: null },
  { id: 'ключ/😀', text: Buffer.from(''), meta: null, vector: Float32Array.of(1.5, -2, 3) },
  { id: 'no text', text: null, meta: Buffer.from('{}'), vector: Float32Array.of(0.25) },
];

function sampleBatch(): Buffer {
  const builder = new BatchBuilder({ bytesExpected: 0 });
  for (const document of documents) builder.addDocument(document);
  builder.addDelete('gone');
  builder.addDelete('тоже');
  return builder.finish();
}

function partsAt(batch: Buffer, offset: number): DocumentParts {
  return {
    id: documentId(batch, offset),
    text: documentText(batch, offset),
    meta: documentMeta(batch, offset),
    vector: documentVector(batch, offset),
  };
}

test('a batch reads back what was added, in order', () => {
  const batch = sampleBatch();

  const read = readBatch(batch);

  assert.equal(read.documentCount, 3);
  assert.deepEqual(read.deletes, ['gone', 'тоже']);
  assert.equal(read.bytes, batch.length);
  assert.deepEqual(
    Array.from(read.documentOffsets, (offset) => {
      const parts = partsAt(batch, offset);
      return { ...parts, text: parts.text?.toString() ?? null, meta: parts.meta?.toString() ?? null };
    }),
    documents.map((parts) => ({
      ...parts,
      text: parts.text?.toString() ?? null,
      meta: parts.meta?.toString() ?? null,
    })),
  );
});

test('a batch lies in shared memory and its text is a view of it', () => {
  const batch = sampleBatch();
  const [offset] = readBatch(batch).documentOffsets;

  assert.ok(batch.buffer instanceof SharedArrayBuffer);
  assert.equal(documentText(batch, offset ?? 0)?.buffer, batch.buffer);
  assert.equal(documentIdBytes(batch, offset ?? 0).toString('latin1'), 'a');
  assert.equal(documentTextLength(batch, offset ?? 0), 5);
});

test('the bytes of a batch are these', () => {
  const builder = new BatchBuilder();
  builder.addDocument({
    id: 'a',
    text: Buffer.from('hé'),
    meta: Buffer.from('{}'),
    vector: Float32Array.of(1),
  });
  builder.addDelete('b');

  assert.equal(
    builder.finish().toString('hex'),
    [
      ...['54425742', '0100', '0000', '01000000', '01000000', '1a000000'],
      ...['1a000000', '0100', '0100', '03000000', '02000000', '61', '68c3a9', '7b7d', '0000803f'],
      ...['0100', '62'],
    ].join(''),
  );
});

test('an entry is encoded at any offset and copied from batch to batch as it is', () => {
  const [first] = documents;
  assert.ok(first !== undefined);
  const target = Buffer.alloc(encodedDocumentLength(first) + 3);
  const length = encodeDocument(first, target, 3);
  assert.equal(length, documentHeadBytes + 1 + 5 + 7);
  assert.equal(documentEntryLength(target, 3), length);

  const builder = new BatchBuilder();
  builder.addEntry(target, 3);
  const batch = builder.finish();

  assert.ok(batch.subarray(readBatch(batch).documentOffsets[0]).equals(target.subarray(3)));
});

test('a batch may be followed by other bytes, and says where it ends', () => {
  const batch = sampleBatch();

  assert.equal(readBatch(Buffer.concat([batch, Buffer.from('more')])).bytes, batch.length);
});

test('a batch that was cut anywhere is refused as damaged', () => {
  const batch = sampleBatch();
  for (let length = 0; length < batch.length; length++) {
    assert.throws(() => readBatch(batch.subarray(0, length)), DataError, `cut at ${length}`);
  }
});

test('a batch with any byte changed is refused as damaged or reads within its bounds', () => {
  const batch = sampleBatch();
  for (let at = 0; at < batch.length; at++) {
    for (const value of [0, 1, 0x7f, 0xff]) {
      const changed = Buffer.from(batch);
      changed[at] = value;
      try {
        const read = readBatch(changed);
        for (const offset of read.documentOffsets) partsAt(changed, offset);
        assert.ok(read.bytes <= changed.length);
      } catch (error) {
        assert.ok(error instanceof DataError, `byte ${at} = ${value}: ${error}`);
      }
    }
  }
});

test('a head that promises four thousand million documents costs no memory', () => {
  const batch = sampleBatch();
  batch.writeUInt32LE(0xffffffff, 8);

  assert.throws(() => readBatch(batch), /4294967295 documents do not fit/);
});
