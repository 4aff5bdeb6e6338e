/** Finds the fields of a plain row of CSV: one in which no quoted field has a quote, by 16 bytes at a time. */

/** Fields that a row has at most. */
export const fieldsMax: i32 = 256;

const comma: u8 = 0x2c;
const quote: u8 = 0x22;
const lineFeed: u8 = 0x0a;
const carriageReturn: u8 = 0x0d;

/** Where the fields of the row begin and end, without their quotes: addresses of 32 bits. */
const fieldStarts: usize = memory.data((fieldsMax + 1) * 4, 16);
const fieldEnds: usize = memory.data((fieldsMax + 1) * 4, 16);
let found: i32 = 0;

/** Answers how many fields the last row has. */
export function foundFields(): i32 {
  return found;
}

export function fieldStart(field: i32): usize {
  return load<u32>(fieldStarts + ((<usize>field) << 2));
}

export function fieldEnd(field: i32): usize {
  return load<u32>(fieldEnds + ((<usize>field) << 2));
}

/** Finds the fields of the row at an address; answers where the next row begins, and 0 where this one has no
 * end before `last`, more than `fields` fields, or is not plain. */
export function splitRow(start: usize, last: usize, fields: i32): usize {
  let block = start;
  let places = specialsOf(block);
  let field = start;
  let count: i32 = 0;
  // Whether `field` is quoted, and whether its quotes were closed.
  let isQuoted = false;
  let isClosed = false;
  while (block < last) {
    if (places === 0) {
      block += 16;
      places = specialsOf(block);
      continue;
    }
    const at = block + ctz(places);
    places &= places - 1;
    if (at >= last) return 0;
    const byte = load<u8>(at);
    if (byte === quote) {
      if (!isQuoted) {
        if (at !== field) return 0;
        isQuoted = true;
      } else {
        if (isClosed || at + 1 >= last) return 0;
        const follows = load<u8>(at + 1);
        if (follows !== comma && follows !== lineFeed && follows !== carriageReturn) return 0;
        if (count === fields) return 0;
        add(count++, field + 1, at);
        isClosed = true;
      }
      continue;
    }
    if (isQuoted && !isClosed) continue;
    if (!isQuoted) {
      if (count === fields) return 0;
      add(count++, field, at);
    }
    isQuoted = false;
    isClosed = false;
    field = at + 1;
    if (byte !== comma) {
      found = count;
      const isPair = byte === carriageReturn && field < last && load<u8>(field) === lineFeed;
      return isPair ? field + 1 : field;
    }
  }
  return 0;
}

function add(field: i32, start: usize, end: usize): void {
  const place = (<usize>field) << 2;
  store<u32>(fieldStarts + place, <u32>start);
  store<u32>(fieldEnds + place, <u32>end);
}

function specialsOf(at: usize): u32 {
  const bytes = v128.load(at);
  return <u32>(
    i8x16.bitmask(
      v128.or(
        v128.or(i8x16.eq(bytes, i8x16.splat(comma)), i8x16.eq(bytes, i8x16.splat(quote))),
        v128.or(i8x16.eq(bytes, i8x16.splat(lineFeed)), i8x16.eq(bytes, i8x16.splat(carriageReturn))),
      ),
    )
  );
}
