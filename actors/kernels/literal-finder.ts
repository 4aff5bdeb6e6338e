import { readFileSync } from 'node:fs';
import { assert } from '../../src/base/assert.ts';

/** Bytes of a piece that is looked for at once. */
export const pieceBytesMax = 32;

/** ASCII text, as the kernel compares it: a byte of text is equal where `byte | mask` is the folded byte. */
export interface FoldedText {
  /** 1 to 32 bytes. */
  readonly folds: Uint8Array;
  readonly masks: Uint8Array;
}

/** A short text that everything has which the literal has. */
export interface FoldedPiece extends FoldedText {
  /** Two places in the piece, whose bytes are looked at first: rare ones. */
  readonly anchors: readonly [number, number];
}

/** What to find, and by what. */
export interface WantedPiece {
  readonly piece: FoldedPiece;
  /** The literal itself; null where it is too long to be compared, or has characters outside of ASCII. */
  readonly literal: FoldedText | null;
  /** Where in the literal the piece begins. */
  readonly pieceStart: number;
  /** Whether a text that has the literal has it as it is written there: then the piece alone is nothing. */
  readonly isExact: boolean;
}

/** What assembly/find-rows.ts exports. */
interface Kernels {
  readonly memory: WebAssembly.Memory;
  readonly foldsAddress: WebAssembly.Global;
  readonly masksAddress: WebAssembly.Global;
  readonly literalFoldsAddress: WebAssembly.Global;
  readonly literalMasksAddress: WebAssembly.Global;
  readonly textAddress: WebAssembly.Global;
  readonly textBytesMax: WebAssembly.Global;
  readonly foundAddress: WebAssembly.Global;
  readonly preparePiece: (length: number, first: number, second: number) => void;
  readonly prepareLiteral: (length: number, pieceStart: number, isSureOnly: boolean) => void;
  readonly findRows: (start: number, stop: number) => number;
}

/** Set in a row of which only the piece of the literal was found. */
const unsureBit = 0x8000_0000;

/** Finds rows with a short text, case ignored, by vector instructions: some ten bytes a nanosecond. One of a thread does. */
export class LiteralFinder {
  readonly #kernels: Kernels;
  readonly #memory: Buffer;
  readonly #words: Uint32Array;
  readonly #textAddress: number;
  readonly #foundWord: number;
  /** Bytes of entries that are looked through at once, at most. */
  readonly bytesMax: number;
  #prepared: WantedPiece | null = null;

  constructor() {
    const code = new WebAssembly.Module(readFileSync(new URL('find-rows.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(code).exports as unknown as Kernels;
    const { memory, textAddress, textBytesMax, foundAddress } = this.#kernels;
    this.#memory = Buffer.from(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
    this.#textAddress = textAddress.value as number;
    this.#foundWord = (foundAddress.value as number) / 4;
    this.bytesMax = textBytesMax.value as number;
  }

  /**
   * Answers which of some document entries that follow each other have the literal in their texts, or a piece of it: see `rowOf`. The
   * entries, at most `bytesMax` bytes, are copied; the answer stays until the next one.
   */
  find(wanted: WantedPiece, entries: Uint8Array): Uint32Array {
    assert(entries.length <= this.bytesMax, () => 'entries that there is room for');
    if (this.#prepared !== wanted) this.#prepare(wanted);
    if (entries.length === 0) return this.#words.subarray(0, 0);
    // What is shared, `set` copies a word at a time, at two thirds of the speed, and where it is not aligned a byte at a time.
    this.#memory.fill(entries, this.#textAddress, this.#textAddress + entries.length);
    const count = this.#kernels.findRows(0, entries.length);
    return this.#words.subarray(this.#foundWord, this.#foundWord + count);
  }

  #prepare(wanted: WantedPiece): void {
    const { piece, literal, pieceStart, isExact } = wanted;
    const { foldsAddress, masksAddress, literalFoldsAddress, literalMasksAddress } = this.#kernels;
    this.#write(piece, foldsAddress, masksAddress);
    this.#kernels.preparePiece(piece.folds.length, ...piece.anchors);
    if (literal !== null) this.#write(literal, literalFoldsAddress, literalMasksAddress);
    this.#kernels.prepareLiteral(literal?.folds.length ?? 0, pieceStart, isExact);
    this.#prepared = wanted;
  }

  #write({ folds, masks }: FoldedText, foldsAt: WebAssembly.Global, masksAt: WebAssembly.Global): void {
    assert(folds.length > 0 && folds.length <= pieceBytesMax, () => 'a text of 1 to 32 bytes');
    assert(masks.length === folds.length, () => 'a mask for each byte');
    for (const [bytes, at] of [
      [folds, foldsAt.value as number],
      [masks, masksAt.value as number],
    ] as const)
      this.#memory.fill(0xff, at, at + pieceBytesMax).set(bytes, at);
  }
}

/** The number of a found row, counted from the first entry. */
export function rowOf(found: number): number {
  return (found & ~unsureBit) >>> 0;
}

/** Whether the literal was found in the row, and not just its piece. */
export function isSure(found: number): boolean {
  return found < unsureBit;
}
