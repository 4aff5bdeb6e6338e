import { assert } from '../../src/base/assert.ts';

export type Vocabulary = readonly (readonly [piece: string, score: number | null])[];

export const unknownId = 0;
/** Unknown, begin, end and three without a use: they stand in no text. */
const reservedIds = 6;
const slotBits = 16;
const wordMark = '▁';
/**
 * Putting marks in order is quadratic in their number: a text of nothing else would take 15 s. No writing stacks more.
 * The halfwidth voicing marks become such marks.
 */
const marksInARow = /([\p{M}\uff9e\uff9f]{64})[\p{M}\uff9e\uff9f]+/gu;

/**
 * Text to the ids of a SentencePiece unigram vocabulary: of all ways to cut a text into pieces, the one whose pieces'
 * scores have the largest sum. The ids are those of the tokenizer that the model was published with, one by one.
 *
 * 1. The text is cut to what can matter, brought to NFKC, and each space becomes `▁`, with one more in front.
 * 2. From each place, every piece that begins there is followed through a trie, and offers the place behind it a sum.
 *    A place keeps its best offer; of equal ones the last, which is that of the shortest piece. A sum of 0 counts as no
 *    offer at all, so it gives way to any: the published tokenizer does so, and texts that begin with a colon show it.
 *    A character that no piece begins with is unknown: id 0, score 0.
 * 3. From the end back, the kept pieces are the ids; unknown ones in a row are one.
 *
 * Hot: 13 MB of source code a second; the model reads some 40 KB in that time. Characters are UTF-16 units: all pieces are of the first plane, so the
 * halves of a character beyond it are two unknown ones, which is one.
 */
export class UnigramTokenizer {
  /** The class of each UTF-16 unit: 1 … 255 where some piece has it, else 0. */
  readonly #classOf = new Uint8Array(0x10000);
  /** The trie: node × 256 + class → child, with open addressing. The root is node 0, so a child is never 0. */
  readonly #keys = new Uint32Array(1 << slotBits);
  readonly #children = new Uint16Array(1 << slotBits);
  /** The id of the piece that ends at each node, else 0. */
  readonly #pieceAt = new Uint16Array(1 << slotBits);
  readonly #scores: Float64Array;
  readonly #lengths: Uint8Array;
  readonly #longestPiece: number;
  #nodes = 1;
  #classes = 0;

  constructor(vocabulary: Vocabulary) {
    // The pieces with a colon are null in the published vocabulary, and the published tokenizer adds that as 0.
    this.#scores = Float64Array.from(vocabulary, ([, score]) => score ?? 0);
    this.#lengths = Uint8Array.from(vocabulary, ([piece]) => piece.length);
    this.#longestPiece = Math.max(...this.#lengths);
    // A piece that stands there twice has the later id.
    for (let id = reservedIds; id < vocabulary.length; id++) this.#addPiece(vocabulary[id]?.[0] ?? '', id);
    for (let each = 1; each <= this.#classes; each++) {
      const id = this.#pieceAt[this.#child(0, each)];
      assert(id !== 0, () => 'a character of some piece is no piece: not every place of a text has an offer');
    }
  }

  /** The first ids of a text, no more than `idsMax`. Time and memory are bounded by that, not by the text. */
  encode(text: string, idsMax: number): Uint16Array {
    const symbols = symbolsOf(text.slice(0, idsMax * this.#longestPiece));
    return mergeUnknown(this.#bestPieces(symbols)).slice(0, idsMax);
  }

  #addPiece(piece: string, id: number): void {
    let node = 0;
    for (let i = 0; i < piece.length; i++) {
      const unit = piece.charCodeAt(i);
      if (this.#classOf[unit] === 0) this.#classOf[unit] = ++this.#classes;
      node = this.#child(node, this.#classOf[unit] as number) || this.#addChild(node, unit);
    }
    this.#pieceAt[node] = id;
  }

  #addChild(node: number, unit: number): number {
    assert(this.#classes < 256 && this.#nodes < 1 << 15, () => 'the vocabulary is too large for its trie');
    const slot = this.#slot(node * 256 + (this.#classOf[unit] as number));
    this.#keys[slot] = node * 256 + (this.#classOf[unit] as number);
    this.#children[slot] = this.#nodes;
    return this.#nodes++;
  }

  #child(node: number, unitClass: number): number {
    return this.#children[this.#slot(node * 256 + unitClass)] as number;
  }

  /** Where a key is, or where it would be put. */
  #slot(key: number): number {
    let slot = Math.imul(key, 0x9e3779b1) >>> (32 - slotBits);
    while (this.#keys[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & ((1 << slotBits) - 1);
    return slot;
  }

  /** The pieces of the best way, from the last to the first. */
  #bestPieces(symbols: string): Uint16Array {
    const best = new Float64Array(symbols.length + 1);
    const pieceBefore = new Uint16Array(symbols.length + 1);
    for (let start = 0; start < symbols.length; start++) this.#offerFrom(symbols, start, best, pieceBefore);
    const pieces = new Uint16Array(symbols.length);
    let count = 0;
    for (let at = symbols.length; at > 0; at -= this.#lengths[pieceBefore[at] as number] as number) {
      pieces[count++] = pieceBefore[at] as number;
    }
    return pieces.subarray(0, count);
  }

  #offerFrom(symbols: string, start: number, best: Float64Array, pieceBefore: Uint16Array): void {
    const sum = best[start] as number;
    let node = 0;
    let isKnown = false;
    for (let end = start; end < symbols.length; ) {
      const unitClass = this.#classOf[symbols.charCodeAt(end++)] as number;
      node = unitClass === 0 ? 0 : this.#child(node, unitClass);
      if (node === 0) break;
      const id = this.#pieceAt[node] as number;
      if (id === 0) continue;
      isKnown = true;
      const offer = sum + (this.#scores[id] as number);
      if (best[end] !== 0 && offer < (best[end] as number)) continue;
      best[end] = offer;
      pieceBefore[end] = id;
    }
    // As every character of a piece is a piece too, no piece ends behind this one: there is no other offer.
    if (isKnown) return;
    best[start + 1] = sum;
    pieceBefore[start + 1] = unknownId;
  }
}

function symbolsOf(text: string): string {
  const normal = text.replace(marksInARow, '$1').normalize('NFKC');
  return normal === '' ? '' : wordMark + normal.replaceAll(' ', wordMark);
}

/** Turns the ids round, and those of unknown characters in a row into one. */
function mergeUnknown(backwards: Uint16Array): Uint16Array {
  const ids = new Uint16Array(backwards.length);
  let count = 0;
  for (let i = backwards.length - 1; i >= 0; i--) {
    const id = backwards[i] as number;
    if (id !== unknownId || count === 0 || ids[count - 1] !== unknownId) ids[count++] = id;
  }
  return ids.subarray(0, count);
}
