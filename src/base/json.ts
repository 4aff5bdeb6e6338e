/** The door to lossless-json, and the one way to read a small JSON text: a query, a filter, an account's body. */
import { isUtf8 } from 'node:buffer';
import { parse as parseLossless } from 'lossless-json';
import { expectEnd, JsonSyntaxError, openScan, skipValue } from './json-scanner.ts';

/** What `parseJson` throws; its callers need not know the scanner. */
export { JsonSyntaxError };

/** What `parseJson` makes: as JSON.parse, but an integer that a double can't hold is a bigint. */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export interface ParseJsonOptions {
  /** Levels of arrays and objects; deeper input is refused before anything is made of it. At most 256. */
  readonly depthMax: number;
  /** Values, those in others counted too; more are refused before anything is made of them. No bound where it is undefined. */
  readonly valuesMax?: number;
}

/**
 * Parses UTF-8 JSON. The grammar is JSON.parse's, duplicate keys too: the last one wins, and `__proto__` is a key like
 * any other. Numbers are doubles (1e999 is Infinity), save integers beyond 2^53, which are bigints. Half surrogate
 * pairs come through, see `isWellFormedDeep`.
 *
 * @throws JsonSyntaxError with a byte offset: malformed, not UTF-8, a byte order mark, too deep, or of too many values.
 */
export function parseJson(input: Uint8Array, options: ParseJsonOptions): JsonValue {
  checkEncoding(input);
  const scan = openScan(input);
  skipValue(scan, options.depthMax, options.valuesMax);
  expectEnd(scan);
  const text = scan.bytes.toString('utf8');
  // V8 since Node 24 may take a key such as "\u0061" for another one, where it parsed an object that begins alike before.
  if (!scan.longNumber && !scan.escapedKey) return JSON.parse(text) as JsonValue;
  return parseLossless(text, null, { parseNumber, onDuplicateKey: ({ newValue }) => newValue }) as JsonValue;
}

/** @throws JsonSyntaxError where the bytes are not UTF-8 or start with a byte order mark. */
export function checkEncoding(input: Uint8Array): void {
  if (!isUtf8(input)) {
    if (isGzip(input)) throw new JsonSyntaxError('it is packed by gzip: send it unpacked', 0);
    throw new JsonSyntaxError('not valid UTF-8', invalidUtf8Offset(input));
  }
  if (input[0] === 0xef && input[1] === 0xbb && input[2] === 0xbf) {
    throw new JsonSyntaxError('a byte order mark is not part of JSON', 0);
  }
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/** Halves the damaged part until only the damaged character is left; each half is read once. */
function invalidUtf8Offset(input: Uint8Array): number {
  let good = 0;
  let bad = input.length;
  while (bad - good > 4) {
    let middle = (good + bad) >> 1;
    // At most three steps back to where a character starts, so that none is cut in two.
    for (let i = 0; i < 3 && ((input[middle] as number) & 0xc0) === 0x80; i++) middle--;
    if (middle <= good) break;
    if (isUtf8(input.subarray(good, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

function parseNumber(digits: string): number | bigint {
  const value = Number(digits);
  return Number.isSafeInteger(value) || !/^-?[0-9]+$/.test(digits) ? value : BigInt(digits);
}

/** Whether every string and key is Unicode text: half a surrogate pair can't be stored as UTF-8. */
export function isWellFormedDeep(value: JsonValue): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (isArray(value)) return value.every(isWellFormedDeep);
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormedDeep(member));
}

/** Array.isArray does not narrow readonly arrays. */
function isArray(value: readonly JsonValue[] | JsonObject): value is readonly JsonValue[] {
  return Array.isArray(value);
}
