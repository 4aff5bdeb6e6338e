/**
 * Part of a document, for readers with little room: some lines of its text, as many as a budget of bytes has room for.
 *
 * 1. The range of lines that was asked for is found; without one it is the whole text.
 * 2. What the answer holds beside text and vector is taken from the budget.
 * 3. The text takes what it needs of the rest, and is cut behind the last line that fits. A line that alone is too long is cut
 *    within itself, so that an answer always shows something.
 * 4. The vector comes where the text was not cut and it still fits: nobody reads its numbers.
 *
 * A document that fits whole is answered as if there was no budget, byte for byte.
 */
import { type LineRange, parseLines } from '../../protocol/document.ts';
import { invalidField } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { figuresJson, formatMicros, type QueryFigures, rawMetaOf, vectorField } from '../search/answers.ts';
import { documentId, documentText, documentVector } from '../storage/document-batch.ts';
import { cutBack } from '../text/snippet.ts';
import { documentBytes, type LiveDocument } from './read-document.ts';

export interface AskedPart {
  /** The lines as the request has them: `120-180`, `120-` or `120`. Undefined: all lines. */
  readonly lines: string | undefined;
  /** Lines at most. */
  readonly linesMax: number;
  /** What the whole answer may take. */
  readonly bytesMax: number;
}

/** Bytes of the names and numbers that tell which part it is. */
const partFieldsBytes = 100;
/** However little a budget leaves for the text, so much of it is answered. */
const textBytesMin = 256;

/** The answer of a read of a part, as bytes. Throws 422 where the text does not have the first line that was asked for. */
export function documentPartBytes(place: LiveDocument, figures: QueryFigures, asked: AskedPart): Buffer {
  const { buffer, offset } = place;
  const text = documentText(buffer, offset) ?? noText;
  const range = asked.lines === undefined ? null : parseLines(asked.lines);
  const { first, last: lastAsked } = range ?? everyLine;
  const found = findLines(text, { first, last: Math.min(lastAsked, first + asked.linesMax - 1) });
  const head = `{"id":${JSON.stringify(documentId(buffer, offset))},"text":`;
  const tail = `"meta":${rawMetaOf(buffer, offset)}`;
  const end = `,"written_at":"${formatMicros(place.writtenAt)}",${figuresJson(figures)}}`;
  const besidesBytes = Buffer.byteLength(head) + Buffer.byteLength(tail) + end.length + partFieldsBytes;
  const bytesLeft = Math.max(textBytesMin, Math.min(asked.bytesMax, limits.answerBytesMax) - besidesBytes);
  const cut = cutToFit(text, found, bytesLeft);
  const vector = vectorField(documentVector(buffer, offset));
  const isVectorShown = cut.end === found.end && vector.length <= bytesLeft - cut.jsonBytes;
  const isTextWhole = cut.start === 0 && cut.end === text.length;
  if (range === null && isTextWhole && isVectorShown) return documentBytes(place, figures);
  const isLimited = found.end < text.length && lastAsked - first >= asked.linesMax;
  const isCut = cut.end < found.end || isLimited || !isVectorShown;
  const last = found.first + countFeeds(text, cut.start, Math.max(cut.start, cut.end - 1));
  const lines = `"lines":"${found.first}-${last}","total_lines":${found.total},`;
  return Buffer.from(
    `${head}${JSON.stringify(text.toString('utf8', cut.start, cut.end))},` +
      `${isTextWhole && range === null ? '' : lines}${isCut ? '"truncated":true,' : ''}` +
      `${tail}${isVectorShown ? vector : ''}${end}`,
  );
}

const noText = Buffer.alloc(0);
const everyLine: LineRange = { first: 1, last: Number.POSITIVE_INFINITY };
const lineFeed = 0x0a;

interface FoundLines {
  readonly first: number;
  /** Byte offsets in the text; the last line's feed is among them. */
  readonly start: number;
  readonly end: number;
  /** How many lines the whole text has; an empty one has one. */
  readonly total: number;
}

function findLines(text: Buffer, { first, last }: LineRange): FoundLines {
  let start = first === 1 ? 0 : -1;
  let end = text.length;
  let total = 1;
  for (let feed = text.indexOf(lineFeed); feed >= 0; feed = text.indexOf(lineFeed, feed + 1)) {
    if (total === last) end = feed + 1;
    if (feed + 1 === text.length) break;
    total++;
    if (total === first) start = feed + 1;
  }
  if (start < 0) {
    const problem = `the text has ${total} ${total === 1 ? 'line' : 'lines'}: it can begin at 1 to ${total}`;
    throw invalidField('lines', problem);
  }
  return { first, start, end, total };
}

/** What JSON makes of each byte of a string: 2 for a short escape, 6 for a long one, else the byte itself. */
const jsonBytesOf = new Uint8Array(256).fill(1).fill(6, 0, 0x20);
for (const character of '"\\\b\f\n\r\t') jsonBytesOf[character.charCodeAt(0)] = 2;

interface CutText {
  readonly start: number;
  readonly end: number;
  /** What the string takes as JSON, its quotes included. */
  readonly jsonBytes: number;
}

/** Hot for large texts: it looks at each byte that is answered, and at none behind them. */
function cutToFit(text: Buffer, { start, end }: FoundLines, bytesMax: number): CutText {
  const quotes = 2;
  let jsonBytes = quotes;
  let lineEnd = start;
  let lineBytes = quotes;
  for (let at = start; at < end; at++) {
    const byte = text[at] as number;
    const bytes = jsonBytesOf[byte] as number;
    if (jsonBytes + bytes > bytesMax) {
      if (lineEnd > start) return { start, end: lineEnd, jsonBytes: lineBytes };
      return { start, end: cutBack(text, start, at), jsonBytes };
    }
    jsonBytes += bytes;
    if (byte !== lineFeed) continue;
    lineEnd = at + 1;
    lineBytes = jsonBytes;
  }
  return { start, end, jsonBytes };
}

function countFeeds(text: Buffer, from: number, to: number): number {
  let feeds = 0;
  for (let at = text.indexOf(lineFeed, from); at >= 0 && at < to; at = text.indexOf(lineFeed, at + 1))
    feeds++;
  return feeds;
}
