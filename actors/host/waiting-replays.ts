import { SingleFlight } from '../../src/base/single-flight.ts';
import type { LogClient } from '../log/log-client.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { type LogTarget, targetKey } from '../log/unflushed.ts';
import { MemoryAccount, type MemoryBudget } from '../thread/memory-budget.ts';

/**
 * Records of the log that wait for their actor to be opened, by target; and the targets of which nothing is kept, so
 * that the log is asked for all their records before they are opened.
 *
 * Bounded by bytes: past the bound the target with the most waiting bytes is forgotten. Nothing is lost by that, because
 * the log keeps the records until a manifest contains them, and a forgotten target is opened only after `readAgain`.
 * Nothing of it can be doubled either: what came before is dropped as a whole, what still comes of it is not kept.
 * A target that is being read again is never forgotten: its records are wanted now, and the log's length bounds them.
 */
export type Target = Pick<LogTarget, 'tenantId' | 'namespaceId'>;

interface Waiting {
  readonly target: LogTarget;
  records: ReplayedRecord[];
  bytes: number;
}

/**
 * The share of the memory that waiting records may take: at the start nothing else is there yet, and the actors that take them
 * need the rest.
 */
const budgetShareMax = 0.5;
/** The share of that which stays when it is full: less is kept than fits, so that looking for the largest is rare. */
const shareKept = 0.875;
/** Head, position and the lists that hold them. */
const recordOverheadBytes = 600;

export class WaitingReplays {
  readonly #account: MemoryAccount;
  readonly #bytesMax: number;
  readonly #waiting = new Map<string, Waiting>();
  readonly #forgotten = new Map<string, Target>();
  readonly #readingAgain = new SingleFlight<string, void>();
  #bytes = 0;

  constructor(budget: MemoryBudget) {
    this.#account = new MemoryAccount(budget);
    this.#bytesMax = budget.bytesMax * budgetShareMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Every target of which the log has sent anything. */
  targets(): LogTarget[] {
    return [...this.#waiting.values()].map(({ target }) => target);
  }

  accept(record: ReplayedRecord): void {
    const { tenantId, namespace, namespaceId } = record.head;
    const key = targetKey(record.head);
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      waiting = { target: { tenantId, namespace, namespaceId }, records: [], bytes: 0 };
      this.#waiting.set(key, waiting);
    }
    if (this.#forgotten.has(key) && this.#readingAgain.joined(key) === undefined) return;
    waiting.records.push(record);
    const bytes = record.payload.byteLength + recordOverheadBytes;
    waiting.bytes += bytes;
    this.#charge(bytes);
    if (this.#bytes > this.#bytesMax) this.#forgetLargest(this.#bytesMax * shareKept);
  }

  /** The records of a target that wait, in the order in which they were written, whichever logs they are in. */
  of(target: Target): readonly ReplayedRecord[] {
    const records = this.#waiting.get(targetKey(target))?.records ?? [];
    return records.toSorted((a, b) => a.head.version - b.head.version);
  }

  /** Drops the records of targets that have moved to other servers, or that will be replayed again. */
  drop(isOver: (target: LogTarget) => boolean): void {
    for (const { target } of [...this.#waiting.values()]) if (isOver(target)) this.taken(target);
  }

  /** Forgets the records of a target whose actor has them. */
  taken(target: Target): void {
    const key = targetKey(target);
    this.#charge(-(this.#waiting.get(key)?.bytes ?? 0));
    this.#waiting.delete(key);
  }

  /** Marks a target whose actor failed, or whose records were not kept: what it had applied and not flushed is in the log alone. */
  forget(target: Target): void {
    this.#forgotten.set(targetKey(target), target);
  }

  /** Asks the log for all records of a target that is forgotten. Answers whether it was one. */
  async readAgain(target: Target, log: Pick<LogClient, 'replayTarget'>): Promise<boolean> {
    const key = targetKey(target);
    if (!this.#forgotten.has(key)) return false;
    await this.#readingAgain.run(key, async () => {
      this.taken(target);
      // Not before this run is known: what comes before that is not kept.
      await Promise.resolve();
      await log.replayTarget(target);
      this.#forgotten.delete(key);
    });
    return true;
  }

  #charge(bytes: number): void {
    this.#bytes += bytes;
    this.#account.set('replays', this.#bytes);
  }

  /** The fewer targets are forgotten, the fewer times the log is read again: so the largest. */
  #forgetLargest(bytesLeft: number): void {
    const largestFirst = [...this.#waiting]
      .filter(([key, { bytes }]) => bytes > 0 && this.#readingAgain.joined(key) === undefined)
      .sort(([, a], [, b]) => b.bytes - a.bytes);
    for (const [key, waiting] of largestFirst) {
      if (this.#bytes <= bytesLeft) return;
      this.#forgotten.set(key, waiting.target);
      this.#charge(-waiting.bytes);
      waiting.records = [];
      waiting.bytes = 0;
    }
  }
}
