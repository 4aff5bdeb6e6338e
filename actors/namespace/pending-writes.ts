import type { LoadedBatch } from './loaded-batch.ts';

/** Where a document lies that a pending write puts; null where the write deletes it. */
export type PendingPlace = { readonly buffer: Buffer; readonly offset: number } | null;

/**
 * Writes of a namespace that were submitted and are not applied yet: the overlay that the next patch sees. Patches alone ask
 * by id, so a write is indexed when the first one does, and most never are: an index of 10,000 documents takes milliseconds in one turn.
 */
export class PendingWrites {
  /** Oldest first. */
  readonly #writes: PendingWrite[] = [];

  add(batch: LoadedBatch): void {
    this.#writes.push(new PendingWrite(batch));
  }

  /** Forgets a write that was applied; does nothing where it was forgotten before. */
  remove(batch: LoadedBatch): void {
    const at = this.#writes.findIndex((write) => write.batch === batch);
    if (at >= 0) this.#writes.splice(at, 1);
  }

  /** Forgets all of them: the log has refused them. */
  clear(): void {
    this.#writes.length = 0;
  }

  /** Indexes what `find` would index otherwise, one write after the other, and awaits `giveWay` after each. */
  async index(giveWay: () => Promise<void>): Promise<void> {
    for (const write of [...this.#writes]) {
      write.index();
      await giveWay();
    }
  }

  /** What the newest write that names the id makes of its document; undefined where none names it. */
  find(id: string): PendingPlace | undefined {
    for (let at = this.#writes.length - 1; at >= 0; at--) {
      const place = this.#writes[at]?.find(id);
      if (place !== undefined) return place;
    }
    return undefined;
  }
}

const deleted = -1;

class PendingWrite {
  readonly batch: LoadedBatch;
  /** By id, where its document starts in the batch's buffer, or `deleted`; null before it was indexed. */
  #offsets: Map<string, number> | null = null;

  constructor(batch: LoadedBatch) {
    this.batch = batch;
  }

  index(): Map<string, number> {
    if (this.#offsets !== null) return this.#offsets;
    const { deletes, ids, documentOffsets } = this.batch;
    const offsets = new Map<string, number>();
    for (const id of deletes) offsets.set(id, deleted);
    // Documents after deletes, and the last one of an id: so the batch is applied.
    for (const [i, id] of ids.entries()) offsets.set(id, documentOffsets[i] ?? deleted);
    this.#offsets = offsets;
    return offsets;
  }

  find(id: string): PendingPlace | undefined {
    const offset = this.index().get(id);
    if (offset === undefined) return undefined;
    return offset === deleted ? null : { buffer: this.batch.buffer, offset };
  }
}
