import { readFileSync } from 'node:fs';
import { assert } from '../../src/base/assert.ts';

/** Bytes of a piece that is looked for at once. */
export const pieceBytesMax = 32;

const wordBytes = 8;

/** A short text to find, as the kernel compares it: a byte of text is equal where `byte | mask` is the folded byte. */
export interface FoldedPiece {
  /** 1 to 32 bytes. */
  readonly folds: Uint8Array;
  readonly masks: Uint8Array;
  /** Two places in the piece, whose bytes are looked at first: rare ones. */
  readonly anchors: readonly [number, number];
}

/** What assembly/find-piece.ts exports. */
interface Kernels {
  readonly memory: WebAssembly.Memory;
  readonly foldsAddress: WebAssembly.Global;
  readonly masksAddress: WebAssembly.Global;
  readonly textAddress: WebAssembly.Global;
  readonly textBytesMax: WebAssembly.Global;
  readonly prepare: (length: number, first: number, second: number) => void;
  readonly find: (from: number, stop: number) => number;
}

/** Finds short pieces of text, case ignored, by vector instructions: some ten bytes a nanosecond. One of a thread does. */
export class PieceFinder {
  readonly #kernels: Kernels;
  readonly #memory: Uint8Array;
  readonly #folds: number;
  readonly #masks: number;
  readonly #text: number;
  /** Bytes of text that are looked through at once, at most. */
  readonly textBytesMax: number;
  /** Where the text lies behind its address: copies of shared memory take words only from where they can lie, else bytes, at a fifth of the speed. */
  #start = 0;
  #stop = 0;

  constructor() {
    const code = new WebAssembly.Module(readFileSync(new URL('kernels.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(code).exports as unknown as Kernels;
    const { memory, foldsAddress, masksAddress, textAddress, textBytesMax } = this.#kernels;
    this.#memory = new Uint8Array(memory.buffer);
    this.#folds = foldsAddress.value as number;
    this.#masks = masksAddress.value as number;
    this.#text = textAddress.value as number;
    this.textBytesMax = (textBytesMax.value as number) - wordBytes;
  }

  /** Takes a piece, and a text to look through, which is copied: at most `textBytesMax` bytes. They stay until the next ones. */
  load({ folds, masks, anchors }: FoldedPiece, text: Uint8Array): void {
    assert(folds.length > 0 && folds.length <= pieceBytesMax, () => 'a piece of 1 to 32 bytes');
    assert(masks.length === folds.length, () => 'a mask for each byte');
    assert(text.length <= this.textBytesMax, () => 'a text that there is room for');
    this.#memory.fill(0xff, this.#folds, this.#folds + pieceBytesMax).set(folds, this.#folds);
    this.#memory.fill(0xff, this.#masks, this.#masks + pieceBytesMax).set(masks, this.#masks);
    this.#start = text.byteOffset % wordBytes;
    this.#memory.set(text, this.#text + this.#start);
    this.#kernels.prepare(folds.length, ...anchors);
    this.#stop = this.#start + text.length;
  }

  /** Answers where in the text the piece begins first at or after `from`; -1 where it does not. */
  next(from: number): number {
    const found = this.#kernels.find(this.#start + from, this.#stop);
    return found < 0 ? -1 : found - this.#start;
  }
}
