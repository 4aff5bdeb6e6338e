import { CCtx, CParameter, compressBound } from '../../src/base/zstd.ts';

/** Packs bytes as a stream does: a frame that does not tell how long they are. `windowLog`: 0 is the level's own. */
export function zstdSync(raw: Uint8Array, windowLog = 0): Buffer {
  const context = new CCtx();
  context.setParameter(CParameter.contentSizeFlag, 0);
  context.setParameter(CParameter.windowLog, windowLog);
  const packed = Buffer.alloc(compressBound(raw.length));
  return packed.subarray(0, context.compress2(packed, raw));
}
