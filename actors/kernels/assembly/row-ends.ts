/**
 * Passes over rows of a text file and counts them: lines of JSON, or rows of CSV, whose line ends may stand in quotes. Where all rows are well
 * written they are those that a reader finds; whether they are is nothing to it.
 */

/** Bytes of text that the memory has room for. */
export const passedBytesMax: i32 = 1_048_576;
/** Address of the text: 16 bytes behind it may be read, of which nothing is said. */
export const passedAddress: usize = memory.data(passedBytesMax + 16, 16);

const lineFeed: u8 = 0x0a;
const carriageReturn: u8 = 0x0d;
const quote: u8 = 0x22;
const space: u8 = 0x20;
const tab: u8 = 0x09;

/** Whether the row under way has begun in bytes that came before, and whether they end in quotes. */
let hasBegun: bool = false;
let isQuoted: bool = false;
let count: i32 = 0;

/** Begins with the first byte of a row. */
export function begin(): void {
  hasBegun = false;
  isQuoted = false;
  count = 0;
}

/** Answers how many rows have ended. */
export function rowCount(): i32 {
  return count;
}

/** Whether bytes of a row have come whose end has not. */
export function isWithin(): bool {
  return hasBegun;
}

/**
 * Passes over the next bytes of a CSV file, until so many rows have ended in all; answers how many bytes were passed. A row ends with a line
 * feed, a carriage return or both, of which the second is an empty line; empty lines are no rows.
 */
export function passCsv(length: i32, rowsMax: i32): i32 {
  const feeds = i8x16.splat(lineFeed);
  const returns = i8x16.splat(carriageReturn);
  const quotes = i8x16.splat(quote);
  let rowStart: i32 = 0;
  for (let from: i32 = 0; from < length; from += 16) {
    const bytes = v128.load(passedAddress + from);
    const found = v128.or(v128.or(i8x16.eq(bytes, feeds), i8x16.eq(bytes, returns)), i8x16.eq(bytes, quotes));
    for (let places = placesOf(found, length - from); places !== 0; places &= places - 1) {
      const at = from + ctz(places);
      if (load<u8>(passedAddress + at) === quote) {
        isQuoted = !isQuoted;
        continue;
      }
      if (isQuoted) continue;
      const isRow = hasBegun || at > rowStart;
      rowStart = at + 1;
      hasBegun = false;
      if (isRow && ++count === rowsMax) return rowStart;
    }
  }
  if (length > rowStart) hasBegun = true;
  return length;
}

/** Passes over the next bytes of a file whose rows are its lines, until so many rows have ended in all; answers how many bytes were passed. Lines of nothing but spaces, tabs and carriage returns are no rows. */
export function passLines(length: i32, rowsMax: i32): i32 {
  const feeds = i8x16.splat(lineFeed);
  let rowStart: i32 = 0;
  for (let from: i32 = 0; from < length; from += 16) {
    const found = i8x16.eq(v128.load(passedAddress + from), feeds);
    for (let places = placesOf(found, length - from); places !== 0; places &= places - 1) {
      const at = from + ctz(places);
      const isRow = hasBegun || hasValue(rowStart, at);
      rowStart = at + 1;
      hasBegun = false;
      if (isRow && ++count === rowsMax) return rowStart;
    }
  }
  if (hasValue(rowStart, length)) hasBegun = true;
  return length;
}

/** Which of the first `length` of 16 lanes are set, as bits. */
function placesOf(lanes: v128, length: i32): i32 {
  const places: i32 = i8x16.bitmask(lanes);
  return length < 16 ? places & ((1 << length) - 1) : places;
}

function hasValue(start: i32, end: i32): bool {
  for (let at = start; at < end; at++) {
    const byte = load<u8>(passedAddress + at);
    if (byte !== space && byte !== tab && byte !== carriageReturn) return true;
  }
  return false;
}
