import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

const folderFormat = 2;

interface Marker {
  readonly format: number;
  /** The machine's start; empty where the system does not tell. */
  readonly boot: string;
  readonly closedInOrder: boolean;
}

export interface FreeSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export interface WarmFolder {
  readonly folder: string;
  readonly environment: string;
  readonly files: string;
  /** See warm-keys.ts. */
  readonly keys: string;
}

/**
 * Whether the folder of a warm cache may be opened at all. LMDB trusts its file: a truncated one is a SIGBUS, a wrong
 * page number a SIGSEGV, and nothing is synchronised while we run. So a folder is used only where
 *
 * 1. its marker says that this format wrote it,
 * 2. it was closed in order, or the machine was not started anew since (the kernel still has what was written),
 * 3. the file is as long as its own head says.
 *
 * Anything else is wiped: the cache is disposable. Format 2 has sealed values.
 */
export function warmFolder(folder: string): WarmFolder {
  return {
    folder,
    environment: join(folder, 'environment'),
    files: join(folder, 'files'),
    keys: join(folder, 'keys'),
  };
}

/** Makes the folder ready to open: as it was left where that is safe, else empty. Answers whether it was kept. */
export function prepareFolder(paths: WarmFolder): boolean {
  const kept = mayBeOpened(paths);
  // Only what is ours: whoever names a folder with other things in it keeps them.
  const ours = [markerOf(paths), paths.keys, paths.environment, paths.files];
  if (!kept) for (const path of ours) rmSync(path, { recursive: true, force: true });
  mkdirSync(paths.environment, { recursive: true });
  mkdirSync(paths.files, { recursive: true });
  writeMarker(paths, false);
  return kept;
}

/** Written last of all, after `data.mdb` has reached the disk. */
export async function markClosedInOrder(paths: WarmFolder): Promise<void> {
  const file = await open(join(paths.environment, 'data.mdb'), 'r+');
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
  writeMarker(paths, true);
}

/** The next opening starts empty. Works on a full disk. */
export function markDamaged(paths: WarmFolder): void {
  try {
    rmSync(markerOf(paths), { force: true });
  } catch {
    // A folder that can't be changed can't be opened either: prepareFolder writes the marker anew.
  }
}

export function freeSpaceOf(folder: string): FreeSpace {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

function mayBeOpened(paths: WarmFolder): boolean {
  const marker = readMarker(paths);
  if (marker === null || marker.format !== folderFormat) return false;
  const boot = bootId();
  if (!marker.closedInOrder && (boot === '' || marker.boot !== boot)) return false;
  return environmentIsWhole(join(paths.environment, 'data.mdb'));
}

function markerOf(paths: WarmFolder): string {
  return join(paths.folder, 'marker.json');
}

function writeMarker(paths: WarmFolder, closedInOrder: boolean): void {
  const marker: Marker = { format: folderFormat, boot: bootId(), closedInOrder };
  writeFileSync(markerOf(paths), JSON.stringify(marker));
}

function readMarker(paths: WarmFolder): Marker | null {
  try {
    return JSON.parse(readFileSync(markerOf(paths), 'utf8')) as Marker;
  } catch {
    return null; // Missing or unreadable are the same answer: start empty.
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return ''; // Only Linux tells; elsewhere an unclean end costs the cache.
  }
}

/** The two heads of an LMDB file, as lmdb 3.5 lays them out. */
const pageBytes = 4096;
const head = {
  magic: 24,
  magicValue: 0xbeefc0de,
  pageSize: 48,
  lastPage: 144,
  transaction: 152,
  bytes: 160,
} as const;
/** How many pages may be missing at the end of a whole file: a transaction took them and gave them back, and they were never written. */
const unwrittenPagesMax = 64;

/** Whether the file is as long as the newer of its heads says; a file that is too short kills the process. */
function environmentIsWhole(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return false;
  }
  try {
    const heads = Buffer.alloc(2 * pageBytes);
    if (readSync(file, heads, 0, heads.length, 0) !== heads.length) return false;
    const pages = [heads.subarray(0, pageBytes), heads.subarray(pageBytes)];
    if (!pages.every(isHead)) return false;
    const newest = pages.reduce((a, b) =>
      a.readBigUInt64LE(head.transaction) > b.readBigUInt64LE(head.transaction) ? a : b,
    );
    const lastPage = Number(newest.readBigUInt64LE(head.lastPage)) - unwrittenPagesMax;
    // One byte of the last page is enough: the file grows by whole pages.
    return lastPage < 2 || readSync(file, heads, 0, 1, lastPage * pageBytes) === 1;
  } finally {
    closeSync(file);
  }
}

function isHead(page: Buffer): boolean {
  return page.readUInt32LE(head.magic) === head.magicValue && page.readUInt32LE(head.pageSize) === pageBytes;
}
