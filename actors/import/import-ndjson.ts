import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import {
  anotherFollows,
  code,
  decodeString,
  type JsonScan,
  JsonSyntaxError,
  nextByte,
  openScan,
  scanKey,
  skipValue,
} from '../../src/base/json-scanner.ts';
import { FileWindow } from './file-window.ts';
import type { ImportedRows, ImportRequest } from './import-csv.ts';
import { quoted, wrongFile, wrongRow, wrongValue } from './import-error.ts';
import { type RowSink, RowWriter } from './row-writer.ts';

/** A file with a JSON object a line → rows: each object is its document's meta as it is, so that null stays null. */
export async function importNdjson(request: ImportRequest, sink: RowSink): Promise<ImportedRows> {
  const window = new FileWindow(request.file, request.size);
  const writer = new RowWriter([], sink);
  const rows = new ObjectRows(request, writer);
  for (;;) {
    const { bytes, position } = window;
    const feed = bytes.subarray(0, window.end).indexOf(0x0a, position);
    if (feed < 0 && !window.isLast) {
      if (window.end - position > limits.importRowBytesMax) throw tooLong(writer.row);
      await window.fill();
      continue;
    }
    const end = feed < 0 ? window.end : feed;
    if (end - position > limits.importRowBytesMax) throw tooLong(writer.row);
    window.position = Math.min(end + 1, window.end);
    const [start, last] = trimmed(bytes, position, end);
    if (start < last) {
      if (writer.needsRoom(last - start)) await writer.handOver(last - start);
      rows.add(bytes, start, last);
    }
    if (feed < 0) break;
  }
  await writer.end();
  if (writer.rowCount === 0) throw wrongFile('it has no rows');
  return { rowCount: writer.rowCount, temporalKeys: [], textKeys: [] };
}

function tooLong(row: number) {
  return wrongRow(row, `its line is longer than ${limits.importRowBytesMax} bytes`);
}

function trimmed(bytes: Buffer, from: number, to: number): readonly [number, number] {
  let [start, end] = [from, to];
  while (start < end && isSpace(bytes[start] as number)) start++;
  while (end > start && isSpace(bytes[end - 1] as number)) end--;
  return [start, end];
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}

/** A value of the object, as it is written. */
interface Range {
  readonly start: number;
  readonly end: number;
}

class ObjectRows {
  readonly #writer: RowWriter;
  readonly #id: string | null;
  readonly #text: readonly string[];
  readonly #wanted: readonly { readonly name: string; readonly bytes: Buffer }[];
  #scan: JsonScan = openScan(Buffer.alloc(0));
  #scanned: Buffer | null = null;

  constructor({ id, text }: ImportRequest, writer: RowWriter) {
    this.#id = id;
    this.#text = text;
    const names = new Set(id === null ? text : [id, ...text]);
    this.#wanted = [...names].map((name) => ({ name, bytes: Buffer.from(name) }));
    this.#writer = writer;
  }

  add(bytes: Buffer, start: number, end: number): void {
    const writer = this.#writer;
    try {
      const members = this.#members(bytes, start, end);
      writer.beginRow();
      this.#addId(bytes, members);
      for (const name of this.#text) this.#addText(bytes, members.get(name));
      writer.meta(bytes, start, end);
    } catch (error) {
      if (error instanceof JsonSyntaxError || error instanceof DataError)
        throw wrongRow(writer.row, `it is no JSON object: ${error.message}`);
      throw error;
    }
  }

  /** Of the names that are asked for; the last of equal ones. The whole line is known to be an object then. */
  #members(bytes: Buffer, start: number, end: number): ReadonlyMap<string, Range> {
    if (this.#scanned !== bytes) {
      this.#scan = openScan(bytes);
      this.#scanned = bytes;
    }
    const scan = this.#scan;
    scan.position = start;
    if (bytes[start] !== code.openBrace) throw new JsonSyntaxError('it does not begin with {', start);
    const found = new Map<string, Range>();
    if (this.#wanted.length === 0) skipValue(scan, limits.jsonDepthMax);
    else this.#scanMembers(scan, found);
    if (scan.position > end) throw new JsonSyntaxError('the line ends before it does', end);
    if (scan.position < end) throw new JsonSyntaxError('something follows it', scan.position);
    return found;
  }

  #scanMembers(scan: JsonScan, found: Map<string, Range>): void {
    scan.position++;
    if (nextByte(scan) === code.closeBrace) {
      scan.position++;
      return;
    }
    do {
      scanKey(scan);
      const name = this.#wantedName(scan);
      nextByte(scan);
      const start = scan.position;
      skipValue(scan, limits.jsonDepthMax - 1);
      if (name !== null) found.set(name, { start, end: scan.position });
    } while (anotherFollows(scan, code.closeBrace));
  }

  #wantedName({ bytes, stringStart: start, stringEnd: end, stringEscaped }: JsonScan): string | null {
    const decoded = stringEscaped ? Buffer.from(decodeString(bytes, { start, end })) : null;
    for (const { name, bytes: wanted } of this.#wanted) {
      if (decoded !== null ? decoded.equals(wanted) : isName(bytes, start, end, wanted)) return name;
    }
    return null;
  }

  #addId(bytes: Buffer, members: ReadonlyMap<string, Range>): void {
    const writer = this.#writer;
    if (this.#id === null) return writer.idByNumber();
    const value = members.get(this.#id);
    const plain = value === undefined ? null : plainText(bytes, value);
    if (plain === null) throw wrongValue(writer.row, this.#id, 'the id is missing: each row needs an id');
    if (value !== undefined && !isText(bytes, value) && !/^-?\d+$/u.test(plain.toString()))
      throw wrongValue(
        writer.row,
        this.#id,
        `the id ${quoted(plain.toString())} is no text and no whole number`,
      );
    writer.id(plain, 0, plain.length, this.#id);
  }

  #addText(bytes: Buffer, value: Range | undefined): void {
    const plain = value === undefined ? null : plainText(bytes, value);
    if (plain !== null) this.#writer.addText(plain, 0, plain.length);
  }
}

function isName(bytes: Buffer, start: number, end: number, name: Buffer): boolean {
  if (end - start !== name.length) return false;
  for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
  return true;
}

function isText(bytes: Buffer, { start }: Range): boolean {
  return bytes[start] === code.quote;
}

/** What a string means, or the JSON of anything else; null for null. */
function plainText(bytes: Buffer, range: Range): Buffer | null {
  const { start, end } = range;
  if (!isText(bytes, range)) {
    const text = bytes.subarray(start, end);
    return text.toString('latin1') === 'null' ? null : text;
  }
  const inner = bytes.subarray(start + 1, end - 1);
  if (!inner.includes(code.backslash)) return inner;
  return Buffer.from(decodeString(bytes, { start: start + 1, end: end - 1 }).toWellFormed());
}
