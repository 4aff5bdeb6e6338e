/**
 * The door to zstd. Its thin binding is used, not its convenience functions: those allocate what the packed bytes claim to hold, and
 * damaged bytes may claim anything.
 */
import binding from 'zstd-napi/binding.js';

export const { CCtx, CParameter, DCtx, compressBound } = binding;

/** RFC 9659: who sends zstd over HTTP keeps to a window of 8 MB, which is what each stream holds here. */
const windowLogMax = 23;
/** Bytes that one step unpacks at most, which takes less than a millisecond. */
const stepBytes = 256 * 1024;

/** Unpacks a stream of zstd frames that comes in pieces, a step at a time, so that its caller may stop or give way between two. */
export class ZstdStream {
  readonly #context = new DCtx();
  #isWhole = false;

  constructor() {
    this.#context.setParameter(binding.DParameter.windowLogMax, windowLogMax);
  }

  /** Whether what came so far ends with a frame. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Unpacks the next piece: yields buffers of its own, of at most 256 KB. Throws Error where the bytes are no zstd. */
  *unpack(packed: Uint8Array): Generator<Uint8Array, void, void> {
    for (let at = 0; ; ) {
      const unpacked = Buffer.allocUnsafeSlow(stepBytes);
      const [left, made, taken] = this.#context.decompressStream(unpacked, packed.subarray(at));
      at += taken;
      if (made > 0 || taken > 0) this.#isWhole = left === 0;
      if (made > 0) yield unpacked.subarray(0, made);
      if (made < stepBytes && (at === packed.byteLength || taken === 0)) return;
    }
  }
}
