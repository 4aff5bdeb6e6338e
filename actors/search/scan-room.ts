import { limits } from '../../protocol/limits.ts';
import { assert } from '../../src/base/assert.ts';

/** Bounds the bytes of blocks that all scans of a thread have elsewhere: they stay in memory meanwhile. */
export class ScanRoom {
  #bytes = 0;

  /** Answers false where there is no room for so many more. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > limits.scansElsewhereBytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
    assert(this.#bytes >= 0, () => `${this.#bytes} bytes of blocks are elsewhere`);
  }
}
