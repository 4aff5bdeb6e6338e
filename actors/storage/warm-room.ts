/**
 * How much a warm cache may take of its disk, looked up as it grows.
 *
 * Entries are charged by the page, but LMDB leaves holes that no value fits into, and its file never shrinks. So entries
 * get a part of what the cache may take; where file and entries together still took more than all of it, because large
 * values came where small ones had been, only a new file helps.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../../src/base/log.ts';
import { type FreeSpace, freeSpaceOf, type WarmFolder } from './warm-folder.ts';

/** Growth stops below both: the disk belongs to others too, and LMDB does not survive a full one. */
const freeBytesMin = 512 * 1024 * 1024;
const freeShareMin = 0.05;
/** The share of both below which nothing is put at all, since LMDB takes some new pages for whatever it replaces. */
const exhaustedShare = 0.5;
/** The disk is looked at after this many bytes of puts; far below `freeBytesMin`. */
const lookEveryBytes = 4 * 1024 * 1024;
/** The share of its room that the cache fills with entries; values of 4 to 64 KB in random order leave holes of a fifth (measured). */
const entriesShare = 0.7;

export class WarmRoom {
  readonly #paths: WarmFolder;
  readonly #bytesMax: number;
  readonly #log: Logger;
  readonly #freeSpace: (folder: string) => FreeSpace;
  #untilLookBytes = 0;
  #disk: 'free' | 'nearly-full' | 'exhausted' = 'free';
  #environmentBytes: number | null = 0;

  constructor(
    paths: WarmFolder,
    bytesMax: number,
    log: Logger,
    freeSpace: (folder: string) => FreeSpace = freeSpaceOf,
  ) {
    this.#paths = paths;
    this.#bytesMax = bytesMax;
    this.#log = log;
    this.#freeSpace = freeSpace;
  }

  /** What all entries together may be charged, where they are charged `entryBytes` now. */
  entryBytesMax(entryBytes: number): number {
    const most = Math.floor(this.#bytesMax * entriesShare);
    if (this.#disk === 'free') return most;
    // Nearly full: it may change and not grow.
    return this.#disk === 'nearly-full' ? Math.min(entryBytes, most) : 0;
  }

  /** Why the cache must start empty; null where it need not. `fileBytes`: what its entries take outside LMDB. */
  whyStartOver(fileBytes: number): string | null {
    if (this.#environmentBytes === null) return 'its file was removed';
    if (this.#environmentBytes + fileBytes > this.#bytesMax) return 'it took more of the disk than it may';
    return null;
  }

  /** Looks at the disk where enough was put since the last time. */
  grows(bytes: number): void {
    this.#untilLookBytes -= Math.max(bytes, 0);
    if (this.#untilLookBytes <= 0 || this.#disk !== 'free') this.look();
  }

  /** Says so where the disk has become fuller or emptier since the last time. */
  look(): void {
    const before = this.#disk;
    this.#lookAtDisk();
    if (before === this.#disk) return;
    const sentence =
      this.#disk === 'free'
        ? 'the warm cache has room to grow again'
        : 'the warm cache grows no more: its disk is nearly full';
    this.#log.info(sentence, { folder: this.#paths.folder });
  }

  #lookAtDisk(): void {
    this.#untilLookBytes = lookEveryBytes;
    try {
      this.#environmentBytes = environmentBytes(this.#paths);
      const { freeBytes, totalBytes } = this.#freeSpace(this.#paths.folder);
      const least = Math.max(freeBytesMin, totalBytes * freeShareMin);
      this.#disk =
        freeBytes >= least ? 'free' : freeBytes >= least * exhaustedShare ? 'nearly-full' : 'exhausted';
    } catch {
      this.#disk = 'exhausted'; // A folder that can't be asked is not written to.
    }
  }
}

const statBlockBytes = 512;

/** On the disk; null where the file is gone. */
function environmentBytes(paths: WarmFolder): number | null {
  const stat = statSync(join(paths.environment, 'data.mdb'), { throwIfNoEntry: false });
  return stat === undefined ? null : stat.blocks * statBlockBytes;
}
