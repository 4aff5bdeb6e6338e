import { limits } from '../../protocol/limits.ts';
import { code, JsonSyntaxError, nextByte, openScan } from '../../src/base/json-scanner.ts';
import {
  emptyVectorField,
  forgetVector,
  readVectorBase64,
  readVectorBytes,
  scanVector,
  scanVectorBase64,
  type VectorField,
} from '../storage/parse-vector.ts';
import { wrongValue } from './import-error.ts';

/** The vector of the row under way: the first `dims` numbers; none where that is 0. */
export interface RowVector {
  readonly dims: number;
  readonly values: Float32Array;
}

/**
 * Reads the vectors of a file's rows, as a write's are read: the same lengths, finite numbers of 32 bits. A row's value is taken by one
 * of the methods, each of which throws ApiError 422 naming the row where it is no vector. A row without a value has none.
 */
export class RowVectors {
  readonly #column: string;
  readonly #field: VectorField = emptyVectorField();
  /** Numbers of each vector; 0 before the first. */
  #dims: number;
  /** Names the vectors that have `#dims` numbers already, for the sentence of a refusal. */
  #whose: string;

  /** `dims`: how long the namespace's vectors are; null where the import makes it. */
  constructor(column: string, dims: number | null) {
    this.#column = column;
    this.#dims = dims ?? 0;
    this.#whose = dims === null ? 'the vectors before it' : "the namespace's vectors";
  }

  /** Numbers of each vector; 0 where no row had one and the namespace is new. */
  get dims(): number {
    return this.#dims;
  }

  get vector(): RowVector {
    return this.#field;
  }

  none(): void {
    forgetVector(this.#field);
  }

  /** Takes a JSON value: a list of numbers, a string with base64, or null. */
  json(row: number, value: Buffer): void {
    forgetVector(this.#field);
    const scan = openScan(value);
    if (nextByte(scan) === code.quote) scanVectorBase64(scan, this.#field);
    else scanVector(scan, this.#field);
    this.#check(row);
  }

  /** Takes a text: a list of numbers as JSON has it, or base64. */
  text(row: number, value: Buffer): void {
    forgetVector(this.#field);
    if (!beginsList(value)) readVectorBase64(value.toString('latin1').trim(), this.#field);
    else {
      try {
        const scan = openScan(value);
        scanVector(scan, this.#field);
        if (nextByte(scan) !== -1)
          throw wrongValue(
            row,
            this.#column,
            'a vector must be one list of numbers, and something follows it',
          );
      } catch (error) {
        if (!(error instanceof JsonSyntaxError)) throw error;
        throw wrongValue(row, this.#column, `a vector must be a list of numbers: ${error.message}`);
      }
    }
    this.#check(row);
  }

  /** Takes bytes: a text as `text` does, or else the numbers themselves, little-endian with four bytes each. */
  bytes(row: number, value: Buffer): void {
    if (beginsList(value) || isBase64(value)) return this.text(row, value);
    forgetVector(this.#field);
    readVectorBytes(value, this.#field);
    this.#check(row);
  }

  /** Takes `count` numbers, of which `numberAt` answers each. */
  numbers(row: number, count: number, numberAt: (at: number) => number): void {
    const field = this.#field;
    forgetVector(field);
    field.form = 'vector';
    if (count === 0 || count > limits.vectorDimsMax) {
      throw wrongValue(
        row,
        this.#column,
        `a vector must have 1 to ${limits.vectorDimsMax} numbers: it has ${count}`,
      );
    }
    field.dims = count;
    for (let at = 0; at < count; at++) {
      field.values[at] = numberAt(at);
      if (!Number.isFinite(field.values[at]))
        throw wrongValue(row, this.#column, 'a vector must have finite numbers only, which fit 32 bits');
    }
    this.#check(row);
  }

  #check(row: number): void {
    const { form, problem, dims } = this.#field;
    if (form === null) return;
    if (problem !== null) throw wrongValue(row, this.#column, `a vector ${problem}`);
    if (this.#dims === 0) this.#dims = dims;
    if (dims === this.#dims) return;
    const sentence = `a vector must have ${this.#dims} numbers, as ${this.#whose}: it has ${dims}`;
    throw wrongValue(row, this.#column, sentence);
  }
}

function beginsList(value: Buffer): boolean {
  let at = 0;
  while (at < value.length && (value[at] as number) <= 0x20) at++;
  return value[at] === code.openBracket;
}

function isBase64(value: Buffer): boolean {
  return value.every(
    (byte) =>
      (byte >= 0x41 && byte <= 0x5a) ||
      (byte >= 0x61 && byte <= 0x7a) ||
      (byte >= 0x2f && byte <= 0x39) ||
      byte === 0x2b ||
      byte === 0x3d,
  );
}
