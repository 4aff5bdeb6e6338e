/** An index in an object of its own, and its naive twin. */
import { BlockCache, BlockFetcher, emptyReadTally } from '../../actors/storage/block-fetch.ts';
import { BlockOwner, encodeBlock } from '../../actors/storage/segment-format.ts';
import { foldedBytesMax, foldUtf8 } from '../../actors/text/fold.ts';
import { groupTextBytes, type RowGroups } from '../../actors/text/row-groups.ts';
import { partedBytesMin, partsOf } from '../../actors/text/text-parts.ts';
import { type CandidateGroups, TrigramIndexReader } from '../../actors/text/trigram-index-reader.ts';
import {
  TrigramIndexWriter,
  type TrigramIndexWriterOptions,
} from '../../actors/text/trigram-index-writer.ts';
import type { TextCondition, TrigramQuery } from '../../actors/text/trigram-query.ts';
import { CountingStore } from './segments.ts';

export const indexKey = 'ns/ab/x/segment/s';

export interface BuiltIndex {
  readonly bytes: Buffer;
  readonly root: Uint8Array;
  /** Bytes of the blocks by their kind. */
  readonly bytesByKind: ReadonlyMap<number, number>;
  readonly blockCount: number;
}

/** As a segment's writer would, with other bytes before, between and after. */
export async function buildIndex(
  texts: Iterable<Uint8Array>,
  options: TrigramIndexWriterOptions & { readonly onBlock?: (kind: number, raw: Uint8Array) => void } = {},
): Promise<BuiltIndex> {
  const writer = new TrigramIndexWriter(options);
  const owner = new BlockOwner(indexKey);
  const chunks: Buffer[] = [];
  const bytesByKind = new Map<number, number>();
  let offset = 0;
  let blockCount = 0;
  const fill = (length: number) => {
    chunks.push(Buffer.alloc(length, 0xee));
    offset += length;
  };
  const append = async (kind: number, raw: Uint8Array, { compress }: { compress: boolean }) => {
    options.onBlock?.(kind, raw);
    const block = encodeBlock(kind, raw, { compress, owner, offset });
    const place = { offset, length: block.length };
    chunks.push(block);
    offset += block.length;
    blockCount++;
    bytesByKind.set(kind, (bytesByKind.get(kind) ?? 0) + block.length);
    return place;
  };
  fill(100);
  for (const text of texts) {
    writer.add(text, 0, text.length);
    if (!writer.isSpanFull) continue;
    await writer.writeSpan(append);
    fill(70);
  }
  const root = await writer.finish(append);
  fill(30);
  return { bytes: Buffer.concat(chunks), root, bytesByKind, blockCount };
}

export interface OpenIndex {
  readonly reader: TrigramIndexReader;
  readonly store: CountingStore;
}

/** `cacheBytes` is the memory for decoded pages. */
export async function openIndex({ bytes, root }: BuiltIndex, cacheBytes = 64e6): Promise<OpenIndex> {
  const store = new CountingStore();
  await store.putIfAbsent(indexKey, [bytes]);
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  const reader = await TrigramIndexReader.open(root, fetcher.open(indexKey), emptyReadTally());
  return { reader, store };
}

/** All candidates, in the order in which they came. */
export async function allCandidates(candidates: CandidateGroups): Promise<number[]> {
  const groups: number[] = [];
  for (;;) {
    const next = await candidates.next(emptyReadTally());
    if (next === null) return groups;
    groups.push(...next);
  }
}

export function folded(text: Uint8Array): Buffer {
  const target = Buffer.alloc(foldedBytesMax(text.length));
  return target.subarray(0, foldUtf8(text, 0, text.length, target, 0));
}

/** The naive twin: a set of groups for each trigram, rows put into groups by the same rule. */
export class NaiveIndex {
  readonly groupsByTrigram = new Map<number, Set<number>>();
  /** The folded texts of each group. */
  readonly textsOfGroup: Buffer[][] = [];
  /** Not of parts. */
  readonly groupOfRow: number[] = [];
  /** Groups that are parts of texts which go on behind them. */
  readonly #goOn = new Set<number>();

  /** `rowGroups`: where there are spans, whose borders are borders of groups too. */
  constructor(texts: readonly Uint8Array[], rowGroups: RowGroups | null = null) {
    let bytes = 0;
    const firstRows = rowGroups === null ? null : firstRowsOf(rowGroups);
    texts.forEach((text, row) => {
      const open = this.textsOfGroup.at(-1);
      const isFull = open === undefined || open.length === 256 || bytes + text.length > groupTextBytes;
      if (firstRows === null ? isFull : firstRows.has(row)) {
        if (text.length >= partedBytesMin) this.#addParts(text);
        this.textsOfGroup.push([]);
        bytes = 0;
      }
      bytes += text.length;
      const group = this.textsOfGroup.length - 1;
      this.groupOfRow.push(group);
      this.#add(folded(text), group);
    });
  }

  #addParts(text: Uint8Array): void {
    const { bounds } = partsOf(text, 0, text.length);
    for (let at = 0; at < bounds.length; at += 2) {
      const [from, to] = [bounds[at] as number, bounds[at + 1] as number];
      const group = this.textsOfGroup.push([]) - 1;
      if (to < text.length) this.#goOn.add(group);
      this.#add(folded(text.subarray(from, to)), group);
    }
  }

  get groupCount(): number {
    return this.textsOfGroup.length;
  }

  /** Exactly the groups that meet the condition, descending. */
  find(query: TrigramQuery): number[] {
    return Array.from({ length: this.groupCount }, (_, at) => this.groupCount - 1 - at).filter((group) =>
      this.#meets(query, group),
    );
  }

  #meets(query: TrigramQuery, group: number): boolean {
    switch (query.kind) {
      case 'all':
        return true;
      case 'none':
        return false;
      case 'trigram':
        return this.groupsByTrigram.get(query.trigram)?.has(group) ?? false;
      case 'part':
        return (this.textsOfGroup[group] ?? []).some((text) => this.#hasBytes(text, query.bytes, group));
      case 'and':
        return query.parts.every((part) => this.#meets(part, group));
      case 'or':
        return query.parts.some((part) => this.#meets(part, group));
    }
  }

  /** The last two bytes of a part begin no trigram: they are looked for in the next one. */
  #hasBytes(text: Buffer, bytes: readonly number[], group: number): boolean {
    const at = text.indexOf(Buffer.from(bytes));
    return at >= 0 && (!this.#goOn.has(group) || at + 3 <= text.length);
  }

  #add(text: Buffer, group: number): void {
    this.textsOfGroup[group]?.push(text);
    const padded = text.length < 3 ? Buffer.concat([text, Buffer.alloc(3 - text.length, 0xff)]) : text;
    for (let at = 0; at + 3 <= padded.length; at++) {
      const trigram = padded.readUIntBE(at, 3);
      const groups = this.groupsByTrigram.get(trigram);
      if (groups === undefined) this.groupsByTrigram.set(trigram, new Set([group]));
      else groups.add(group);
    }
  }
}

function firstRowsOf(rowGroups: RowGroups): Set<number> {
  const firstRows = new Set<number>();
  for (let group = 0; group < rowGroups.groupCount; group++) {
    const { first, kind } = rowGroups.rowsOf(group);
    if (kind !== 'part') firstRows.add(first);
  }
  return firstRows;
}

/** The condition of a literal: all of its trigrams. */
export function literalQuery(text: string): TrigramQuery {
  const bytes = folded(Buffer.from(text));
  if (bytes.length === 0) return { kind: 'all' };
  if (bytes.length < 3) return { kind: 'part', bytes: [...bytes] };
  const parts = Array.from({ length: bytes.length - 2 }, (_, at) => ({
    kind: 'trigram' as const,
    trigram: bytes.readUIntBE(at, 3),
  }));
  return { kind: 'and', parts };
}

/** The condition of a pattern whose matches are short. */
export function shortMatches(query: TrigramQuery): TextCondition {
  return { query, matchLength: 'short' };
}
