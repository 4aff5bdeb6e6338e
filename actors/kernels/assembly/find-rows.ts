/**
 * Finds, in document entries that follow each other, those whose texts have a literal: by a piece of it (find-piece.ts), and where the
 * literal is short ASCII by all of it. Entries are as `actors/storage/document-batch.ts` writes them, and were checked: lengths lead from
 * each to the next.
 */
import { comparedBytes, find, isAt, textAddress, textBytesMax } from './find-piece';

export {
  foldsAddress,
  masksAddress,
  prepare as preparePiece,
  textAddress,
  textBytesMax,
} from './find-piece';

/** Bytes before the id, and where among them the lengths of id and text stand. */
const headBytes: usize = 16;
const idLengthAt: usize = 4;
const textLengthAt: usize = 8;
const noText: u32 = 0xffff_ffff;

/** Marks a row of which only the piece was found. */
const unsure: u32 = 0x8000_0000;

/** Address of the folded bytes of the literal, padded to 32 with 0xff. */
export const literalFoldsAddress: usize = memory.data(comparedBytes, 16);
/** Address of the masks of these bytes, padded to 32 with 0xff. */
export const literalMasksAddress: usize = memory.data(comparedBytes, 16);
/** Address of the rows that were found: as many as there may be entries. */
export const foundAddress: usize = memory.data((textBytesMax / 16 + 1) * 4, 16);

let literalLength: i32 = 0;
let pieceStart: usize = 0;
let isSureOnly: bool = false;

/**
 * Takes the literal that lies at `literalFoldsAddress` and `literalMasksAddress`: its length, 0 where it is not to be compared; where in
 * it the piece begins; and whether a text without it has no match, so that its piece alone is nothing.
 */
export function prepareLiteral(length: i32, start: i32, sureOnly: bool): void {
  literalLength = length;
  pieceStart = start;
  isSureOnly = sureOnly;
}

/**
 * Writes to `foundAddress` which of the entries from `start` to `stop` have the literal in their texts, counted from 0, ascending, and
 * answers how many they are. A piece may also lie in an id, a meta or a vector, or reach out of a text.
 */
export function findRows(start: i32, stop: i32): i32 {
  let entry: usize = textAddress + start;
  let from = start;
  let row: u32 = 0;
  let found: i32 = 0;
  for (let place = find(from, stop); place >= 0; place = find(from, stop)) {
    const at = textAddress + place;
    let next = entry + load<u32>(entry);
    for (; next <= at; row++) {
      entry = next;
      next += load<u32>(next);
    }
    const text = entry + headBytes + load<u16>(entry + idLengthAt);
    if (at < text) {
      from = <i32>(text - textAddress);
      continue;
    }
    const length = load<u32>(entry + textLengthAt);
    const textEnd = length === noText ? text : text + length;
    if (at < textEnd) {
      const isSure = hasLiteral(at, text, textEnd);
      if (isSure || !isSureOnly) {
        store<u32>(foundAddress + ((<usize>found) << 2), isSure ? row : row | unsure);
        found++;
      }
    }
    from = <i32>(next - textAddress);
  }
  return found;
}

/** Whether the literal lies in the text around the piece at `at`. */
function hasLiteral(at: usize, text: usize, textEnd: usize): bool {
  if (literalLength === 0 || at < text + pieceStart) return false;
  const begin = at - pieceStart;
  return begin + literalLength <= textEnd && isAt(begin, literalFoldsAddress, literalMasksAddress);
}
