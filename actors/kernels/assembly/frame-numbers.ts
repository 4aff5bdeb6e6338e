/**
 * Picks the rows of a frame whose number lies in a range, or outside of it, and adds up its numbers, by vectors of 16 bytes where all rows are
 * looked at. Numbers are whole, of
 * 8, 16 or 32 bits without a sign, or of 64 bits with one. A number less than the first of a range lies past any span, because the
 * difference has no sign either.
 */

/** How many rows are looked at in one call, at most. */
export const rowsMax: i32 = 16_384;
/** Address of the numbers. Some behind them may be read, and count for nothing. */
export const numbersAddress: usize = memory.data(rowsMax * 8 + 16, 16);
/** Address of the rows: those that are looked at, where not all are, and then those that were picked, ascending. */
export const rowsAddress: usize = memory.data(rowsMax * 4 + 64, 16);

let rowsEnd: usize = 0;

/** Answers how many of `count` bytes are picked; `outside` is 0, or -1 where those outside of the range are meant. */
export function allOfBytes(count: i32, from: u32, span: u32, outside: i32): i32 {
  const first = i8x16.splat(<i8>from);
  const last = i8x16.splat(<i8>span);
  rowsEnd = rowsAddress;
  for (let row: i32 = 0; row < count; row += 16) {
    const different = i8x16.sub(v128.load(numbersAddress + <usize>row), first);
    const mask = (i8x16.bitmask(i8x16.le_u(different, last)) ^ outside) & maskOf(count - row, 16);
    addRows(row, mask, 16);
  }
  return <i32>((rowsEnd - rowsAddress) >> 2);
}

/** Answers how many of `count` numbers of 16 bits are picked, as `allOfBytes` does. */
export function allOfShorts(count: i32, from: u32, span: u32, outside: i32): i32 {
  const first = i16x8.splat(<i16>from);
  const last = i16x8.splat(<i16>span);
  rowsEnd = rowsAddress;
  for (let row: i32 = 0; row < count; row += 8) {
    const different = i16x8.sub(v128.load(numbersAddress + ((<usize>row) << 1)), first);
    const mask = (i16x8.bitmask(i16x8.le_u(different, last)) ^ outside) & maskOf(count - row, 8);
    addRows(row, mask, 8);
  }
  return <i32>((rowsEnd - rowsAddress) >> 2);
}

/** Answers how many of `count` numbers of 32 bits are picked, as `allOfBytes` does. */
export function allOfWords(count: i32, from: u32, span: u32, outside: i32): i32 {
  const first = i32x4.splat(from);
  const last = i32x4.splat(span);
  rowsEnd = rowsAddress;
  for (let row: i32 = 0; row < count; row += 4) {
    const different = i32x4.sub(v128.load(numbersAddress + ((<usize>row) << 2)), first);
    const mask = (i32x4.bitmask(i32x4.le_u(different, last)) ^ outside) & maskOf(count - row, 4);
    addRows(row, mask, 4);
  }
  return <i32>((rowsEnd - rowsAddress) >> 2);
}

/** Answers how many of `count` numbers of 64 bits with a sign are picked, from `least` to `greatest`, as `allOfBytes` does. */
export function allOfWide(count: i32, least: i64, greatest: i64, outside: i32): i32 {
  const first = i64x2.splat(least);
  const last = i64x2.splat(greatest);
  rowsEnd = rowsAddress;
  for (let row: i32 = 0; row < count; row += 4) {
    const place = numbersAddress + ((<usize>row) << 3);
    const near = v128.load(place);
    const far = v128.load(place, 16);
    const nearMask = i64x2.bitmask(v128.and(i64x2.ge_s(near, first), i64x2.le_s(near, last)));
    const farMask = i64x2.bitmask(v128.and(i64x2.ge_s(far, first), i64x2.le_s(far, last)));
    addRows(row, ((nearMask | (farMask << 2)) ^ outside) & maskOf(count - row, 4), 4);
  }
  return <i32>((rowsEnd - rowsAddress) >> 2);
}

/** Answers how many of `count` rows at `rowsAddress` are picked by their bytes. */
export function someOfBytes(count: i32, from: u32, span: u32, outside: i32): i32 {
  let end = rowsAddress;
  for (let i = 0; i < count; i++) {
    const row = load<u32>(rowsAddress + ((<usize>i) << 2));
    store<u32>(end, row);
    const isInside = <u32>load<u8>(numbersAddress + row) - from <= span;
    end += (<usize>(isInside ^ (outside !== 0))) << 2;
  }
  return <i32>((end - rowsAddress) >> 2);
}

/** Answers how many of `count` rows at `rowsAddress` are picked by their numbers of 16 bits. */
export function someOfShorts(count: i32, from: u32, span: u32, outside: i32): i32 {
  let end = rowsAddress;
  for (let i = 0; i < count; i++) {
    const row = load<u32>(rowsAddress + ((<usize>i) << 2));
    store<u32>(end, row);
    const isInside = <u32>load<u16>(numbersAddress + (row << 1)) - from <= span;
    end += (<usize>(isInside ^ (outside !== 0))) << 2;
  }
  return <i32>((end - rowsAddress) >> 2);
}

/** Answers how many of `count` rows at `rowsAddress` are picked by their numbers of 32 bits. */
export function someOfWords(count: i32, from: u32, span: u32, outside: i32): i32 {
  let end = rowsAddress;
  for (let i = 0; i < count; i++) {
    const row = load<u32>(rowsAddress + ((<usize>i) << 2));
    store<u32>(end, row);
    const isInside = load<u32>(numbersAddress + (row << 2)) - from <= span;
    end += (<usize>(isInside ^ (outside !== 0))) << 2;
  }
  return <i32>((end - rowsAddress) >> 2);
}

/** Answers how many of `count` rows at `rowsAddress` are picked by their numbers of 64 bits with a sign, from `least` to `greatest`. */
export function someOfWide(count: i32, least: i64, greatest: i64, outside: i32): i32 {
  let end = rowsAddress;
  for (let i = 0; i < count; i++) {
    const row = load<u32>(rowsAddress + ((<usize>i) << 2));
    store<u32>(end, row);
    const number = load<i64>(numbersAddress + (row << 3));
    const isInside = least <= number && number <= greatest;
    end += (<usize>(isInside !== (outside !== 0))) << 2;
  }
  return <i32>((end - rowsAddress) >> 2);
}

/** A bit for each of the rows that are left, at most `width` of them. */
function maskOf(left: i32, width: i32): i32 {
  return left >= width ? (1 << width) - 1 : (1 << left) - 1;
}

/** Adds the rows behind `row` whose bits are set. */
function addRows(row: i32, mask: i32, width: i32): void {
  if (mask === 0) return;
  let end = rowsEnd;
  if (mask === (1 << width) - 1) {
    // All of them: four at a time.
    let four = i32x4.add(i32x4.splat(row), i32x4(0, 1, 2, 3));
    for (let at = 0; at < width; at += 4) {
      v128.store(end, four);
      four = i32x4.add(four, i32x4.splat(4));
      end += 16;
    }
  } else {
    for (let bits = mask; bits !== 0; bits &= bits - 1) {
      store<u32>(end, row + ctz(bits));
      end += 4;
    }
  }
  rowsEnd = end;
}

/** Adds up `count` bytes, as a number that a double holds exactly. */
export function totalOfBytes(count: i32): f64 {
  let sums = i32x4.splat(0);
  let at: i32 = 0;
  for (; at + 16 <= count; at += 16) {
    const pairs = i16x8.extadd_pairwise_i8x16_u(v128.load(numbersAddress + <usize>at));
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(pairs));
  }
  let total: u64 = sumOfLanes(sums);
  for (; at < count; at++) total += load<u8>(numbersAddress + <usize>at);
  return <f64>total;
}

/** Adds up `count` numbers of 16 bits: as many as a frame has come to less than 2^32 in each lane. */
export function totalOfShorts(count: i32): f64 {
  let sums = i32x4.splat(0);
  let at: i32 = 0;
  for (; at + 8 <= count; at += 8)
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(v128.load(numbersAddress + ((<usize>at) << 1))));
  let total: u64 = sumOfLanes(sums);
  for (; at < count; at++) total += load<u16>(numbersAddress + ((<usize>at) << 1));
  return <f64>total;
}

/** Adds up `count` numbers of 32 bits, as a number that a double holds exactly. */
export function totalOfWords(count: i32): f64 {
  let sums = i64x2.splat(0);
  let at: i32 = 0;
  for (; at + 4 <= count; at += 4) {
    const words = v128.load(numbersAddress + ((<usize>at) << 2));
    sums = i64x2.add(sums, i64x2.add(i64x2.extend_low_i32x4_u(words), i64x2.extend_high_i32x4_u(words)));
  }
  let total: u64 = i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1);
  for (; at < count; at++) total += load<u32>(numbersAddress + ((<usize>at) << 2));
  return <f64>total;
}

/** Adds up the lower halves, without a sign, of `count` numbers of 64 bits. */
export function totalOfLows(count: i32): f64 {
  const lows = i64x2.splat(0xffff_ffff);
  let sums = i64x2.splat(0);
  let at: i32 = 0;
  for (; at + 2 <= count; at += 2)
    sums = i64x2.add(sums, v128.and(v128.load(numbersAddress + ((<usize>at) << 3)), lows));
  let total: u64 = i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1);
  for (; at < count; at++) total += load<u32>(numbersAddress + ((<usize>at) << 3));
  return <f64>total;
}

/** Adds up the upper halves, with a sign, of `count` numbers of 64 bits. */
export function totalOfHighs(count: i32): f64 {
  let sums = i64x2.splat(0);
  let at: i32 = 0;
  for (; at + 2 <= count; at += 2)
    sums = i64x2.add(sums, i64x2.shr_s(v128.load(numbersAddress + ((<usize>at) << 3)), 32));
  let total: i64 = i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1);
  for (; at < count; at++) total += load<i32>(numbersAddress + ((<usize>at) << 3), 4);
  return <f64>total;
}

function sumOfLanes(sums: v128): u64 {
  const halves = i64x2.add(i64x2.extend_low_i32x4_u(sums), i64x2.extend_high_i32x4_u(sums));
  return i64x2.extract_lane(halves, 0) + i64x2.extract_lane(halves, 1);
}
