const KiB = 1024;
const MiB = 1024 * KiB;

/** The bounds of bodies that come and of answers that go: part of `limits`, with the same rules. */
export const transferLimits = {
  /** Memory of bodies that came and answers that are not read yet, as a part of TIDEBASE_MEMORY_BYTES: one in so many. */
  transfersPart: 4,
  /** The least memory for bodies and answers, whatever its part is: one largest write, twice, as it came and as it is understood, must fit beside something else. */
  transferBytesMin: 192 * MiB,
  /** The same of bodies that are on their way between servers, each way; a largest write, twice, must fit beside something else. */
  peerBodiesPart: 8,
  peerBodiesBytesMin: 144 * MiB,
  /** Bytes of a slab, which bodies over 256 KB lie in while they come. */
  bodySlabBytes: MiB,
  /** Slabs that are kept for the next large bodies: two largest writes. Memory that is new takes a hundred times as long to write to. */
  bodySlabsKept: 128,
  /** Slabs that are kept for the next files: a file may have eight that wait for the disk. */
  fileSlabsKept: 32,
  /** Bytes of bodies that come in a millisecond while others have asked for anything lately, 128 MB a second: a tenth of the front thread's time. */
  intakeBytesPerMs: 128 * KiB,
  /** Bytes that an owner may send ahead of its part, so that bodies of some megabytes are never held up. */
  intakeFreeBytes: 2 * MiB,
  /** How long a sender is held up at most, whatever it has sent. */
  intakeHeldUpMsMax: 500,
  /** Bodies and answers up to this size are not held in a gate: the number of requests in flight bounds them. */
  unheldBytesMax: 16 * KiB,
} as const;
