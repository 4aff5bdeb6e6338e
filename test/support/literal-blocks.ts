/** Blocks of documents in which literals are looked for. */
import { DocumentBlock, DocumentBlockBuilder } from '../../actors/storage/document-block.ts';
import { entryOf } from './segments.ts';

/** Few, so that matches lie everywhere, and reach from an id into a text and from a text into what follows it. */
const letters = ['a', 'A', 'b', 'k', '\u212a', 's', 'ſ', 'é'];

export function randomLetters(random: () => number, lengthMax: number): string {
  const length = Math.floor(random() * (lengthMax + 1));
  return Array.from({ length }, () => letters[Math.floor(random() ** 2 * letters.length)]).join('');
}

/** A block of up to 40 rows, and their texts. */
export function randomBlock(random: () => number, firstRow: number) {
  const builder = new DocumentBlockBuilder();
  const texts: (string | null)[] = [];
  const count = 1 + Math.floor(random() * 40);
  for (let row = 0; row < count; row++) {
    // A long one keeps what lies on either side apart.
    const long = random() < 0.02 ? 'x'.repeat(17 * 1024) : '';
    const text = random() < 0.1 ? null : long + randomLetters(random, 12);
    // Bytes of a vector that are letters, too.
    const bytes = Buffer.from('aabbaAaa');
    const vector = random() < 0.4 ? Float32Array.from([bytes.readFloatLE(0), bytes.readFloatLE(4)]) : null;
    const meta = random() < 0.4 ? Buffer.from(randomLetters(random, 6)) : null;
    const id = `${randomLetters(random, 3)}b`;
    const entry = entryOf({ id, text: text === null ? null : Buffer.from(text), meta, vector });
    builder.add(row, row, entry, 0, entry.length);
    texts.push(text);
  }
  const raw = builder.build(firstRow);
  const aligned = Buffer.from(new SharedArrayBuffer(raw.length));
  raw.copy(aligned);
  return { block: new DocumentBlock(aligned, 'x', 0), texts };
}
