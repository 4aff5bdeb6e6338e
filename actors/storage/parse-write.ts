/**
 * A write request's body → a write batch, without making a JavaScript value of any document.
 *
 * 1. The body is UTF-8 and starts without a byte order mark (native, a fraction of the cost of the rest).
 * 2. One pass over the bytes. A document's fields are found as ranges, then copied to the batch when its brace
 *    closes, so that fields may come in any order and the last of duplicate ones wins.
 * 3. The first thing that is wrong ends the pass. Malformed JSON anywhere is 400 even where something understood but
 *    wrong comes before it, so a 422 is held back until the whole body has passed the grammar.
 *
 * Hot: this is the ingest path. Measured in test/bench/parse-write.bench.ts.
 */
import { ApiError, invalidField, missingBody } from '../../protocol/errors.ts';
import { documentIdProblem } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { sharedBuffer } from '../../src/base/garbage.ts';
import { checkEncoding } from '../../src/base/json.ts';
import {
  anotherFollows,
  type ByteSpan,
  code,
  copyInto,
  decodeString,
  expectEnd,
  type JsonScan,
  JsonSyntaxError,
  nextByte,
  noByte,
  openScan,
  opensEmpty,
  scanKey,
  scanString,
  skipLiteral,
  skipValue,
  unescapeInto,
  unexpected,
} from '../../src/base/json-scanner.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import {
  batchHeadBytes,
  documentHeadBytes,
  documentId,
  documentMeta,
  documentText,
  documentVector,
  fitted,
  noText,
  readBatch,
  withRoom,
  writeBatchHead,
} from './document-batch.ts';
import {
  emptyVectorField,
  forgetVector,
  scanVector,
  scanVectorBase64,
  type VectorField,
} from './parse-vector.ts';

export interface ParsedWrite {
  /** A batch as document-batch.ts describes it, in shared memory. */
  readonly batch: Buffer;
  readonly documentCount: number;
  readonly deleteCount: number;
  readonly wait: boolean;
  /** The field that held the vector of the first document that has one; null where none has. Refusals name it. */
  readonly vectorField: VectorField['form'];
}

/** A write's batch, in shared memory, and what a refusal of its vectors names. */
export interface ParsedBody {
  readonly batch: Uint8Array;
  readonly vectorField: ParsedWrite['vectorField'];
}

export type WriteKind = 'put' | 'delete' | 'patch';

/** Parses a write body of any kind. Throws as the parsers below do; `bad_request` where it is empty. */
export function parseWriteBody(kind: WriteKind, body: Uint8Array): ParsedBody {
  switch (kind) {
    case 'put':
      return withoutCounts(parsePut(body));
    case 'delete':
      return withoutCounts(parseDelete(body));
    case 'patch':
      return withoutCounts(parsePatch(body));
  }
}

function withoutCounts({ batch, vectorField }: ParsedWrite): ParsedBody {
  return { batch, vectorField };
}

export interface ParsedPatch {
  readonly id: string;
  /** Replaces the text; null keeps it. A view of the batch. */
  readonly text: Buffer | null;
  /** The raw JSON object for `mergeMeta`; null keeps the meta. A view of the batch. */
  readonly metaPatch: Buffer | null;
  /** Replaces the vector; null keeps it. */
  readonly vector: Float32Array | null;
}

/**
 * `{docs?, deletes?, wait?}` of a put.
 *
 * @throws ApiError `bad_request` (not JSON), `too_large` (too many documents and deletes), `invalid` naming the field.
 */
export function parsePut(body: Uint8Array): ParsedWrite {
  return parseBody(body, (work) => {
    forEachField(work.scan, (name) => {
      if (name === 'docs') parseDocuments(work, 'put');
      else if (name === 'deletes') parseIds(work, name);
      else if (name === 'wait') parseWait(work);
      else throw unknownField(name);
    });
    if (work.documentCount + work.ids.length === 0) {
      throw invalidField('docs', 'is required: a write has at least one document or delete');
    }
  });
}

/**
 * `{docs, wait?}` of an update. The batch holds patches in the encoding of documents: no text, no meta or no vector
 * means that the document keeps its own; see `readPatches`.
 *
 * @throws ApiError as `parsePut`.
 */
export function parsePatch(body: Uint8Array): ParsedWrite {
  return parseBody(body, (work) => {
    forEachField(work.scan, (name) => {
      if (name === 'docs') parseDocuments(work, 'patch');
      else if (name === 'wait') parseWait(work);
      else throw unknownField(name);
    });
    if (work.documentCount === 0) throw invalidField('docs', 'is required and has at least one document');
  });
}

/**
 * `{ids, wait?}` of a delete: a batch without documents. An empty list is a batch without anything.
 *
 * @throws ApiError `bad_request`, or `invalid` naming the field: too many ids as well.
 */
export function parseDelete(body: Uint8Array): ParsedWrite {
  return parseBody(body, (work) => {
    let given = false;
    forEachField(work.scan, (name) => {
      if (name === 'ids') parseIds(work, name);
      else if (name === 'wait') parseWait(work);
      else throw unknownField(name);
      given ||= name === 'ids';
    });
    if (!given) throw invalidField('ids', 'is required');
  });
}

/** The patches of a batch that `parsePatch` made, in the order of the request. */
export function readPatches(batch: Buffer): ParsedPatch[] {
  const { documentOffsets } = readBatch(batch);
  return Array.from(documentOffsets, (offset) => ({
    id: documentId(batch, offset),
    text: documentText(batch, offset),
    metaPatch: documentMeta(batch, offset),
    vector: documentVector(batch, offset),
  }));
}

/** Where a field's value lies in the body; `start` tells what is known of it. */
interface FieldRange {
  /** `missing`, `wrongType`, or an offset: of a string's content, of an object's brace. */
  start: number;
  end: number;
  escaped: boolean;
  loneSurrogate: boolean;
}

interface Work {
  readonly scan: JsonScan;
  /** The batch, up to `position`. */
  out: ViewedBytes;
  position: number;
  documentCount: number;
  /** The ids to delete; they are written after the documents, wherever they stand in the body. */
  ids: ByteSpan[];
  wait: boolean;
  /** The document's fields, used again for each. */
  readonly id: FieldRange;
  readonly text: FieldRange;
  readonly meta: FieldRange;
  readonly vector: VectorField;
  /** How many numbers the vectors of this request have, the same for all; 0 before the first. */
  dims: number;
  vectorField: VectorField['form'];
  /** The path of the meta that is being passed, for the refusal of one that nests too deep. */
  metaIndex: number;
}

const missing = -1;
const wrongType = -2;

/** A document's meta starts at the fourth level of a body, and may nest as deep by itself as any other JSON. */
const bodyLevelsMax = limits.jsonDepthMax + 3;
/** An id's UTF-8 takes at least a sixth of its escaped form: longer ones need not be decoded to be refused. */
const escapedIdBytesMax = limits.documentIdBytesMax * 6;
const escapedTextBytesMax = limits.documentTextBytesMax * 6;
/** A field's name in a path, so that an answer does not carry a body's worth of key. */
const fieldNameBytesMax = 64;

/** The vector of the document that is being read. */
const vectorField = emptyVectorField();

/** Small bodies are encoded here and copied out once their size is known. Nothing yields in between. */
let scratch: ViewedBytes | null = null;

function startWork(body: Uint8Array): Work {
  const emptyField = (): FieldRange => ({ start: missing, end: 0, escaped: false, loneSurrogate: false });
  return {
    scan: openScan(body),
    out: roomFor(body.length),
    position: batchHeadBytes,
    documentCount: 0,
    ids: [],
    wait: false,
    id: emptyField(),
    text: emptyField(),
    meta: emptyField(),
    vector: vectorField,
    dims: 0,
    vectorField: null,
    metaIndex: missing,
  };
}

function roomFor(bodyBytes: number): ViewedBytes {
  // A document with text is never shorter as JSON than encoded; anything else grows the buffer.
  if (bodyBytes > limits.parseInlineBytesMax) return viewed(sharedBuffer(batchHeadBytes + bodyBytes));
  scratch ??= viewed(Buffer.allocUnsafeSlow(batchHeadBytes + limits.parseInlineBytesMax));
  return scratch;
}

function makeRoom(work: Work, bytes: number): void {
  const grown = withRoom(work.out.bytes, work.position, bytes);
  if (grown !== work.out.bytes) work.out = viewed(grown);
}

function parseBody(body: Uint8Array, parse: (work: Work) => void): ParsedWrite {
  if (body.length === 0) throw missingBody();
  const work = startWork(body);
  try {
    checkEncoding(body);
    parse(work);
    expectEnd(work.scan);
    return finish(work);
  } catch (error) {
    throw refusal(error, work);
  }
}

function refusal(error: unknown, work: Work): unknown {
  if (error instanceof JsonSyntaxError) return syntaxRefusal(error, work);
  if (!(error instanceof ApiError)) return error;
  const scan = openScan(work.scan.bytes);
  try {
    skipValue(scan, bodyLevelsMax);
    expectEnd(scan);
    return error;
  } catch (syntaxError) {
    return syntaxError instanceof JsonSyntaxError ? syntaxRefusal(syntaxError, work) : syntaxError;
  }
}

function syntaxRefusal(error: JsonSyntaxError, work: Work): ApiError {
  if (error.kind === 'depth' && work.metaIndex !== missing) {
    return invalidField(`docs[${work.metaIndex}].meta`, error.message);
  }
  const what = error.kind === 'depth' ? 'the body is' : 'the body is not valid JSON:';
  return new ApiError('bad_request', `${what} ${error.message} at byte ${error.offset}`, { cause: error });
}

/** Passes the top-level object; `visit` passes the value of the field that it is given. */
function forEachField(scan: JsonScan, visit: (name: string) => void): void {
  if (nextByte(scan) !== code.openBrace) throw invalidField('body', 'must be a JSON object');
  if (opensEmpty(scan, code.closeBrace)) return;
  do {
    scanKey(scan);
    visit(fieldName(scan));
  } while (anotherFollows(scan, code.closeBrace));
}

function fieldName(scan: JsonScan): string {
  const { stringStart: start, stringEnd: end } = scan;
  if (end - start <= fieldNameBytesMax) return decodeString(scan.bytes, { start, end });
  return `${scan.bytes.toString('utf8', start, start + fieldNameBytesMax)}…`;
}

function unknownField(path: string): ApiError {
  return invalidField(path, 'is not a field of this request');
}

function parseWait(work: Work): void {
  const byte = nextByte(work.scan);
  if (byte === firstOfNull) {
    skipLiteral(work.scan, 'null');
    work.wait = false;
    return;
  }
  if (byte !== 0x74 && byte !== 0x66) throw invalidField('wait', 'must be true or false');
  skipLiteral(work.scan, byte === 0x74 ? 'true' : 'false');
  work.wait = byte === 0x74;
}

function checkItems(work: Work): void {
  if (work.documentCount + work.ids.length <= limits.writeItemsMax) return;
  const items = work.documentCount + work.ids.length;
  const sentence = `this write has ${items} documents and deletes, and at most ${limits.writeItemsMax} are taken: split it`;
  throw new ApiError('too_large', sentence);
}

function parseIds(work: Work, field: 'deletes' | 'ids'): void {
  const scan = work.scan;
  work.ids = [];
  if (field === 'deletes' && nextByte(scan) === firstOfNull) return skipLiteral(scan, 'null');
  if (nextByte(scan) !== code.openBracket) throw invalidField(field, 'must be an array of strings');
  if (opensEmpty(scan, code.closeBracket)) return;
  do {
    if (nextByte(scan) !== code.quote) throw invalidField(`${field}[${work.ids.length}]`, 'must be a string');
    scanString(scan);
    const range = { start: scan.stringStart, end: scan.stringEnd };
    const problem = isPlainId(scan.bytes, range) ? null : idProblem(scan.bytes, range);
    if (problem !== null) throw invalidField(`${field}[${work.ids.length}]`, problem);
    work.ids.push(range);
    if (field === 'deletes') checkItems(work);
    else if (work.ids.length > limits.deleteIdsMax) {
      throw invalidField(field, `must have at most ${limits.deleteIdsMax} ids`);
    }
  } while (anotherFollows(scan, code.closeBracket));
}

function parseDocuments(work: Work, kind: 'put' | 'patch'): void {
  const scan = work.scan;
  work.documentCount = 0;
  work.position = batchHeadBytes;
  work.dims = 0;
  work.vectorField = null;
  if (kind === 'put' && nextByte(scan) === firstOfNull) return skipLiteral(scan, 'null');
  if (nextByte(scan) !== code.openBracket) throw invalidField('docs', 'must be an array of documents');
  if (opensEmpty(scan, code.closeBracket)) return;
  do {
    const index = work.documentCount;
    if (nextByte(scan) !== code.openBrace) throw invalidField(`docs[${index}]`, 'must be an object');
    scanDocument(work, index);
    checkDocument(work, index, kind);
    writeDocument(work, index);
    work.documentCount++;
    checkItems(work);
  } while (anotherFollows(scan, code.closeBracket));
}

function scanDocument(work: Work, index: number): void {
  const scan = work.scan;
  work.id.start = missing;
  work.text.start = missing;
  work.meta.start = missing;
  forgetVector(work.vector);
  if (opensEmpty(scan, code.closeBrace)) return;
  do {
    scanKey(scan);
    const field = documentField(scan);
    if (field === 'id') scanStringField(scan, work.id);
    else if (field === 'text') scanStringField(scan, work.text);
    else if (field === 'meta') scanMetaField(work, index);
    else if (field === 'vector') scanVector(scan, work.vector);
    else if (field === 'vector_b64') scanVectorBase64(scan, work.vector);
    else throw unknownField(`docs[${index}].${fieldName(scan)}`);
  } while (anotherFollows(scan, code.closeBrace));
}

type DocumentField = 'id' | 'text' | 'meta' | 'vector' | 'vector_b64' | 'unknown';

const documentFields: ReadonlySet<string> = new Set(['id', 'text', 'meta', 'vector', 'vector_b64']);

/** The field that the last key names, told by its bytes; only a key with escapes is decoded. */
function documentField(scan: JsonScan): DocumentField {
  if (scan.stringEscaped) return namedField(fieldName(scan));
  const bytes = scan.bytes;
  const start = scan.stringStart;
  const length = scan.stringEnd - start;
  if (length === 2 && bytes[start] === 0x69 && bytes[start + 1] === 0x64) return 'id';
  if (length === 4) {
    const word = bytes.readInt32LE(start);
    if (word === 0x74786574) return 'text';
    if (word === 0x6174656d) return 'meta';
  }
  return length === 6 || length === 10 ? namedField(fieldName(scan)) : 'unknown';
}

function namedField(name: string): DocumentField {
  return documentFields.has(name) ? (name as DocumentField) : 'unknown';
}

function scanStringField(scan: JsonScan, field: FieldRange): void {
  if (nextByte(scan) !== code.quote) {
    passWrongType(scan, field);
    return;
  }
  scan.loneSurrogate = false;
  scanString(scan);
  field.start = scan.stringStart;
  field.end = scan.stringEnd;
  field.escaped = scan.stringEscaped;
  field.loneSurrogate = scan.loneSurrogate;
}

function scanMetaField(work: Work, index: number): void {
  const { scan, meta } = work;
  if (nextByte(scan) !== code.openBrace) {
    passWrongType(scan, meta);
    return;
  }
  const start = scan.position;
  scan.loneSurrogate = false;
  work.metaIndex = index;
  skipValue(scan, limits.jsonDepthMax);
  work.metaIndex = missing;
  meta.start = start;
  meta.end = scan.position;
  meta.loneSurrogate = scan.loneSurrogate;
}

/**
 * Passes a value of another type, null among them: an optional field that is null counts as absent. Nothing is refused at once:
 * a later field of the same name takes its place, as in JSON.parse.
 */
function passWrongType(scan: JsonScan, field: FieldRange): void {
  const byte = nextByte(scan);
  if (byte === noByte) throw unexpected(scan, 'a value');
  if (byte === firstOfNull) {
    skipLiteral(scan, 'null');
    field.start = missing;
    return;
  }
  skipValue(scan, limits.jsonDepthMax);
  field.start = wrongType;
}

/** The first byte of null: no other JSON value begins with it. */
const firstOfNull = 0x6e;

const halfPair = 'must be well-formed Unicode: it holds half of a surrogate pair';

function checkDocument(work: Work, index: number, kind: 'put' | 'patch'): void {
  const { id, text, meta } = work;
  if (id.start < 0)
    throw documentError(index, 'id', id.start === missing ? 'is required' : 'must be a string');
  if (text.start === wrongType) throw documentError(index, 'text', 'must be a string');
  checkVector(work, index);
  if (text.start === missing && kind === 'put' && work.vector.form === null) {
    throw documentError(index, 'text', 'is required: a document has text or a vector');
  }
  if (text.start >= 0) {
    if (text.loneSurrogate) throw documentError(index, 'text', halfPair);
    const rawMax = text.escaped ? escapedTextBytesMax : limits.documentTextBytesMax;
    if (text.end - text.start > rawMax) throw textTooLong(index);
  }
  if (meta.start === wrongType) throw documentError(index, 'meta', 'must be a JSON object');
  if (meta.start >= 0) {
    if (meta.loneSurrogate) throw documentError(index, 'meta', halfPair);
    if (meta.end - meta.start > limits.documentMetaBytesMax) {
      throw documentError(index, 'meta', `must be at most ${limits.documentMetaBytesMax} bytes`);
    }
  }
}

function checkVector(work: Work, index: number): void {
  const { form, isTwice, problem, dims } = work.vector;
  if (form === null) return;
  if (isTwice) throw documentError(index, form, 'cannot be sent beside the vector in its other form');
  if (problem !== null) throw documentError(index, form, problem);
  if (work.dims !== 0 && work.dims !== dims)
    throw documentError(
      index,
      form,
      `must have ${work.dims} numbers, as the vectors before it: it has ${dims}`,
    );
  work.dims = dims;
  work.vectorField ??= form;
}

function textTooLong(index: number): ApiError {
  return documentError(index, 'text', `must be at most ${limits.documentTextBytesMax} bytes of UTF-8`);
}

function documentError(index: number, field: Exclude<DocumentField, 'unknown'>, problem: string): ApiError {
  return invalidField(`docs[${index}].${field}`, problem);
}

function writeDocument(work: Work, index: number): void {
  const { scan, id, text, meta, vector } = work;
  if (!isPlainId(scan.bytes, id)) {
    const problem = idProblem(scan.bytes, id);
    if (problem !== null) throw documentError(index, 'id', problem);
  }
  const textRoom = text.start < 0 ? 0 : text.end - text.start;
  const metaLength = meta.start < 0 ? 0 : meta.end - meta.start;
  makeRoom(work, documentHeadBytes + (id.end - id.start) + textRoom + metaLength + vector.dims * 4);
  const out = work.out;
  const head = work.position;
  const idStart = head + documentHeadBytes;
  const textStart = writeString(scan, id, out, idStart);
  const textEnd = text.start < 0 ? textStart : writeString(scan, text, out, textStart);
  if (textEnd - textStart > limits.documentTextBytesMax) throw textTooLong(index);
  const metaEnd = metaLength === 0 ? textEnd : copyInto(scan, meta, out, textEnd);
  const end = metaEnd + vector.dims * 4;
  for (let i = 0; i < vector.dims; i++)
    out.view.setFloat32(metaEnd + i * 4, vector.values[i] as number, true);
  out.view.setUint32(head, end - head, true);
  out.view.setUint16(head + 4, textStart - idStart, true);
  out.view.setUint16(head + 6, vector.dims, true);
  out.view.setUint32(head + 8, text.start < 0 ? noText : textEnd - textStart, true);
  out.view.setUint32(head + 12, metaLength, true);
  work.position = end;
}

function writeString(scan: JsonScan, field: FieldRange, out: ViewedBytes, at: number): number {
  return field.escaped ? unescapeInto(scan, field, out, at) : copyInto(scan, field, out, at);
}

/** Printable ASCII without escapes, the commonest id, needs no string to be checked. */
function isPlainId(bytes: Buffer, range: ByteSpan): boolean {
  const length = range.end - range.start;
  if (length === 0 || length > limits.documentIdBytesMax) return false;
  for (let at = range.start; at < range.end; at++) {
    const byte = bytes[at] as number;
    if (byte >= 0x7f || byte === code.backslash) return false;
  }
  return true;
}

function idProblem(bytes: Buffer, range: ByteSpan): string | null {
  // Too long to be decoded: any string of that length gets the answer.
  if (range.end - range.start > escapedIdBytesMax)
    return documentIdProblem('a'.repeat(limits.documentIdBytesMax + 1));
  return documentIdProblem(decodeString(bytes, range));
}

function finish(work: Work): ParsedWrite {
  const { documentCount, ids, wait, vectorField } = work;
  const documentsBytes = work.position - batchHeadBytes;
  for (const range of ids) writeDelete(work, range);
  const out = work.out.bytes;
  writeBatchHead(out, { documentCount, deleteCount: ids.length, documentsBytes });
  return { batch: fitted(out, work.position), documentCount, deleteCount: ids.length, wait, vectorField };
}

function writeDelete(work: Work, range: ByteSpan): void {
  const start = work.position;
  makeRoom(work, 2 + range.end - range.start);
  const end = unescapeInto(work.scan, range, work.out, start + 2);
  work.out.view.setUint16(start, end - start - 2, true);
  work.position = end;
}
