import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FileRanges } from '../../../actors/import/file-ranges.ts';
import { batchBytes, type RowSink } from '../../../actors/import/row-sink.ts';
import { RowWriter } from '../../../actors/import/row-writer.ts';
import { ApiError } from '../../../protocol/errors.ts';

test('rows that make more documents than an import may have end it, as soon as they do', async () => {
  let bytes = 0;
  const sink: RowSink = {
    range: async () => {},
    batchBuffer: (least) => new ArrayBuffer(Math.max(least, batchBytes)),
    rows: async ({ buffer }) => {
      bytes += buffer.length;
    },
    chunk: async () => {},
  };
  const bytesMax = 10_000_000;
  const writer = new RowWriter([], sink, { bytesMax, ranges: new FileRanges() });
  const text = Buffer.alloc(100_000, 'x');

  const written = (async () => {
    for (;;) {
      if (writer.needsRoom(text.length)) await writer.handOver(text.length);
      writer.beginRow();
      writer.idByNumber();
      writer.addText(text, 0, text.length);
      writer.beginMeta();
      writer.endRow();
    }
  })();

  await assert.rejects(written, (error) => error instanceof ApiError && error.status === 413);
  assert.ok(bytes > bytesMax / 2 && bytes <= bytesMax, `${bytes} bytes`);
});
