import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { textFilesBelow } from './corpus.ts';

/**
 * Bodies of write requests with documents of real text, made once and used again and again with other numbers in them:
 * what the load generator costs comes off the server's two cores. The number stands in the id and in the text, both of
 * a fixed width, so each document that is sent is one of its own.
 */
export const textBytes = 1_000;
const numberDigits = 12;
/** The bytes of a document as it counts: its id and its text. */
export const textDocumentBytes = 1 + numberDigits + textBytes;

export interface TextBatch {
  readonly body: Buffer;
  readonly documents: number;
  /** Where the numbers stand in the body: of each document, in its id and in its text. */
  readonly places: Uint32Array;
}

export function textDocumentId(number: number): string {
  return `d${String(number).padStart(numberDigits, '0')}`;
}

/** Real text of node_modules in pieces that differ; the same ones for the same folder. */
export function textBatches(count: number, documents: number): TextBatch[] {
  const pieces = piecesOf(resolve('node_modules'), count * documents);
  return Array.from({ length: count }, (_, i) => batchOf(pieces.slice(i * documents, (i + 1) * documents)));
}

/** Gives the documents of a batch the numbers from `first` on. */
export function numberBatch({ body, documents, places }: TextBatch, first: number): void {
  for (let i = 0; i < documents; i++) {
    const digits = String(first + i).padStart(numberDigits, '0');
    body.write(digits, places[i * 2] ?? 0, 'latin1');
    body.write(digits, places[i * 2 + 1] ?? 0, 'latin1');
  }
}

function batchOf(pieces: readonly string[]): TextBatch {
  const places = new Uint32Array(pieces.length * 2);
  const parts: Buffer[] = [Buffer.from('{"docs":[')];
  let at = parts[0]?.length ?? 0;
  const digits = '0'.repeat(numberDigits);
  pieces.forEach((piece, i) => {
    const head = Buffer.from(`${i === 0 ? '' : ','}{"id":"d${digits}","text":"`);
    const rest = Buffer.from(`${digits}${JSON.stringify(piece).slice(1)}}`);
    places[i * 2] = at + head.indexOf(digits);
    places[i * 2 + 1] = at + head.length;
    parts.push(head, rest);
    at += head.length + rest.length;
  });
  parts.push(Buffer.from(']}'));
  return { body: Buffer.concat(parts), documents: pieces.length, places };
}

/** Pieces of text that make documents of `textBytes` with the number before them. */
function piecesOf(folder: string, count: number): string[] {
  const pieces: string[] = [];
  const pieceBytes = textBytes - numberDigits;
  for (const path of textFilesBelow(folder)) {
    const bytes = readFileSync(join(folder, path));
    if (!isUtf8(bytes)) continue;
    for (let at = 0; at + pieceBytes <= bytes.length; at += pieceBytes) {
      if (pieces.length === count) return pieces;
      // ASCII alone can be cut anywhere, and its length in bytes is that of the string.
      const piece = bytes.toString('latin1', at, at + pieceBytes);
      if (/^[\t\n\r\x20-\x7e]*$/.test(piece)) pieces.push(piece);
    }
  }
  throw new Error(`${folder} holds only ${pieces.length} pieces of text, ${count} are wanted`);
}
