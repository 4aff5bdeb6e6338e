import { limits } from '../../protocol/limits.ts';
import { code, decodeString, JsonSyntaxError } from '../../src/base/json-scanner.ts';
import { WantedMembers } from '../columns/wanted-members.ts';
import { FileWindow, textStartOf } from './file-window.ts';
import { quoted, wrongRow, wrongValue } from './import-error.ts';
import type { AskedName, ImportRequest, ReadRows } from './import-rows.ts';
import { RangeEnds } from './range-ends.ts';
import type { RowSink } from './row-sink.ts';
import { RowVectors } from './row-vectors.ts';
import { RowWriter } from './row-writer.ts';
import { splitObject } from './split-object.ts';

/** A file with a JSON object a line → rows: each object is its document's meta as it is, so that null stays null. */
export async function importNdjson(request: ImportRequest, sink: RowSink): Promise<ReadRows> {
  const window = new FileWindow(request.file);
  const { id, text, ranges } = request;
  const members = new WantedMembers([...new Set(id === null ? text : [id, ...text])]);
  const writer = new RowWriter([], sink, { wanted: members, ranges });
  const rows = new ObjectRows(request, members, writer);
  const start = await textStartOf(request.file);
  const ends = new RangeEnds(request, { form: 'lines', rowsMax: request.rangeRows ?? writer.rowsMax });
  for (;;) {
    const range = ranges.take(start, (from) => ends.find(from.start));
    if (range === null) break;
    await writer.begin(range);
    window.open(range);
    await importLines(window, writer, rows);
    await writer.end();
  }
  const { rowCount, textOnly } = writer;
  return { rowCount, temporalKeys: [], textKeys: [], textOnly, dims: rows.dims, unseen: rows.unseen };
}

async function importLines(window: FileWindow, writer: RowWriter, rows: ObjectRows): Promise<void> {
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
    if (feed < 0) return;
  }
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

class ObjectRows {
  readonly #writer: RowWriter;
  readonly #members: WantedMembers;
  /** Places among the members; -1: the row's number is its id. */
  readonly #id: number;
  readonly #text: readonly number[];
  readonly #textNames: readonly string[];

  readonly #vectors: RowVectors | null;
  readonly #vector: string | null;
  /** Which members a meta has; null: all of them. */
  readonly #choice: MemberChoice | null;

  constructor(
    { id, text, vector, columns, skip, dims }: ImportRequest,
    members: WantedMembers,
    writer: RowWriter,
  ) {
    this.#writer = writer;
    this.#members = members;
    this.#id = id === null ? -1 : members.names.indexOf(id);
    this.#text = text.map((name) => members.names.indexOf(name));
    this.#textNames = text.filter((name) => name !== id);
    this.#vector = vector;
    this.#vectors = vector === null ? null : new RowVectors(vector, dims);
    const choosesAll = vector === null && columns === null && skip.length === 0;
    this.#choice = choosesAll ? null : new MemberChoice({ vector, columns, skip });
  }

  /** Numbers of each vector; 0 without any. */
  get dims(): number {
    return this.#vectors?.dims ?? 0;
  }

  /** Names of the query that no row had. */
  get unseen(): readonly AskedName[] {
    return this.#choice?.unseen ?? [];
  }

  add(bytes: Buffer, start: number, end: number): void {
    const writer = this.#writer;
    writer.beginRow();
    try {
      if (this.#choice !== null || end - start > limits.documentMetaBytesMax)
        return this.#addSplit(bytes.subarray(start, end));
      writer.addObject(bytes, start, end);
    } catch (error) {
      if (error instanceof JsonSyntaxError)
        throw wrongRow(writer.row, `it is no JSON object: ${error.message}`);
      throw error;
    }
    this.#addIds(bytes);
    for (const member of this.#text) this.#addText(bytes, member);
    writer.meta(bytes, start, end);
  }

  #addSplit(line: Buffer): void {
    const writer = this.#writer;
    const choice = this.#choice;
    const keeps = (name: string) => choice?.keeps(name) ?? true;
    const { row } = writer;
    const { meta, values, isTextOnly } = splitObject(line, { row, text: this.#textNames, keeps });
    writer.addObject(meta, 0, meta.length);
    this.#addIds(this.#wantedValue(this.#id, values));
    for (const member of this.#text) this.#addText(this.#wantedValue(member, values), member);
    if (this.#vectors !== null) this.#addVector(this.#vectors, values.get(this.#vector ?? ''));
    writer.meta(meta, 0, meta.length);
    if (isTextOnly) writer.countTextOnly();
  }

  /** Answers the value of a wanted member, and has `#members` say where it stands: from the value's own first byte to its last. */
  #wantedValue(member: number, values: ReadonlyMap<string, Buffer>): Buffer {
    const value = member < 0 ? undefined : values.get(this.#members.names[member] as string);
    if (value === undefined) {
      if (member >= 0) this.#members.starts[member] = -1;
      return nothing;
    }
    this.#members.set(member, 0, value.length, value[0] === code.quote && value.includes(code.backslash));
    return value;
  }

  #addVector(vectors: RowVectors, value: Buffer | undefined): void {
    if (value === undefined) vectors.none();
    else vectors.json(this.#writer.row, value);
    this.#writer.vector(vectors.vector);
  }

  #addIds(bytes: Buffer): void {
    if (this.#id < 0) this.#writer.idByNumber();
    else this.#addId(bytes, this.#id);
  }

  #addId(bytes: Buffer, member: number): void {
    const writer = this.#writer;
    const { names, starts, ends, escaped } = this.#members;
    const name = names[member] as string;
    const [start, end] = [starts[member] as number, ends[member] as number];
    if (start < 0 || isNull(bytes, start))
      throw wrongValue(writer.row, name, 'the id is missing: each row needs an id');
    if (bytes[start] !== code.quote) {
      if (!/^-?\d+$/u.test(bytes.toString('latin1', start, end)))
        throw wrongValue(
          writer.row,
          name,
          `the id ${quoted(bytes.toString('utf8', start, end))} is no text and no whole number`,
        );
      writer.id(bytes, start, end, name);
    } else if (escaped[member] === 0) writer.id(bytes, start + 1, end - 1, name);
    else {
      const plain = unescaped(bytes, start, end);
      writer.id(plain, 0, plain.length, name);
    }
  }

  /** What a string means, or the JSON of anything else; nothing of null. */
  #addText(bytes: Buffer, member: number): void {
    const { starts, ends, escaped } = this.#members;
    const [start, end] = [starts[member] as number, ends[member] as number];
    if (start < 0 || isNull(bytes, start)) return;
    if (bytes[start] !== code.quote) this.#writer.addText(bytes, start, end);
    else if (escaped[member] === 0) this.#writer.addText(bytes, start + 1, end - 1);
    else {
      const plain = unescaped(bytes, start, end);
      this.#writer.addText(plain, 0, plain.length);
    }
  }
}

const nothing = Buffer.alloc(0);

/** Which members of objects their metas have, and which names of the query were seen in one. */
class MemberChoice {
  readonly #vector: string | null;
  readonly #columns: ReadonlySet<string> | null;
  readonly #skip: ReadonlySet<string>;
  readonly #unseen: Set<string>;

  constructor({ vector, columns, skip }: Pick<ImportRequest, 'vector' | 'columns' | 'skip'>) {
    this.#vector = vector;
    this.#columns = columns === null ? null : new Set(columns);
    this.#skip = new Set(skip);
    this.#unseen = new Set([...(vector === null ? [] : [vector]), ...(columns ?? []), ...skip]);
  }

  keeps(name: string): boolean {
    if (this.#unseen.size > 0) this.#unseen.delete(name);
    return name !== this.#vector && !this.#skip.has(name) && (this.#columns?.has(name) ?? true);
  }

  get unseen(): readonly AskedName[] {
    const parameterOf = (name: string) =>
      name === this.#vector ? 'vector' : this.#skip.has(name) ? 'skip' : 'columns';
    return [...this.#unseen].map((name) => ({ parameter: parameterOf(name), name }));
  }
}

/** Answers whether a JSON value is null. */
function isNull(bytes: Buffer, start: number): boolean {
  return bytes[start] === 0x6e;
}

/** Answers the text of a JSON string, given where its quotes are. */
function unescaped(bytes: Buffer, start: number, end: number): Buffer {
  return Buffer.from(decodeString(bytes, { start: start + 1, end: end - 1 }).toWellFormed());
}
