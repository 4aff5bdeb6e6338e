import type { MessagePort } from 'node:worker_threads';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { FairQueue } from '../base/fair-queue.ts';
import type { Share } from '../base/share.ts';
import type { RecentOwners } from './recent-owners.ts';

export interface LanePool {
  readonly slots: number;
  run(task: object, moved: readonly (ArrayBuffer | MessagePort)[]): Promise<LaneResult>;
  end(): Promise<void>;
}

/** What a thread of a lane answers. */
export interface LaneResult {
  readonly result: unknown;
  /** CPU time of its thread since it answered before, in milliseconds. */
  readonly cpuMs: number;
  /** How long its thread has waited for a core since then, in milliseconds. */
  readonly waitedMs: number;
}

export interface ComputeLaneOptions {
  readonly pool: LanePool;
  readonly clock: Clock;
  /** Tasks that wait: a waiting task holds what it is about. */
  readonly queueMax: number;
  /** And of those, one tenant's. */
  readonly tenantQueueMax: number;
  /** Hears what each task has used, in milliseconds of CPU time. */
  readonly onUsed?: (share: Share, cpuMs: number) => void;
  /** Who else wants the cores; null for a lane that never rests. */
  readonly recentOwners: Pick<RecentOwners, 'othersThan'> | null;
}

export interface LaneTask {
  readonly task: object;
  readonly moved?: readonly (ArrayBuffer | MessagePort)[];
  readonly share: Share;
  /** In milliseconds since 1970: one that has not begun by then is not begun. Null: it is waited for however long. */
  readonly deadlineAt: number | null;
}

/** Why a task was not run. */
export class NotRun extends Error {
  override name = 'NotRun';
  readonly reason: 'full' | 'late';
  constructor(reason: 'full' | 'late') {
    super(reason === 'full' ? 'too many tasks wait' : 'its time was over before it began');
    this.reason = reason;
  }
}

interface Waiting {
  readonly asked: LaneTask;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The part of the average of the last tasks that is the last one's. */
const newestPart = 1 / 8;
/** What an owner of weight 1 who was away may use of a lane, in milliseconds, before it waits for those who never are. */
const burstMs = 100;
/** A shorter rest, in milliseconds, costs more than it gives. */
const restMsMin = 1;
/** Cores are busy where a thread has waited for one for so much of the time that it had one. */
const busyPart = 0.2;

/**
 * A lane: threads for one kind of task, and the queue before them. Who waits is served in the order of fair-queue.ts, and an
 * owner may not have more tasks running than there are free places, so that whoever comes next finds one. A thread's work
 * can't be interrupted, so a task pays when it has ended, by the time that it took a place; what it is expected to take it pays when
 * it begins, or an owner would have as many begin as it likes before the first is paid.
 *
 * Where the cores are busy and others want them, a place rests after a task for the task's time on a core times the number of other
 * owners, within bounds, and the task's share pays for the rest too. A low priority alone is not enough: a dozen threads of it are a
 * core together, and each holds locks that the other threads wait for, of the allocator, of message ports, of the garbage collector, while the
 * kernel lets it wait. An owner with some of its burst left takes a place that rests, one at a time; there, and while it has some left afterwards, its task
 * makes no place rest.
 */
export class ComputeLane {
  readonly #options: ComputeLaneOptions;
  readonly #queue: FairQueue<Waiting>;
  readonly #runningOf = new Map<number, number>();
  #running = 0;
  #resting = 0;
  #expectedMs = 1;

  constructor(options: ComputeLaneOptions) {
    this.#options = options;
    const { queueMax: max, tenantQueueMax: tenantMax } = options;
    this.#queue = new FairQueue({ max, tenantMax, burst: burstMs });
  }

  /** Rejects with NotRun where the task may not wait or waited too long, and with what the task throws. */
  run(asked: LaneTask): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waiting = { asked, resolve, reject };
      if (!this.#queue.push(asked.share, waiting) && !this.#pushOther(waiting))
        return reject(new NotRun('full'));
      this.#pump();
    });
  }

  /** Has a thread ready where nothing runs, for a task of this share that will come soon: `task` loads what that one needs. */
  prepare(task: object, share: Share): void {
    const { pool, onUsed, queueMax } = this.#options;
    if (this.#running > 0 || queueMax === 0) return;
    this.#count(share.owner, 1);
    pool
      .run(task, [])
      .then(({ cpuMs }) => onUsed?.(share, cpuMs))
      // A thread that can't be started is told to who needs it.
      .catch(() => {})
      .finally(() => {
        this.#count(share.owner, -1);
        this.#pump();
      });
  }

  /** Tasks that wait. */
  get waiting(): number {
    return this.#queue.size;
  }

  end(): Promise<void> {
    return this.#options.pool.end();
  }

  /** Where the lane is full of an owner who has more waiting, its last one makes room. */
  #pushOther(waiting: Waiting): boolean {
    const { share } = waiting.asked;
    const other = this.#queue.size < this.#options.queueMax ? null : this.#queue.dropLongest(share);
    if (other === null) return false;
    other.reject(new NotRun('full'));
    return this.#queue.push(share, waiting);
  }

  #pump(): void {
    const { pool, clock } = this.#options;
    while (this.#running < pool.slots) {
      const free = pool.slots - this.#running;
      const allRest = free <= this.#resting;
      const mayRun = (owner: number) => {
        const running = this.#runningOf.get(owner) ?? 0;
        return allRest ? running === 0 && this.#queue.hasBurst(owner) : running < free;
      };
      const taken = this.#queue.shift(0, mayRun);
      if (taken === null) return;
      const { deadlineAt } = taken.item.asked;
      if (deadlineAt !== null && clock.now() >= deadlineAt) taken.item.reject(new NotRun('late'));
      else this.#begin(taken.item, allRest);
    }
  }

  #begin({ asked, resolve, reject }: Waiting, placeRests: boolean): void {
    const { pool, clock, onUsed } = this.#options;
    const { share } = asked;
    const expectedMs = this.#expectedMs;
    const beganMs = clock.monotonic();
    let busyMs = 0;
    this.#queue.charge(share, expectedMs);
    this.#count(share.owner, 1);
    pool
      .run(asked.task, asked.moved ?? [])
      .then(({ result, cpuMs, waitedMs }) => {
        onUsed?.(share, cpuMs);
        if (!placeRests && waitedMs >= busyPart * cpuMs) busyMs = cpuMs;
        resolve(result);
      })
      .catch(reject)
      .finally(() => {
        const tookMs = clock.monotonic() - beganMs;
        this.#queue.charge(share, tookMs - expectedMs);
        this.#expectedMs += newestPart * (tookMs - this.#expectedMs);
        this.#rest(share, busyMs);
        this.#count(share.owner, -1);
        this.#pump();
      });
  }

  /** A place rests: what its task has used of a busy core, in milliseconds, the others have now. */
  #rest(share: Share, busyMs: number): void {
    const { clock, recentOwners } = this.#options;
    if (recentOwners === null || busyMs === 0 || this.#queue.hasBurst(share.owner)) return;
    const times = Math.min(recentOwners.othersThan(share.owner), limits.laneRestTimesMax);
    const ms = Math.min(times * busyMs, limits.laneRestMsMax);
    if (ms < restMsMin) return;
    this.#queue.charge(share, ms);
    this.#resting++;
    clock.after(ms, () => {
      this.#resting--;
      this.#pump();
    });
  }

  #count(owner: number, by: number): void {
    this.#running += by;
    const running = (this.#runningOf.get(owner) ?? 0) + by;
    if (running === 0) this.#runningOf.delete(owner);
    else this.#runningOf.set(owner, running);
  }
}
