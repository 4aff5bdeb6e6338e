import { limits } from '../../protocol/limits.ts';
import { exactDigitsMax, numberOfDigits } from '../../src/base/decimal.ts';
import {
  anotherFollows,
  code,
  decodeString,
  type JsonScan,
  nextByte,
  noByte,
  opensEmpty,
  scanString,
  skipLiteral,
  skipValue,
  unexpected,
} from '../../src/base/json-scanner.ts';

/** The vector of one document in a write body: `vector`, numbers, or `vector_b64`, base64 of little-endian float32. */
export interface VectorField {
  /** Null where the document has none. */
  form: 'vector' | 'vector_b64' | null;
  /** Whether the other form was there as well. */
  isTwice: boolean;
  /** What is wrong with it; null where nothing is. */
  problem: string | null;
  dims: number;
  /** The vector's numbers: the first `dims` of this array. */
  readonly values: Float32Array;
}

export function emptyVectorField(): VectorField {
  return {
    form: null,
    isTwice: false,
    problem: null,
    dims: 0,
    values: new Float32Array(limits.vectorDimsMax),
  };
}

export function forgetVector(field: VectorField): void {
  field.form = null;
  field.isTwice = false;
  field.problem = null;
  field.dims = 0;
}

const notNumbers = 'must be an array of numbers';
const wrongDims = `must have 1 to ${limits.vectorDimsMax} numbers`;
const notFinite = 'must have finite numbers only, which fit 32 bits';
const notBase64 = 'must be base64 of little-endian float32 values';
/** Four bytes of a number are at most six of base64. */
const base64BytesMax = limits.vectorDimsMax * 6;

/** Passes the value of `vector`. A later one of the same name takes its place, so what is wrong with it is only noted. */
export function scanVector(scan: JsonScan, field: VectorField): void {
  if (nextByte(scan) === firstOfNull) return passNull(scan, field, 'vector');
  begin(field, 'vector');
  if (nextByte(scan) !== code.openBracket) return passOther(scan, field, notNumbers);
  if (opensEmpty(scan, code.closeBracket)) return note(field, wrongDims);
  let dims = 0;
  do {
    const byte = nextByte(scan);
    if (byte !== minus && !(byte >= zero && byte <= nine)) passOther(scan, field, notNumbers);
    else if (dims === limits.vectorDimsMax) passOther(scan, field, wrongDims);
    else {
      const value = scanNumber(scan);
      field.values[dims] = value;
      if (!Number.isFinite(field.values[dims])) note(field, notFinite);
      dims++;
    }
  } while (anotherFollows(scan, code.closeBracket));
  field.dims = dims;
}

/** Passes the value of `vector_b64`. */
export function scanVectorBase64(scan: JsonScan, field: VectorField): void {
  if (nextByte(scan) === firstOfNull) return passNull(scan, field, 'vector_b64');
  begin(field, 'vector_b64');
  if (nextByte(scan) !== code.quote) return passOther(scan, field, notBase64);
  scanString(scan);
  const { stringStart: start, stringEnd: end } = scan;
  // Every character may be escaped as six.
  if (end - start > base64BytesMax * 6) return note(field, wrongDims);
  readVectorBase64(decodeString(scan.bytes, { start, end }), field);
}

/** Reads a vector from the text of `vector_b64`. */
export function readVectorBase64(encoded: string, field: VectorField): void {
  begin(field, 'vector_b64');
  if (encoded.length > base64BytesMax) return note(field, wrongDims);
  const bytes = Buffer.from(encoded, 'base64');
  // Buffer.from passes over what is not base64.
  if (bytes.toString('base64').replace(/=+$/, '') !== encoded.replace(/=+$/, ''))
    return note(field, notBase64);
  readVectorBytes(bytes, field);
}

/** Reads a vector from the bytes of its numbers, little-endian float32. */
export function readVectorBytes(bytes: Buffer, field: VectorField): void {
  begin(field, 'vector_b64');
  if (bytes.length % 4 !== 0) return note(field, notBase64);
  const dims = bytes.length / 4;
  if (dims === 0 || dims > limits.vectorDimsMax) return note(field, wrongDims);
  for (let i = 0; i < dims; i++) {
    const value = bytes.readFloatLE(i * 4);
    field.values[i] = value;
    if (!Number.isFinite(value)) note(field, notFinite);
  }
  field.dims = dims;
}

/** Null counts as absent, also where it follows a vector of the same name. */
function passNull(scan: JsonScan, field: VectorField, form: 'vector' | 'vector_b64'): void {
  skipLiteral(scan, 'null');
  if (field.form === form) forgetVector(field);
}

function begin(field: VectorField, form: 'vector' | 'vector_b64'): void {
  field.isTwice ||= field.form !== null && field.form !== form;
  field.form = form;
  field.problem = null;
  field.dims = 0;
}

function note(field: VectorField, problem: string): void {
  field.problem ??= problem;
}

function passOther(scan: JsonScan, field: VectorField, problem: string): void {
  if (nextByte(scan) === noByte) throw unexpected(scan, 'a value');
  skipValue(scan, limits.jsonDepthMax);
  note(field, problem);
}

/** The first byte of null: no other JSON value begins with it. */
const firstOfNull = 0x6e;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;
const point = 0x2e;

/**
 * Passes a number and answers it, as JSON.parse would. Hot: a write may have millions. One with a fraction and without an
 * exponent is made from its digits; others are left to V8.
 */
function scanNumber(scan: JsonScan): number {
  const { bytes } = scan;
  const start = scan.position;
  const isNegative = bytes[start] === minus;
  const first = isNegative ? start + 1 : start;
  let at = first;
  let digits = 0;
  while (isDigit(bytes[at])) digits = digits * 10 + (bytes[at++] as number) - zero;
  let count = at - first;
  let fraction = 0;
  if (count > 0 && bytes[at] === point) {
    const pointAt = at++;
    while (isDigit(bytes[at])) digits = digits * 10 + (bytes[at++] as number) - zero;
    fraction = at - pointAt - 1;
    count += fraction;
    if (fraction === 0) count = 0;
  }
  const isPlain =
    count > 0 &&
    count <= exactDigitsMax &&
    !isExponent(bytes[at]) &&
    (bytes[first] !== zero || !isDigit(bytes[first + 1]));
  if (!isPlain) return scanAnyNumber(scan);
  scan.position = at;
  const value = numberOfDigits(digits, fraction);
  return isNegative ? -value : value;
}

function scanAnyNumber(scan: JsonScan): number {
  const start = scan.position;
  skipValue(scan, 0);
  return Number(scan.bytes.toString('latin1', start, scan.position));
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= nine;
}

const isExponent = (byte: number | undefined) => byte === 0x65 || byte === 0x45;
