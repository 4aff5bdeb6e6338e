/**
 * Which rows of a segment are replaced or deleted: bitmaps per 65,536 rows, copied on write, so that a running read
 * keeps the set it began with.
 */
const rowsPerChunk = 65_536;
const bytesPerChunk = rowsPerChunk / 8;

export interface Tombstones {
  readonly count: number;
  readonly chunks: ReadonlyMap<number, Uint8Array>;
}

export const noTombstones: Tombstones = { count: 0, chunks: new Map() };

export function isDeleted(tombstones: Tombstones, row: number): boolean {
  const chunk = tombstones.chunks.get(row >>> 16);
  return chunk !== undefined && ((chunk[(row & 0xffff) >>> 3] ?? 0) & (1 << (row & 7))) !== 0;
}

/** Resident bytes. */
export function tombstoneBytes(tombstones: Tombstones): number {
  return tombstones.chunks.size * bytesPerChunk;
}

/** The set with more rows in it. Rows that are in it already count once. */
export function withDeleted(tombstones: Tombstones, rows: Iterable<number>): Tombstones {
  const chunks = new Map(tombstones.chunks);
  const copied = new Set<number>();
  let count = tombstones.count;
  for (const row of rows) {
    const number = row >>> 16;
    if (!copied.has(number)) {
      chunks.set(number, copyOf(chunks.get(number)));
      copied.add(number);
    }
    const chunk = chunks.get(number) ?? new Uint8Array(bytesPerChunk);
    const byte = (row & 0xffff) >>> 3;
    const bit = 1 << (row & 7);
    if (((chunk[byte] ?? 0) & bit) !== 0) continue;
    chunk[byte] = (chunk[byte] ?? 0) | bit;
    count++;
  }
  return count === tombstones.count ? tombstones : { count, chunks };
}

function copyOf(chunk: Uint8Array | undefined): Uint8Array {
  return chunk === undefined ? new Uint8Array(bytesPerChunk) : new Uint8Array(chunk);
}

/** For the manifest: pairs of chunk number and bitmap. */
export function tombstonesToWire(tombstones: Tombstones): unknown {
  return [tombstones.count, [...tombstones.chunks.entries()]];
}

export function tombstonesFromWire(wire: unknown): Tombstones {
  const [count, entries] = wire as [number, [number, Uint8Array][]];
  return { count, chunks: new Map(entries.map(([number, bitmap]) => [number, new Uint8Array(bitmap)])) };
}
