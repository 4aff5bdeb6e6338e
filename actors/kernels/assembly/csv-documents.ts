/**
 * Makes document entries, and values of columns, of rows of a CSV file, as long as the rows are plain: each field is empty or of its column's kind,
 * and no quoted one has a quote in it. Who calls it does all other rows himself, and the first one that is none is where it stops. Entries are
 * as `actors/storage/document-batch.ts` has them; what a row becomes is told in `actors/import/row-writer.ts`.
 */
import { fieldEnd, fieldStart, foundFields, splitRow } from './csv-fields';

export { fieldsMax } from './csv-fields';

/** Bytes of the file that the memory has room for. */
export const sourceBytesMax: i32 = 16_777_216;
/** Bytes of entries that the memory has room for. */
export const entriesBytesMax: i32 = 2_097_152;
/** Rows that are made at once, and columns that metas have. */
export const madeRowsMax: i32 = 1_024;
export const columnsMax: i32 = 128;
/** Bytes of all columns' names as members of an object. */
export const membersBytesMax: i32 = 65_536;

/** Bytes behind a place that copies by vectors may read and write. */
const slack = 64;

/** Address of the bytes of the file. */
export const sourceAddress: usize = memory.data(16_777_216 + 64, 16);
/** Address of the entries that were made. */
export const entriesAddress: usize = memory.data(2_097_152 + 65_536, 16);
/** Address of the columns' kinds by row: `madeRowsMax` bytes a column. */
export const kindsAddress: usize = memory.data(131_072, 16);
/** Address of the columns' values by row: `madeRowsMax` × 8 bytes a column: a double, an integer of 64 bits, or where a text begins and ends. */
export const valuesAddress: usize = memory.data(1_048_576, 16);
/** Address of what is told of each column: its field, its kind, where its member's text begins, and its length; 32 bits each. */
export const columnsAddress: usize = memory.data(2_048, 16);
/** Address of the fields that make the text, 32 bits each. */
export const textsAddress: usize = memory.data(1_024, 16);
/** Address of the members' texts, such as `,"name":`. */
export const membersAddress: usize = memory.data(65_536 + 64, 16);

/** The kinds of columns. */
const intColumn: i32 = 0;
const floatColumn: i32 = 1;
const boolColumn: i32 = 2;
const dateColumn: i32 = 3;
const timeColumn: i32 = 4;

/** Kinds of values, as `actors/columns/value-kinds.ts` numbers them, and two more. */
const missing: u8 = 0;
const falseValue: u8 = 2;
const trueValue: u8 = 3;
const integerValue: u8 = 4;
const floatValue: u8 = 5;
const stringValue: u8 = 6;
const dateValue: u8 = 9;
const timeValue: u8 = 10;
/** An integer that is no exact double. */
export const wideValue: u8 = 11;
/** A number of more digits than a double can tell exactly: its text. */
export const longFloatValue: u8 = 12;

const quote: u8 = 0x22;
const backslash: u8 = 0x5c;
const lineFeed: u8 = 0x0a;
const minus: u8 = 0x2d;
const point: u8 = 0x2e;
const zero: u8 = 0x30;

const headBytes: usize = 16;
const noText: u32 = 0xffff_ffff;
/** Digits that a double tells exactly. */
const exactDigitsMax: i32 = 15;
const wideDigitsMax: i32 = 19;
const exactMax: u64 = 9_007_199_254_740_991;
/** Longer numbers are left to others. */
const floatBytesMax: i32 = 300;

const powersOfTen: usize = memory.data<f64>([
  1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
]);
const daysOfMonths: usize = memory.data<u8>([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]);
const hexDigits: usize = memory.data<u8>([
  0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66,
]);

let fieldCount: i32 = 0;
let columnCount: i32 = 0;
let textCount: i32 = 0;
let idField: i32 = -1;
let membersBytes: usize = 0;
let metaBytesMax: usize = 0;
let idBytesMax: usize = 0;

/** Where the next row begins that was not made; entries' bytes, and values of all their metas together. */
let position: i32 = 0;
let entriesBytes: i32 = 0;
let valueCount: i32 = 0;
/** Where the next byte is written. */
let to: usize = 0;

/**
 * Takes what is told at `columnsAddress`, `textsAddress` and `membersAddress`: how many fields, columns and texts there are, the field of the ids, -1 where
 * a row's number is its id, and how long ids and metas may be.
 */
export function prepareRows(fields: i32, columns: i32, texts: i32, id: i32, idMax: i32, metaMax: i32): void {
  idBytesMax = idMax;
  fieldCount = fields;
  columnCount = columns;
  textCount = texts;
  idField = id;
  metaBytesMax = metaMax;
  membersBytes = 0;
  for (let column = 0; column < columns; column++)
    membersBytes += load<u32>(columnsAddress + ((<usize>column) << 4) + 12);
}

export function nextPosition(): i32 {
  return position;
}

export function writtenBytes(): i32 {
  return entriesBytes;
}

export function writtenValues(): i32 {
  return valueCount;
}

/**
 * Makes the rows that begin at `from` and end before `end`, at most so many, and as many as `bytesMax` bytes of entries have room for; `row` is the first
 * one's number. Answers how many were made.
 */
export function makeRows(from: i32, end: i32, rows: i32, bytesMax: i32, row: f64): i32 {
  const roomEnd = entriesAddress + bytesMax;
  const last = sourceAddress + end;
  let at = sourceAddress + from;
  let made: i32 = 0;
  to = entriesAddress;
  valueCount = 0;
  while (made < rows) {
    const next = splitRow(at, last, fieldCount);
    if (next === 0) break;
    // An empty line is no row.
    if (foundFields() === 1 && fieldStart(0) === fieldEnd(0) && load<u8>(at) !== quote) {
      at = next;
      continue;
    }
    if (foundFields() !== fieldCount) break;
    const raw = next - at;
    // A longer one may not fit into a meta.
    if (raw * 6 + membersBytes + 2 > metaBytesMax) break;
    if (to + headBytes + idBytesMax + membersBytes + raw * 7 + (columnCount << 2) + slack > roomEnd) break;
    const start = to;
    const values = valueCount;
    if (!makeRow(made, row + <f64>made)) {
      to = start;
      valueCount = values;
      break;
    }
    made++;
    at = next;
  }
  position = <i32>(at - sourceAddress);
  entriesBytes = <i32>(to - entriesAddress);
  return made;
}

/** Writes an entry; false where a field is not as it has to be. */
function makeRow(index: i32, number: f64): bool {
  const start = to;
  to += headBytes;
  if (!writeId(number)) return false;
  const text = to;
  let hasText = false;
  for (let at = 0; at < textCount; at++) {
    const field = load<i32>(textsAddress + ((<usize>at) << 2));
    const from = fieldStart(field);
    const end = fieldEnd(field);
    if (from === end) continue;
    if (hasText) store<u8>(to++, lineFeed);
    hasText = true;
    copy(from, end);
  }
  const meta = to;
  store<u8>(to++, 0x7b);
  let isFirst = true;
  for (let column = 0; column < columnCount; column++) {
    const told = columnsAddress + ((<usize>column) << 4);
    const from = fieldStart(load<i32>(told));
    const end = fieldEnd(load<i32>(told));
    const cell = column * madeRowsMax + index;
    if (from === end) {
      store<u8>(kindsAddress + cell, missing);
      continue;
    }
    const member: usize = load<u32>(told + 8);
    copy(isFirst ? member + 1 : member, member + load<u32>(told + 12));
    isFirst = false;
    valueCount++;
    if (!writeValue(load<i32>(told + 4), from, end, cell)) return false;
  }
  if (isFirst) to = meta;
  else store<u8>(to++, 0x7d);
  store<u32>(start, <u32>(to - start));
  store<u16>(start + 4, <u16>(text - start - headBytes));
  store<u16>(start + 6, 0);
  store<u32>(start + 8, hasText ? <u32>(meta - text) : noText);
  store<u32>(start + 12, <u32>(to - meta));
  return true;
}

function writeId(number: f64): bool {
  if (idField < 0) {
    writeNatural(<u64>number);
    return true;
  }
  const from = fieldStart(idField);
  const end = fieldEnd(idField);
  if (from === end || end - from > idBytesMax) return false;
  for (let at = from; at < end; at++) {
    const byte = load<u8>(at);
    if (byte < 0x20 || byte >= 0x7f) return false;
  }
  copy(from, end);
  return true;
}

function writeNatural(number: u64): void {
  let digits: usize = 1;
  for (let bound: u64 = 10; number >= bound; bound *= 10) digits++;
  for (let at = to + digits; at > to; number /= 10) store<u8>(--at, zero + <u8>(number % 10));
  to += digits;
}

function copy(from: usize, end: usize): void {
  let target = to;
  for (let at = from; at < end; at += 16, target += 16) v128.store(target, v128.load(at));
  to += end - from;
}

function keep(cell: i32, kind: u8, value: f64): void {
  store<u8>(kindsAddress + cell, kind);
  store<f64>(valuesAddress + ((<usize>cell) << 3), value);
}

/** Keeps as a cell's value where its text lies. */
function keepPlace(cell: i32, kind: u8, from: usize, end: usize): void {
  store<u8>(kindsAddress + cell, kind);
  const place = valuesAddress + ((<usize>cell) << 3);
  store<u32>(place, <u32>(from - sourceAddress));
  store<u32>(place + 4, <u32>(end - sourceAddress));
}

/** Writes a value as JSON; false where it is not of its column's kind. */
function writeValue(kind: i32, from: usize, end: usize, cell: i32): bool {
  switch (kind) {
    case intColumn:
      return writeInt(from, end, cell);
    case floatColumn:
      return writeFloat(from, end, cell);
    case boolColumn:
      return writeBool(from, end, cell);
    case dateColumn:
    case timeColumn:
      return writeTemporal(kind, from, end, cell);
    default:
      keepPlace(cell, stringValue, from, end);
      return writeString(from, end);
  }
}

/** A whole number as JSON has it, within 64 bits. */
function writeInt(from: usize, end: usize, cell: i32): bool {
  const isNegative = load<u8>(from) === minus;
  const first = isNegative ? from + 1 : from;
  const digits = <i32>(end - first);
  if (digits === 0 || digits > wideDigitsMax) return false;
  if (load<u8>(first) === zero && end - from > 1) return false;
  let value: u64 = 0;
  for (let at = first; at < end; at++) {
    const digit = load<u8>(at) - zero;
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  if (value <= exactMax) {
    keep(cell, integerValue, isNegative ? -(<f64>value) : <f64>value);
  } else {
    const greatest: u64 = <u64>i64.MAX_VALUE + (isNegative ? 1 : 0);
    if (value > greatest) return false;
    store<u8>(kindsAddress + cell, wideValue);
    store<u64>(valuesAddress + ((<usize>cell) << 3), isNegative ? 0 - value : value);
  }
  copy(from, end);
  return true;
}

/** A number with a fraction or without, as JSON has it, but for exponents. */
function writeFloat(from: usize, end: usize, cell: i32): bool {
  const isNegative = load<u8>(from) === minus;
  const first = isNegative ? from + 1 : from;
  if (end - from > <usize>floatBytesMax) return false;
  let value: f64 = 0;
  let at = first;
  for (; at < end; at++) {
    const digit = load<u8>(at) - zero;
    if (digit > 9) break;
    value = value * 10 + <f64>digit;
  }
  if (at === first || (load<u8>(first) === zero && at > first + 1)) return false;
  const isShort = <i32>(end - from) <= exactDigitsMax;
  let fraction: usize = 0;
  if (at === end) {
    if (!isShort || (isNegative && value === 0)) return false;
  } else {
    if (load<u8>(at++) !== point || at === end) return false;
    fraction = end - at;
    for (; at < end; at++) {
      const digit = load<u8>(at) - zero;
      if (digit > 9) return false;
      value = value * 10 + <f64>digit;
    }
  }
  copy(from, end);
  if (fraction === 0) {
    store<u8>(to, point);
    store<u8>(to + 1, zero);
    to += 2;
  }
  if (isShort) {
    const quotient = value / load<f64>(powersOfTen + (fraction << 3));
    keep(cell, floatValue, isNegative ? -quotient : quotient);
  } else keepPlace(cell, longFloatValue, from, end);
  return true;
}

/** `true` or `false`, in any case. */
function writeBool(from: usize, end: usize, cell: i32): bool {
  const length = end - from;
  if (length < 4 || length > 5) return false;
  // The letter's bit that tells lower from upper case.
  const word = load<u32>(from) | 0x2020_2020;
  if (length === 4 && word === 0x6575_7274) {
    keep(cell, trueValue, 0);
    store<u32>(to, 0x6575_7274);
    to += 4;
    return true;
  }
  if (length === 5 && word === 0x736c_6166 && (load<u8>(from + 4) | 0x20) === 0x65) {
    keep(cell, falseValue, 0);
    store<u32>(to, 0x736c_6166);
    store<u8>(to + 4, 0x65);
    to += 5;
    return true;
  }
  return false;
}

/** `YYYY-MM-DD`, or `YYYY-MM-DD HH:MM:SS`. */
function writeTemporal(kind: i32, from: usize, end: usize, cell: i32): bool {
  if (end - from !== (kind === dateColumn ? 10 : 19)) return false;
  const days = daysAt(from);
  if (days === noDays) return false;
  if (kind === dateColumn) keep(cell, dateValue, <f64>days);
  else {
    const hour = twoDigits(from + 11);
    const minute = twoDigits(from + 14);
    const second = twoDigits(from + 17);
    if (load<u8>(from + 10) !== 0x20 || load<u8>(from + 13) !== 0x3a || load<u8>(from + 16) !== 0x3a)
      return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return false;
    keep(cell, timeValue, <f64>days * 86_400 + <f64>(hour * 3_600 + minute * 60 + second));
  }
  store<u8>(to++, quote);
  copy(from, end);
  store<u8>(to++, quote);
  return true;
}

const noDays: i32 = i32.MIN_VALUE;

/** Days since 1970 of the date at an address; `noDays` where there is none. */
function daysAt(at: usize): i32 {
  const century = twoDigits(at);
  const yearOfCentury = twoDigits(at + 2);
  const month = twoDigits(at + 5);
  const day = twoDigits(at + 8);
  if (load<u8>(at + 4) !== minus || load<u8>(at + 7) !== minus) return noDays;
  if ((century | yearOfCentury | month | day) < 0) return noDays;
  const year = century * 100 + yearOfCentury;
  if (month < 1 || month > 12 || day < 1 || day > <i32>load<u8>(daysOfMonths + month - 1)) return noDays;
  if (month === 2 && day === 29 && (year % 4 !== 0 || (year % 100 === 0 && year % 400 !== 0))) return noDays;
  // A year begins with March, so that the day which is not always there is its last; 400 more, so that nothing is negative.
  const shifted = (month <= 2 ? year - 1 : year) + 400;
  const era = shifted / 400;
  const yearOfEra = shifted - era * 400;
  const dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear;
  return (era - 1) * 146_097 + dayOfEra - 719_468;
}

/** Answers the number that two digits at an address make; a negative one where they are no digits. */
function twoDigits(at: usize): i32 {
  const tens = load<u8>(at) - zero;
  const ones = load<u8>(at + 1) - zero;
  return tens <= 9 && ones <= 9 ? <i32>tens * 10 + <i32>ones : -1;
}

/** A text in quotes, escaped as JSON.stringify does. */
function writeString(from: usize, end: usize): bool {
  store<u8>(to++, quote);
  for (let at = from; at < end; ) {
    const bytes = v128.load(at);
    v128.store(to, bytes);
    const escaped = v128.or(
      v128.or(i8x16.eq(bytes, i8x16.splat(quote)), i8x16.eq(bytes, i8x16.splat(backslash))),
      i8x16.lt_u(bytes, i8x16.splat(0x20)),
    );
    const places: u32 = <u32>i8x16.bitmask(escaped);
    const plain: usize = places === 0 ? 16 : ctz(places);
    if (at + plain >= end) {
      to += end - at;
      break;
    }
    at += plain;
    to += plain;
    if (places !== 0) writeEscaped(load<u8>(at++));
  }
  store<u8>(to++, quote);
  return true;
}

function writeEscaped(byte: u8): void {
  store<u8>(to++, backslash);
  let letter: u8 = byte;
  if (byte < 0x20)
    letter =
      byte === 0x08
        ? 0x62
        : byte === 0x09
          ? 0x74
          : byte === 0x0a
            ? 0x6e
            : byte === 0x0c
              ? 0x66
              : byte === 0x0d
                ? 0x72
                : 0x75;
  store<u8>(to++, letter);
  if (letter !== 0x75) return;
  store<u16>(to, 0x3030);
  store<u8>(to + 2, load<u8>(hexDigits + (byte >> 4)));
  store<u8>(to + 3, load<u8>(hexDigits + (byte & 15)));
  to += 4;
}
