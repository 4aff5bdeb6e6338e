import { must } from '../../src/base/assert.ts';
import { FairQueue } from '../../src/base/fair-queue.ts';
import type { Share } from '../../src/base/share.ts';
import type { RecordHead } from '../../src/stored/log-object.ts';
import { targetKey } from './unflushed.ts';

/** What the queue looks at of a record. */
export interface QueuedRecord {
  readonly head: Pick<RecordHead, 'tenantId' | 'namespaceId'>;
  readonly bytes: number;
  readonly share: Share;
}

/** All that waits of one target. */
interface TargetRecords {
  /** What all of them wait by: the share of the first. */
  readonly share: Share;
  count: number;
}

/**
 * Records that wait for their group. The next one is of whoever's share has written least, and each target's come in the order in which they were
 * pushed. That holds too where the owner of its tenant is learned while some of them wait: between owners there is no order, and a record that a
 * later one of its target overtook would be lost by a crash between their groups, after which the target could not be opened.
 */
export class RecordQueue<T extends QueuedRecord> {
  readonly #queue = new FairQueue<T>({
    tenantMax: Number.POSITIVE_INFINITY,
    max: Number.POSITIVE_INFINITY,
  });
  readonly #byTarget = new Map<string, TargetRecords>();
  #first: T | null = null;

  get isEmpty(): boolean {
    return this.#queue.size === 0 && this.#first === null;
  }

  push(record: T): void {
    const key = targetKey(record.head);
    const records = this.#byTarget.get(key) ?? { share: record.share, count: 0 };
    if (records.count++ === 0) this.#byTarget.set(key, records);
    this.#queue.push(records.share, record);
  }

  /** Takes the next record, and charges its share for it; null where none waits. */
  shift(): T | null {
    const first = this.#first;
    this.#first = null;
    if (first !== null) return first;
    const taken = this.#queue.shift();
    if (taken === null) return null;
    const { share, item } = taken;
    this.#queue.charge(share, item.bytes);
    const key = targetKey(item.head);
    const records = must(this.#byTarget.get(key), 'what is known of a record that waited');
    if (--records.count === 0) this.#byTarget.delete(key);
    return item;
  }

  /** Makes the record that was taken last the next one again. */
  putBack(record: T): void {
    this.#first = record;
  }

  /** Takes out everything that waits, the next one first. */
  clear(): T[] {
    const first = this.#first === null ? [] : [this.#first];
    this.#first = null;
    this.#byTarget.clear();
    return [...first, ...this.#queue.clear()];
  }
}
