import { BlockCache, BlockFetcher, emptyReadTally } from '../storage/block-fetch.ts';
import type { WantedIds } from '../storage/hash-order.ts';
import { idDigestWords } from '../storage/id-digest.ts';
import { blockKinds, idEntry, pageCount, pagePlace } from '../storage/segment-format.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import type { ComputeComponents, ReplacedRowsTask } from './lanes.ts';

/** Bytes of decoded blocks that are kept: pages of ids are read in the order of their hashes, and hardly any twice. */
const cacheBytes = 8 * 1024 * 1024;
/** Ids that are looked for at a time: 3 MB of them. */
const idsAtOnce = 65_536;

/**
 * Rows that an imported segment replaces: in each of the other segments those with one of its ids, and in itself all but the last
 * of those with the same id. Ids are compared in the order of their hashes, in which both sides have them.
 */
export async function replacedRows(
  { store }: Pick<ComputeComponents, 'store'>,
  { imported, segments }: ReplacedRowsTask,
): Promise<{ readonly own: Uint32Array; readonly others: readonly Uint32Array[] }> {
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  const open = ({ key, toc }: ReplacedRowsTask['imported']) => new SegmentReader(key, toc, fetcher);
  const reader = open(imported);
  const others = segments.map((segment) => ({ reader: open(segment), rows: [] as number[] }));
  const own: number[] = [];
  for await (const ids of idsInOrder(reader)) {
    addDuplicates(ids, own);
    for (const other of others) {
      const found = await other.reader.findRows(ids.wanted, emptyReadTally());
      for (const row of found) if (row >= 0) other.rows.push(row);
    }
  }
  for (const each of [reader, ...others.map((other) => other.reader)]) each.close();
  return { own: Uint32Array.from(own), others: others.map(({ rows }) => Uint32Array.from(rows)) };
}

interface IdsInOrder {
  readonly wanted: WantedIds;
  /** Row of each. */
  readonly rows: Uint32Array;
}

/** By ascending hash; those with one hash are never parted. */
async function* idsInOrder(reader: SegmentReader): AsyncGenerator<IdsInOrder, void, void> {
  const section = reader.section('ids');
  const pages = pageCount(section, idEntry);
  const pagesAtOnce = Math.floor(idsAtOnce / idEntry.perPage);
  let kept: Buffer = Buffer.alloc(0);
  for (let first = 0; first < pages; first += pagesAtOnce) {
    const end = Math.min(first + pagesAtOnce, pages);
    const places = Array.from({ length: end - first }, (_, at) =>
      pagePlace(section, idEntry, first + at, blockKinds.ids),
    );
    const blocks = await reader.blocks.fetch(places, emptyReadTally());
    const entries = Buffer.concat([kept, ...blocks.map(({ raw }) => raw)]);
    const cut = end === pages ? entries.length : lastHash(entries);
    kept = Buffer.from(entries.subarray(cut));
    yield asWanted(entries.subarray(0, cut));
  }
}

/** Where the last run of equal hashes begins. */
function lastHash(entries: Buffer): number {
  let at = entries.length - idEntry.bytes;
  const hash = entries.readBigUInt64BE(at);
  while (at >= idEntry.bytes && entries.readBigUInt64BE(at - idEntry.bytes) === hash) at -= idEntry.bytes;
  return at;
}

function asWanted(entries: Buffer): IdsInOrder {
  const count = entries.length / idEntry.bytes;
  const words = new Uint32Array(count * idDigestWords);
  const rows = new Uint32Array(count);
  for (let entry = 0; entry < count; entry++) {
    const at = entry * idEntry.bytes;
    for (let word = 0; word < idDigestWords; word++)
      words[entry * idDigestWords + word] = entries.readUInt32BE(at + idEntry.digest + word * 4);
    rows[entry] = entries.readUInt32LE(at + idEntry.row);
  }
  return { wanted: { count, words, order: Uint32Array.from(rows.keys()) }, rows };
}

/** Equal hashes stand beside each other, by ascending row: mostly one of them, so those after it are looked through. */
function addDuplicates({ wanted: { count, words }, rows }: IdsInOrder, own: number[]): void {
  for (let entry = 0; entry < count; entry++) {
    for (let later = entry + 1; later < count && sharesWords(words, entry, later, 2); later++) {
      if (!sharesWords(words, entry, later, idDigestWords)) continue;
      own.push(rows[entry] as number);
      break;
    }
  }
}

function sharesWords(words: Uint32Array, a: number, b: number, wordCount: number): boolean {
  for (let word = 0; word < wordCount; word++)
    if (words[a * idDigestWords + word] !== words[b * idDigestWords + word]) return false;
  return true;
}
