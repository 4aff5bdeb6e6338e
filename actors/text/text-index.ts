/** The section `text` of a segment: the trigram index of its documents' texts, written beside the rows and opened once. */
import { DataError } from '../../src/base/assert.ts';
import { OpenedOnce } from '../../src/base/single-flight.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import { documentTextLength, documentTextStart } from '../storage/document-batch.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import type { RowIndexWriter } from '../storage/segment-writer.ts';
import { TrigramIndexReader } from './trigram-index-reader.ts';
import { TrigramIndexWriter } from './trigram-index-writer.ts';

const section = 'text';

export function textIndexWriter(): RowIndexWriter {
  const writer = new TrigramIndexWriter();
  return {
    section,
    add(buffer, offset) {
      const start = documentTextStart(buffer, offset);
      writer.add(buffer, start, start + documentTextLength(buffer, offset));
    },
    get isFull() {
      return writer.isSpanFull;
    },
    writePart: (append) => writer.writeSpan(append),
    finish: (append) => writer.finish(append),
  };
}

/** They go with their segment's reader. */
const indexes = new OpenedOnce<SegmentReader, TrigramIndexReader>();

/** The index as far as it was opened before. */
export function textIndexAtHand(reader: SegmentReader): TrigramIndexReader | null {
  return indexes.atHand(reader);
}

/** One GET the first time, which may run beside other first reads. */
export function openTextIndex(reader: SegmentReader, tally: ReadTally): Promise<TrigramIndexReader> {
  return indexes.open(reader, async () => {
    const { root } = reader.section(section);
    if (root === null) throw new DataError(reader.objectKey, 0, 'a text index without a root');
    return TrigramIndexReader.open(root, reader.blocks, tally);
  });
}
