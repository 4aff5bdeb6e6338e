import { isUtf8 } from 'node:buffer';
import { type ViewedBytes, viewed } from '../columns/string-table.ts';
import { quoted } from './import-error.ts';
import { type PageValues, ParquetError, type SchemaElement } from './parquet-page.ts';
import type { RowWriter } from './row-writer.ts';
import type { ColumnKind } from './value-kind.ts';

/**
 * What the values of a Parquet column are to us. Numbers stay what they are, decimals by their digits; a fraction of a second is cut
 * off, because times have none; numbers that JSON does not know (NaN, infinities) are null.
 */
export type ValueKind = ColumnKind;

/** One value at a time. Hot: a call for each value of a file. */
export interface ParquetValue {
  readonly kind: ValueKind;
  /** What it takes as text, at most. */
  readonly bytes: number;
  /** The value at that place, -1 for null; what is wrong with it, or null. */
  read(values: PageValues, at: number): string | null;
  /** As an id or a text has it; null for null. */
  text(): Buffer | null;
  write(writer: RowWriter, field: number): void;
}

type Units = 'MILLIS' | 'MICROS' | 'NANOS';
const perSecond: Readonly<Record<Units, bigint>> = {
  MILLIS: 1_000n,
  MICROS: 1_000_000n,
  NANOS: 1_000_000_000n,
};

/** Throws ParquetError for a type that is none of ours. */
export function parquetValue(element: SchemaElement): ParquetValue {
  const { type, converted_type: converted, logical_type: logical, name } = element;
  if (logical?.type === 'DECIMAL' || converted === 'DECIMAL') return new DecimalValue(element.scale ?? 0);
  switch (type) {
    case 'BOOLEAN':
      return new BoolValue();
    case 'FLOAT':
    case 'DOUBLE':
      return new DoubleValue();
    case 'INT96':
      return new TimeValue(secondsOfInt96);
    case 'INT32':
      if (logical?.type === 'DATE' || converted === 'DATE') return new DateValue();
      if (logical?.type === 'TIME' || converted === 'TIME_MILLIS')
        return new TimeOfDayValue(perSecond.MILLIS);
      return new IntValue(isUnsigned(element));
    case 'INT64': {
      const unit = unitOf(element);
      if (unit !== null && (logical?.type === 'TIME' || converted === 'TIME_MICROS'))
        return new TimeOfDayValue(perSecond[unit]);
      if (unit !== null) return new TimeValue((values, at) => secondsOf(bigAt(values, at), perSecond[unit]));
      return new BigIntValue(isUnsigned(element));
    }
    case 'BYTE_ARRAY':
    case 'FIXED_LEN_BYTE_ARRAY':
      if (logical?.type === 'UUID') return new UuidValue();
      if (logical?.type === 'FLOAT16' || converted === 'INTERVAL' || converted === 'BSON')
        throw new ParquetError(`the column ${quoted(name)} has a type that is not imported`);
      return new TextValue();
    default:
      throw new ParquetError(`the column ${quoted(name)} has the unknown type ${type}`);
  }
}

function isUnsigned({ converted_type: converted, logical_type: logical }: SchemaElement): boolean {
  if (logical?.type === 'INTEGER') return !logical.isSigned;
  return converted?.startsWith('UINT') === true;
}

function unitOf({ converted_type: converted, logical_type: logical }: SchemaElement): Units | null {
  if (logical?.type === 'TIMESTAMP' || logical?.type === 'TIME') return logical.unit;
  if (converted === 'TIMESTAMP_MILLIS') return 'MILLIS';
  return converted === 'TIMESTAMP_MICROS' || converted === 'TIME_MICROS' ? 'MICROS' : null;
}

function bigAt(values: PageValues, at: number): bigint {
  if (values.kind === 'bigints') return values.values[at] as bigint;
  return values.kind === 'numbers' ? BigInt(values.values[at] as number) : bytesAsBigInt(values, at);
}

/** Two's complement, its highest byte first. */
function bytesAsBigInt(values: Extract<PageValues, { kind: 'bytes' }>, at: number): bigint {
  const hex = values.source.toString('hex', values.starts[at], values.ends[at]);
  return hex === '' ? 0n : BigInt.asIntN(hex.length * 4, BigInt(`0x${hex}`));
}

function secondsOf(value: bigint, units: bigint): number {
  const whole = value / units;
  return Number(value < 0n && whole * units !== value ? whole - 1n : whole);
}

const julianDayOf1970 = 2_440_588;

/** Nanoseconds of the day, and its Julian number. */
function secondsOfInt96(values: PageValues, at: number): number {
  if (values.kind !== 'bytes') return Number.NaN;
  const start = values.starts[at] as number;
  const days = values.source.readInt32LE(start + 8) - julianDayOf1970;
  return days * 86_400 + secondsOf(values.source.readBigInt64LE(start), perSecond.NANOS);
}

const outOfYears = 'it is not in the years 0 to 9999';

/** Text of days since 1970, and of what follows it; null out of the years. */
class Calendar {
  readonly #dates = new Map<number, Buffer>();

  date(days: number): Buffer | null {
    const known = this.#dates.get(days);
    if (known !== undefined) return known;
    const date = new Date(days * 86_400_000);
    const year = date.getUTCFullYear();
    if (!(year >= 0 && year <= 9_999)) return null;
    const text = Buffer.from(`${date.toISOString().slice(0, 10)} 00:00:00`);
    if (this.#dates.size > 10_000) this.#dates.clear();
    this.#dates.set(days, text);
    return text;
  }
}

abstract class Value {
  abstract readonly kind: ValueKind;
  get bytes(): number {
    return 40;
  }

  protected isNull = true;

  read(values: PageValues, at: number): string | null {
    this.isNull = at < 0;
    return at < 0 ? null : this.take(values, at);
  }

  write(writer: RowWriter, field: number): void {
    if (this.isNull) writer.null(field);
    else this.put(writer, field);
  }

  text(): Buffer | null {
    return this.isNull ? null : this.shown();
  }

  protected abstract take(values: PageValues, at: number): string | null;
  protected abstract put(writer: RowWriter, field: number): void;
  protected abstract shown(): Buffer;
}

class BoolValue extends Value {
  readonly kind = 'bool';
  #value = false;

  protected take(values: PageValues, at: number): null {
    this.#value = values.kind === 'numbers' && values.values[at] === 1;
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.bool(field, this.#value);
  }

  protected shown(): Buffer {
    return Buffer.from(String(this.#value));
  }
}

class IntValue extends Value {
  readonly kind = 'int';
  readonly #isUnsigned: boolean;
  #value = 0;

  constructor(isUnsigned: boolean) {
    super();
    this.#isUnsigned = isUnsigned;
  }

  protected take(values: PageValues, at: number): null {
    const value = values.kind === 'numbers' ? (values.values[at] as number) : 0;
    this.#value = this.#isUnsigned ? value >>> 0 : value;
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.safeInt(field, this.#value);
  }

  protected shown(): Buffer {
    return Buffer.from(String(this.#value));
  }
}

class BigIntValue extends Value {
  readonly kind = 'int';
  readonly #isUnsigned: boolean;
  #value = 0n;

  constructor(isUnsigned: boolean) {
    super();
    this.#isUnsigned = isUnsigned;
  }

  protected take(values: PageValues, at: number): null {
    const value = bigAt(values, at);
    this.#value = this.#isUnsigned ? BigInt.asUintN(64, value) : value;
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    const number = Number(this.#value);
    if (Number.isSafeInteger(number)) writer.safeInt(field, number);
    else writer.bigInt(field, this.#value);
  }

  protected shown(): Buffer {
    return Buffer.from(String(this.#value));
  }
}

class DoubleValue extends Value {
  readonly kind = 'float';
  #value = 0;

  protected take(values: PageValues, at: number): null {
    this.#value = values.kind === 'numbers' ? (values.values[at] as number) : 0;
    this.isNull = !Number.isFinite(this.#value);
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.double(field, this.#value);
  }

  protected shown(): Buffer {
    return Buffer.from(String(this.#value));
  }
}

const decimalDigitsMax = 300;

class DecimalValue extends Value {
  readonly kind = 'float';
  readonly #scale: number;
  #text: Buffer = Buffer.alloc(0);

  override get bytes(): number {
    return decimalDigitsMax + 4;
  }

  constructor(scale: number) {
    super();
    if (!Number.isInteger(scale) || scale < 0 || scale > 100)
      throw new ParquetError(`a decimal of scale ${scale}`);
    this.#scale = scale;
  }

  protected take(values: PageValues, at: number): string | null {
    const value = bigAt(values, at);
    const digits = String(value < 0n ? -value : value).padStart(this.#scale + 1, '0');
    if (digits.length > decimalDigitsMax) return 'a decimal has too many digits';
    const cut = digits.length - this.#scale;
    const fraction = this.#scale === 0 ? '.0' : `.${digits.slice(cut)}`;
    this.#text = Buffer.from(`${value < 0n ? '-' : ''}${digits.slice(0, cut)}${fraction}`);
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.float(field, this.#text, 0, this.#text.length);
  }

  protected shown(): Buffer {
    return this.#text;
  }
}

class DateValue extends Value {
  readonly kind = 'date';
  readonly #calendar = new Calendar();
  #days = 0;
  #text: Buffer = Buffer.alloc(0);

  protected take(values: PageValues, at: number): string | null {
    this.#days = values.kind === 'numbers' ? (values.values[at] as number) : 0;
    const text = this.#calendar.date(this.#days);
    if (text === null) return outOfYears;
    this.#text = text;
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.temporal(field, 'date', this.#days, this.#text, 0, 10);
  }

  protected shown(): Buffer {
    return this.#text.subarray(0, 10);
  }
}

class TimeValue extends Value {
  readonly kind = 'time';
  readonly #secondsAt: (values: PageValues, at: number) => number;
  readonly #calendar = new Calendar();
  readonly #text = Buffer.alloc(19);
  #seconds = 0;

  constructor(secondsAt: (values: PageValues, at: number) => number) {
    super();
    this.#secondsAt = secondsAt;
  }

  protected take(values: PageValues, at: number): string | null {
    this.#seconds = this.#secondsAt(values, at);
    const days = Math.floor(this.#seconds / 86_400);
    const date = this.#calendar.date(days);
    if (date === null) return outOfYears;
    date.copy(this.#text);
    writeClock(this.#text, this.#seconds - days * 86_400);
    return null;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.temporal(field, 'time', this.#seconds, this.#text, 0, 19);
  }

  protected shown(): Buffer {
    return this.#text;
  }
}

/** `HH:MM:SS` behind a date. */
function writeClock(text: Buffer, seconds: number): void {
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  for (let part = 0; part < 3; part++) {
    const value = parts[part] as number;
    text[11 + part * 3] = 0x30 + Math.floor(value / 10);
    text[12 + part * 3] = 0x30 + (value % 10);
  }
}

abstract class BytesValue extends Value {
  readonly kind = 'text';
  protected source: ViewedBytes = viewed(Buffer.alloc(0));
  protected start = 0;
  protected end = 0;

  override get bytes(): number {
    return this.isNull ? 4 : this.end - this.start + 4;
  }

  protected put(writer: RowWriter, field: number): void {
    writer.text(field, this.source, this.start, this.end);
  }

  protected shown(): Buffer {
    return this.source.bytes.subarray(this.start, this.end);
  }
}

class TextValue extends BytesValue {
  protected take(values: PageValues, at: number): string | null {
    if (values.kind !== 'bytes') return 'it is no text';
    const { source } = values;
    this.source = values.viewed;
    this.start = values.starts[at] as number;
    this.end = values.ends[at] as number;
    for (let byte = this.start; byte < this.end; byte++)
      if ((source[byte] as number) >= 0x80)
        return isUtf8(source.subarray(this.start, this.end)) ? null : 'its bytes are no UTF-8';
    return null;
  }
}

/** A time of a day is text: there is no such type. */
class TimeOfDayValue extends BytesValue {
  readonly #units: bigint;

  constructor(units: bigint) {
    super();
    this.#units = units;
    this.source = viewed(Buffer.alloc(19));
    this.start = 11;
    this.end = 19;
  }

  protected take(values: PageValues, at: number): string | null {
    const seconds = secondsOf(bigAt(values, at), this.#units);
    if (seconds < 0 || seconds >= 86_400) return 'it is no time of a day';
    const { bytes } = this.source;
    bytes[13] = 0x3a;
    bytes[16] = 0x3a;
    writeClock(bytes, seconds);
    return null;
  }
}

class UuidValue extends BytesValue {
  protected take(values: PageValues, at: number): string | null {
    if (values.kind !== 'bytes') return 'it is no UUID';
    const hex = values.source.toString('hex', values.starts[at], values.ends[at]);
    const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
    this.source = viewed(Buffer.from(parts.join('-')));
    this.start = 0;
    this.end = this.source.bytes.length;
    return null;
  }
}
