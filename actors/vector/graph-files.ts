import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../../src/base/assert.ts';
import type { Clock } from '../../src/base/clock.ts';
import { runningXxh64 } from '../../src/base/hash.ts';
import { type Random, randomHex } from '../../src/base/random.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { MissingObjectError, type ReadTally } from '../storage/block-fetch.ts';
import { checksumText, type SegmentGraph } from '../storage/segment-graph.ts';
import type { WarmCache } from '../storage/warm-cache.ts';
import type { GraphShape } from './graph-shape.ts';
import { type Graph, viewGraph } from './hnsw.ts';

export interface GraphFilesOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly warmCache: WarmCache | null;
  /** On the disk of the warm cache; made where it is missing. */
  readonly scratchFolder: string;
}

/** GETs of one graph, and how many of them at a time. */
const rangeBytes = 8 * 1024 * 1024;
const rangesInFlight = 4;
/** Checked without giving way: under a millisecond. */
const pieceBytes = 512 * 1024;

/**
 * Graphs as files on the local disk, which is how usearch reads them. It believes every byte, so none is opened before its
 * checksum was held against the manifest's: one that is damaged here is fetched again, one that is damaged in the store
 * is a `DataError`.
 */
export class GraphFiles {
  readonly #options: GraphFilesOptions;

  constructor(options: GraphFilesOptions) {
    this.#options = options;
  }

  /** A file that was just built, moved into the cache where there is room. Never rejects; the file is gone afterwards. */
  async keep(key: string, graph: SegmentGraph, path: string): Promise<void> {
    const kept = await this.#adopt(key, graph, path).catch(() => false);
    if (!kept) await rm(path, { force: true }).catch(() => {});
  }

  /** Forgets what lies on the local disk. Open graphs stay as they are. */
  forget(key: string): void {
    this.#options.warmCache?.remove(key);
  }

  /** Throws `DataError`, `MissingObjectError`, or the store's error. */
  async open(key: string, graph: SegmentGraph, shape: GraphShape, tally: ReadTally): Promise<Graph> {
    const { warmCache } = this.#options;
    const local = warmCache?.pathOf(key) ?? null;
    if (local !== null) {
      if (await this.#isIntact(local, graph)) {
        tally.diskReads++;
        return viewGraph(local, shape, graph.expansion);
      }
      warmCache?.remove(key);
    }
    const path = await this.#fetch(key, graph, tally);
    try {
      // Mapped at its first place: moving or deleting the file afterwards does not change what is mapped.
      const opened = viewGraph(path, shape, graph.expansion);
      await this.#adopt(key, graph, path);
      return opened;
    } finally {
      await rm(path, { force: true });
    }
  }

  async #adopt(key: string, { size, checksum }: SegmentGraph, path: string): Promise<boolean> {
    const file = { path, length: size, checksum: BigInt(`0x${checksum}`) };
    return (await this.#options.warmCache?.adopt(key, file)) ?? false;
  }

  /** The object as a file; once more where it came damaged. */
  async #fetch(key: string, graph: SegmentGraph, tally: ReadTally): Promise<string> {
    const { scratchFolder, random } = this.#options;
    await mkdir(scratchFolder, { recursive: true });
    const path = join(scratchFolder, randomHex(random, 16));
    try {
      for (let tries = 0; tries < 2; tries++) {
        await this.#download(key, graph, path, tally);
        if (await this.#isIntact(path, graph)) return path;
      }
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    await rm(path, { force: true });
    throw new DataError(key, 0, 'the checksum of a graph does not match');
  }

  async #download(key: string, { size }: SegmentGraph, path: string, tally: ReadTally): Promise<void> {
    const file = await open(path, 'w');
    try {
      let next = 0;
      const reader = async () => {
        for (let offset = next; offset < size; offset = next) {
          next += rangeBytes;
          const length = Math.min(rangeBytes, size - offset);
          tally.storeGets++;
          const object = await this.#options.store.get(key, { range: { offset, length } });
          if (object === null) throw new MissingObjectError(key);
          tally.storeBytes += object.bytes.length;
          await file.write(object.bytes, 0, object.bytes.length, offset);
        }
      };
      const readers = await Promise.allSettled(Array.from({ length: rangesInFlight }, reader));
      for (const settled of readers) if (settled.status === 'rejected') throw settled.reason;
    } finally {
      await file.close();
    }
  }

  /** Gives way while it reads. False for a file that is not there or of another length. */
  async #isIntact(path: string, { size, checksum }: SegmentGraph): Promise<boolean> {
    const file = await open(path, 'r').catch(() => null);
    if (file === null) return false;
    try {
      if ((await file.stat()).size !== size) return false;
      const hash = runningXxh64();
      const piece = Buffer.allocUnsafeSlow(pieceBytes);
      for (;;) {
        const { bytesRead } = await file.read(piece, 0, pieceBytes);
        if (bytesRead === 0) return checksumText(hash.digest()) === checksum;
        hash.update(piece.subarray(0, bytesRead));
        await this.#options.clock.yieldTurn();
      }
    } catch {
      return false; // Unreadable is as good as damaged.
    } finally {
      await file.close();
    }
  }
}
