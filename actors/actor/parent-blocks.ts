/**
 * Blocks that a branch shares with its parent, from where the parent has them: each actor thread keeps a part of the local disk of its own,
 * and a branch mostly lives on another thread than its parent does. Asking that thread takes less than a millisecond; the object store
 * takes sixty.
 *
 * 1. Blocks that memory and the own part of the disk don't have are asked for in pieces, one after the other, each of which takes
 *    the other thread some hundred microseconds: nobody's turn pays for it.
 * 2. Whoever answers looks at its disk and at its fresh objects alone: it opens nothing, and reads nothing of the object store.
 * 3. What is not there, too large, or not answered in time comes from the object store.
 */
import { limits } from '../../protocol/limits.ts';
import { placementKey } from '../../protocol/placement.ts';
import { must } from '../../src/base/assert.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import type { BlockFetcherOptions } from '../storage/block-fetch.ts';
import type { NearBlocks, WantedBlocks } from '../storage/near-blocks.ts';
import type { BlockPlace } from '../storage/segment-format.ts';
import type { ActorComponents } from './components.ts';

/** Makes what asks the thread where the parent lives, as long as that is another one of this server. */
export function parentBlocks(
  { directory, clock, isOnOtherThread }: Pick<ActorComponents, 'directory' | 'clock' | 'isOnOtherThread'>,
  { tenantId, parentName }: { readonly tenantId: number; readonly parentName: string },
): NearBlocks {
  return {
    async read(objectKey, places) {
      const found: (Uint8Array | null)[] = places.map(() => null);
      if (!isOnOtherThread(placementKey(tenantId, parentName))) return found;
      let isOver = false;
      const asking = async () => {
        for (const piece of nearPieces(places)) {
          if (isOver) return;
          const wanted = piece.map((at) => must(places[at], 'a place'));
          const offsets = wanted.map(({ offset }) => offset);
          const lengths = wanted.map(({ length }) => length);
          const blocks = await directory.nearBlocks(tenantId, parentName, { objectKey, offsets, lengths });
          for (const [i, at] of piece.entries()) found[at] = blocks[i] ?? null;
        }
      };
      // A refusal is no news: the store has them all.
      await settledWithin(clock, asking(), limits.nearBlocksWaitMs);
      isOver = true;
      // What comes later than that is asked of the store by then.
      return [...found];
    },
  };
}

/** Answers a thread of this server that wants blocks: those that this one's fresh objects or its part of the disk have. */
export function answerNearBlocks(
  { warmCache, fresh }: Pick<BlockFetcherOptions, 'warmCache' | 'fresh'>,
  { objectKey, offsets, lengths }: WantedBlocks,
): (Uint8Array | null)[] {
  return offsets.map(
    (offset, at) =>
      fresh?.read(objectKey, { offset, length: lengths[at] ?? 0 }) ??
      warmCache?.get(`${objectKey}@${offset}`) ??
      null,
  );
}

/** Which places are asked for together, by their numbers: so many bytes at a time, and none that has more by itself. Pure. */
export function nearPieces(places: readonly Pick<BlockPlace, 'length'>[]): number[][] {
  const pieces: number[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const [at, { length }] of places.entries()) {
    if (length > limits.nearBlocksBytesMax) continue;
    bytes += length;
    if (bytes > limits.nearBlocksBytesMax) {
      if (pieces.length === limits.nearBlocksPiecesMax) break;
      pieces.push([]);
      bytes = length;
    }
    pieces.at(-1)?.push(at);
  }
  return pieces;
}
