import { isUtf8 } from 'node:buffer';
import { dateBytes, timeBytes } from '../../columns/temporal.ts';
import { quoted } from '../import-error.ts';
import { decimalScaleMax, scalarBytesMax } from '../json-bytes.ts';
import { type RenderedValues, renderedKinds } from '../rendered-values.ts';
import { BinaryValue, HalfValue, isText, NotText } from './bytes-value.ts';
import type { SchemaElement } from './metadata.ts';
import type { PageValues, StringValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';
import type { ParquetValue, ValueKind } from './parquet-value.ts';

type Units = 'MILLIS' | 'MICROS' | 'NANOS';
/** What a UUID takes as JSON, with hyphens and quotes. */
const uuidJsonBytesMax = 40;
const perSecond: Readonly<Record<Units, bigint>> = {
  MILLIS: 1_000n,
  MICROS: 1_000_000n,
  NANOS: 1_000_000_000n,
};

/**
 * Says what the values of a column are. `isBinary`: of bytes that the file does not call text, whether some of them are none. Throws
 * ParquetError for a type that is none of ours.
 */
export function parquetValue(element: SchemaElement, isBinary = false): ParquetValue {
  const { type, converted_type: converted, logical_type: logical } = element;
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
      if (unit !== null) return new TimeValue((values, place) => secondsAt(values, place, perSecond[unit]));
      return new BigIntValue(isUnsigned(element));
    }
    case 'BYTE_ARRAY':
    case 'FIXED_LEN_BYTE_ARRAY':
      return bytesValue(element, isBinary);
    default:
      throw notTaken(element.name, String(type));
  }
}

function bytesValue(element: SchemaElement, isBinary: boolean): ParquetValue {
  const { converted_type: converted, logical_type: logical, type_length: length, name } = element;
  if (logical?.type === 'UUID') return new UuidValue();
  if (logical?.type === 'FLOAT16' && length === 2) return new HalfValue();
  if (converted === 'INTERVAL') throw notTaken(name, 'INTERVAL');
  if (isUnnamedBytes(element)) return isBinary ? new BinaryValue() : new TextValue(true);
  return isNamedText(element) ? new TextValue() : new BinaryValue();
}

/** Refuses a column of a type that is not imported. */
export function notTaken(column: string, type: string): ParquetError {
  return new ParquetError(
    `the column ${quoted(column)} has the type ${type}, which is not imported: skip it`,
  );
}

/** Whether a column has bytes of which the file says nothing more: writers of old left texts so. */
export function isUnnamedBytes({
  type,
  converted_type: converted,
  logical_type: logical,
}: SchemaElement): boolean {
  const isBytes = type === 'BYTE_ARRAY' || type === 'FIXED_LEN_BYTE_ARRAY';
  return isBytes && converted === undefined && (logical === undefined || logical.type === undefined);
}

function isNamedText({ converted_type: converted, logical_type: logical }: SchemaElement): boolean {
  const isLogical = logical?.type === 'STRING' || logical?.type === 'ENUM' || logical?.type === 'JSON';
  return isLogical || converted === 'UTF8' || converted === 'ENUM' || converted === 'JSON';
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
function bytesAsBigInt(values: StringValues, at: number): bigint {
  const hex = values.source.toString('hex', values.starts[at], values.ends[at]);
  return hex === '' ? 0n : BigInt.asIntN(hex.length * 4, BigInt(`0x${hex}`));
}

/** A whole number within 2^53, as a number; NaN for any other. */
function safeAt(values: PageValues, place: number): number {
  if (values.kind === 'bytes') return Number.NaN;
  const value =
    values.kind === 'numbers'
      ? (values.values[place] as number)
      : (values.halves[place * 2 + 1] as number) * 2 ** 32 + ((values.halves[place * 2] as number) >>> 0);
  return Number.isSafeInteger(value) ? value : Number.NaN;
}

function secondsAt(values: PageValues, place: number, units: bigint): number {
  const safe = safeAt(values, place);
  return Number.isNaN(safe) ? secondsOf(bigAt(values, place), units) : Math.floor(safe / Number(units));
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

/** Writes days since 1970 as dates; null for days outside the years 0 to 9999. */
class Calendar {
  readonly #dates = new Map<number, Buffer>();

  date(days: number): Buffer | null {
    const known = this.#dates.get(days);
    if (known !== undefined) return known;
    const date = new Date(days * secondsOfDay * 1_000);
    const year = date.getUTCFullYear();
    if (!(year >= 0 && year <= 9_999)) return null;
    const text = Buffer.from(date.toISOString().slice(0, dateBytes));
    if (this.#dates.size > 10_000) this.#dates.clear();
    this.#dates.set(days, text);
    return text;
  }
}

abstract class Value {
  abstract readonly kind: ValueKind;
  readonly jsonBytesMax: number | null = scalarBytesMax;
  readonly isRaw: boolean = false;
  readonly expectsText: boolean = false;
  readonly quoteBytes: number = 0;
  readonly dropsFraction: boolean = false;
  abstract render(values: PageValues, place: number, into: RenderedValues, at: number): void;
}

class BoolValue extends Value {
  readonly kind = 'bool';

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const value = values.kind === 'numbers' && values.values[place] === 1;
    into.json.ascii(value ? 'true' : 'false');
    into.end(at, value ? renderedKinds.true : renderedKinds.false, 0);
  }
}

abstract class IntegerValue extends Value {
  readonly kind = 'int';
  protected readonly isUnsigned: boolean;

  constructor(isUnsigned: boolean) {
    super();
    this.isUnsigned = isUnsigned;
  }
}

class IntValue extends IntegerValue {
  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const stored = values.kind === 'numbers' ? (values.values[place] as number) : 0;
    const value = this.isUnsigned ? stored >>> 0 : stored;
    into.json.integer(value);
    into.end(at, renderedKinds.integer, value);
  }
}

class BigIntValue extends IntegerValue {
  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    if (values.kind !== 'bigints') return into.endBroken(at, 'it is no number');
    const [low, high] = [values.halves[place * 2] as number, values.halves[place * 2 + 1] as number];
    if (high < 0 && this.isUnsigned) {
      const whole = BigInt.asUintN(64, values.values[place] as bigint);
      const nearest = Number(whole);
      into.json.ascii(String(whole));
      into.end(at, BigInt(nearest) === whole ? renderedKinds.float : renderedKinds.other, nearest);
      return;
    }
    const value = safeAt(values, place);
    if (Number.isNaN(value)) {
      into.json.wideInteger(low, high);
      into.endWide(at, low, high);
    } else {
      into.json.integer(value);
      into.end(at, renderedKinds.integer, value);
    }
  }
}

class DoubleValue extends Value {
  readonly kind = 'float';
  override readonly dropsFraction = true;

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const value = values.kind === 'numbers' ? (values.values[place] as number) : 0;
    if (!Number.isFinite(value)) {
      into.json.ascii('null');
      return into.end(at, renderedKinds.null, 0);
    }
    into.json.double(value);
    into.end(at, renderedKinds.float, value);
  }
}

const decimalDigitsMax = 300;

class DecimalValue extends Value {
  readonly kind = 'float';
  override readonly jsonBytesMax = decimalDigitsMax + 8;
  readonly #scale: number;

  constructor(scale: number) {
    super();
    if (!Number.isInteger(scale) || scale < 0 || scale > 100)
      throw new ParquetError(`the file has decimals of scale ${scale}, of 0 to 100`);
    this.#scale = scale;
  }

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const safe = safeAt(values, place);
    if (!Number.isNaN(safe) && this.#scale <= decimalScaleMax) {
      into.json.decimal(safe, this.#scale);
      // Both are exact, so that the quotient is the nearest double, as it is of the text.
      return into.end(at, renderedKinds.float, safe / 10 ** this.#scale);
    }
    const value = bigAt(values, place);
    const digits = String(value < 0n ? -value : value).padStart(this.#scale + 1, '0');
    if (digits.length > decimalDigitsMax) return into.endBroken(at, 'a decimal has too many digits');
    const cut = digits.length - this.#scale;
    const fraction = this.#scale === 0 ? '.0' : `.${digits.slice(cut)}`;
    const text = `${value < 0n ? '-' : ''}${digits.slice(0, cut)}${fraction}`;
    into.json.ascii(text);
    into.end(at, renderedKinds.float, Number(text));
  }
}

class DateValue extends Value {
  readonly kind = 'date';
  override readonly quoteBytes = 1;
  readonly #calendar = new Calendar();

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const days = values.kind === 'numbers' ? (values.values[place] as number) : 0;
    const text = this.#calendar.date(days);
    if (text === null) {
      into.json.ascii(`"${wideDate(days)}"`);
      return into.end(at, renderedKinds.string, 0);
    }
    into.json.plainString(text, 0, dateBytes);
    into.end(at, renderedKinds.date, days);
  }
}

const secondsOfDay = 86_400;
const timeOfDayStart = dateBytes + 1;

class TimeValue extends Value {
  readonly kind = 'time';
  override readonly quoteBytes = 1;
  readonly #secondsAt: (values: PageValues, place: number) => number;
  readonly #calendar = new Calendar();
  readonly #text = Buffer.alloc(timeBytes, ' ');
  /** The day whose date stands in the text. */
  #days = Number.NaN;

  constructor(secondsAt: (values: PageValues, place: number) => number) {
    super();
    this.#secondsAt = secondsAt;
  }

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const seconds = this.#secondsAt(values, place);
    const days = Math.floor(seconds / secondsOfDay);
    if (days !== this.#days) {
      const date = this.#calendar.date(days);
      if (date === null) return this.#renderWide(seconds, days, into, at);
      date.copy(this.#text);
      this.#days = days;
    }
    writeClock(this.#text, seconds - days * secondsOfDay);
    into.json.plainString(this.#text, 0, timeBytes);
    into.end(at, renderedKinds.time, seconds);
  }

  #renderWide(seconds: number, days: number, into: RenderedValues, at: number): void {
    this.#days = Number.NaN;
    writeClock(this.#text, seconds - days * secondsOfDay);
    const clock = this.#text.toString('latin1', timeOfDayStart, timeBytes);
    into.json.ascii(`"${wideDate(days)} ${clock}"`);
    into.end(at, renderedKinds.string, 0);
  }
}

/** A date out of the years 0 to 9999, which is a text to us: no column of dates holds it. */
function wideDate(days: number): string {
  // Years are counted from March on, so that a leap day is the last of its year; 146,097 days are 400 years.
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const leaps = Math.floor(dayOfEra / 1_460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const digits = String(Math.abs(year)).padStart(4, '0');
  return `${year < 0 ? '-' : ''}${digits}-${twoDigits(month)}-${twoDigits(day)}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

/** `HH:MM:SS` behind a date. */
function writeClock(text: Buffer, seconds: number): void {
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  writeTwo(text, timeOfDayStart, hours);
  text[timeOfDayStart + 2] = colon;
  writeTwo(text, timeOfDayStart + 3, minutes - hours * 60);
  text[timeOfDayStart + 5] = colon;
  writeTwo(text, timeOfDayStart + 6, seconds - minutes * 60);
}

const colon = 0x3a;

function writeTwo(text: Buffer, at: number, value: number): void {
  const tens = (value / 10) | 0;
  text[at] = 0x30 + tens;
  text[at + 1] = 0x30 + value - tens * 10;
}

/** As it is where it stands alone; rendered, where it comes often. */
class TextValue extends Value {
  readonly kind = 'text';
  override readonly jsonBytesMax = null;
  override readonly isRaw = true;
  override readonly expectsText: boolean;
  override readonly quoteBytes = 1;

  constructor(expectsText = false) {
    super();
    this.expectsText = expectsText;
  }

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    if (values.kind !== 'bytes') return into.endBroken(at, 'it is no text');
    const [start, end] = [values.starts[place] as number, values.ends[place] as number];
    if (this.expectsText && !isText(values.source, start, end)) throw new NotText();
    if (into.json.string(values.viewed, start, end) || isUtf8(values.source.subarray(start, end)))
      return into.end(at, renderedKinds.string, 0);
    into.endBroken(at, noUtf8);
  }
}

/** Bytes for whoever reads them himself: nothing is made of them. */
export class RawValue extends Value {
  readonly kind = 'text';
  override readonly jsonBytesMax = null;
  override readonly isRaw = true;
  override readonly quoteBytes = 1;

  render(values: PageValues, _: number, into: RenderedValues, at: number): void {
    if (values.kind !== 'bytes') return into.endBroken(at, 'it is no text and no bytes');
    into.json.ascii('""');
    into.end(at, renderedKinds.string, 0);
  }
}

export const noUtf8 = 'its bytes are no UTF-8';

/** A time of a day is text: there is no such type. */
class TimeOfDayValue extends Value {
  readonly kind = 'text';
  override readonly quoteBytes = 1;
  readonly #units: bigint;
  readonly #text = Buffer.alloc(timeBytes);

  constructor(units: bigint) {
    super();
    this.#units = units;
  }

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const seconds = secondsOf(bigAt(values, place), this.#units);
    if (seconds < 0 || seconds >= secondsOfDay) return into.endBroken(at, 'it is no time of a day');
    writeClock(this.#text, seconds);
    into.json.plainString(this.#text, timeOfDayStart, timeBytes);
    into.end(at, renderedKinds.string, 0);
  }
}

class UuidValue extends Value {
  readonly kind = 'text';
  override readonly jsonBytesMax = uuidJsonBytesMax;
  override readonly quoteBytes = 1;

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    if (values.kind !== 'bytes') return into.endBroken(at, 'it is no UUID');
    const hex = values.source.toString('hex', values.starts[place], values.ends[place]);
    if (hex.length !== uuidHexDigits) return into.endBroken(at, 'it is no UUID');
    const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
    into.json.ascii(`"${parts.join('-')}"`);
    into.end(at, renderedKinds.string, 0);
  }
}

const uuidHexDigits = 32;
