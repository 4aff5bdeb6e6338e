/**
 * Finds a piece of ASCII text of at most 32 bytes, case ignored, by 32 places at a time: two of its bytes, the anchors, are
 * compared in all of them at once, and the whole piece where both are there. A place costs the same whatever the bytes are.
 *
 * A byte is equal when `byte | mask` is the folded byte: the mask of a letter is the bit that tells lower from upper case.
 */

/** Bytes that are compared at once: two vectors. */
export const comparedBytes = 32;
/** Bytes behind the text that may be read with it, of which nothing is said. */
const slackBytes = 2 * comparedBytes;

/** Bytes of text that the memory has room for: a block whose texts are judged together. */
export const textBytesMax: i32 = 524_288;
/** Address of the folded bytes of the piece, padded to 32 with 0xff. */
export const foldsAddress: usize = memory.data(comparedBytes, 16);
/** Address of the masks of these bytes, padded to 32 with 0xff. */
export const masksAddress: usize = memory.data(comparedBytes, 16);
/** Address of the text to look through. */
export const textAddress: usize = memory.data(textBytesMax + slackBytes, 16);

let length: i32 = 0;
let firstAnchor: usize = 0;
let secondAnchor: usize = 0;
let firstFold: v128 = i8x16.splat(0);
let firstMask: v128 = i8x16.splat(0);
let secondFold: v128 = i8x16.splat(0);
let secondMask: v128 = i8x16.splat(0);

/** Takes the piece that lies at `foldsAddress` and `masksAddress`: its length, and the places of its anchors. */
export function prepare(pieceLength: i32, first: i32, second: i32): void {
  length = pieceLength;
  firstAnchor = first;
  secondAnchor = second;
  firstFold = i8x16.splat(load<i8>(foldsAddress + first));
  firstMask = i8x16.splat(load<i8>(masksAddress + first));
  secondFold = i8x16.splat(load<i8>(foldsAddress + second));
  secondMask = i8x16.splat(load<i8>(masksAddress + second));
}

/** Answers where in the text the piece begins first, at or after `from` and wholly before `stop`; -1 where it does not. */
export function find(from: i32, stop: i32): i32 {
  const end: usize = textAddress + stop - length + 1;
  // Locals stay in registers; what lies outside of a function is loaded in each round, and halves the speed.
  const fold = firstFold;
  const mask = firstMask;
  const otherFold = secondFold;
  const otherMask = secondMask;
  const first = firstAnchor;
  const second = secondAnchor;
  let at: usize = textAddress + from;
  for (; at + 32 <= end; at += 32) {
    const near = v128.and(
      equal(v128.load(at + first), fold, mask),
      equal(v128.load(at + second), otherFold, otherMask),
    );
    const far = v128.and(
      equal(v128.load(at + first, 16), fold, mask),
      equal(v128.load(at + second, 16), otherFold, otherMask),
    );
    if (!v128.any_true(v128.or(near, far))) continue;
    let places: u32 = <u32>i8x16.bitmask(near) | ((<u32>i8x16.bitmask(far)) << 16);
    for (; places !== 0; places &= places - 1) {
      const place = at + ctz(places);
      if (isAt(place, foldsAddress, masksAddress)) return <i32>(place - textAddress);
    }
  }
  for (; at < end; at++) if (isAt(at, foldsAddress, masksAddress)) return <i32>(at - textAddress);
  return -1;
}

/** Which of 16 bytes are the folded byte, case ignored as the mask says: all bits of a lane, or none. */
function equal(bytes: v128, fold: v128, mask: v128): v128 {
  return i8x16.eq(v128.or(bytes, mask), fold);
}

/** Whether the bytes at an address are those at `folds`, case ignored as `masks` say; both are padded to 32 with 0xff. */
export function isAt(at: usize, folds: usize, masks: usize): bool {
  const head = equal(v128.load(at), v128.load(folds), v128.load(masks));
  const tail = equal(v128.load(at, 16), v128.load(folds, 16), v128.load(masks, 16));
  return i8x16.all_true(v128.and(head, tail));
}
