import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { assert } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { orDamage } from '../../src/base/record.ts';
import { Serial } from '../../src/base/serial.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import { importMark } from '../../src/stored/import-mark.ts';
import type { RecordHead } from '../../src/stored/log-object.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Refusal } from '../log/group-commit.ts';
import { isNotWritten } from '../log/log-client.ts';
import type { LogPosition } from '../log/replay.ts';
import { ActorClosed } from '../storage/manifest-store.ts';
import type { LoadedBatch } from './loaded-batch.ts';
import {
  applyBatch,
  assertFollows,
  type NamespaceState,
  type WriteStamp,
  type WritesBefore,
} from './namespace-state.ts';
import { type PendingPlace, PendingWrites } from './pending-writes.ts';
import { isLarge, SegmentLookUp } from './segment-look-up.ts';

export interface AppliedWrite {
  readonly version: number;
  readonly deleted: number;
}

const applyRetryMs = 200;

/**
 * The way of a write through one namespace.
 *
 * 1. In turn: it gets its version, sequences and time from what was submitted before it, joins the overlay, and its
 *    record goes to the log without waiting for the ones before.
 * 2. Beside the PUT, the rows that it replaces are looked up in the segments that there are.
 * 3. Durable, in log order: it is applied to the memtable in one step and leaves the overlay. Then it is answered.
 * 4. Refused ("nothing written"): it and all that were submitted after it are refused; the overlay is dropped and the
 *    next write builds on the applied state.
 * 5. Any other failure: the state is not that of the log any more. Nothing is submitted after it; the actor closes.
 */
export class WritePipeline {
  readonly #components: ActorComponents;
  readonly #state: NamespaceState;
  readonly #turn = new Serial();
  readonly #applies = new Serial();
  readonly #overlay = new PendingWrites();
  /** Higher than those of every earlier actor of this namespace, whose last one the log may have refused. */
  #epoch: number;
  #broken = false;
  #submitted: WritesBefore;
  #pendingBytes = 0;

  constructor(components: ActorComponents, state: NamespaceState) {
    this.#components = components;
    this.#state = state;
    this.#submitted = { ...state.counters };
    this.#epoch = Math.floor(components.clock.now() * 1_000);
  }

  /** Rises when pending writes were refused: what was decided on them is void. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Whether a durable write could not be applied. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Writes that wait for their turn or for their record. */
  get unsettled(): number {
    return this.#turn.waiting + this.#applies.waiting;
  }

  /** Bytes submitted and not yet applied. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Writes that have not had their turn yet. */
  get waiting(): number {
    return this.#turn.waiting;
  }

  /** Runs work that decides on a write, after every earlier one was submitted. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turn.run(work);
  }

  /** What the next write would find under the id: undefined where no pending write touches it. */
  overlaid(id: string): PendingPlace | undefined {
    return this.#overlay.find(id);
  }

  /** Makes `overlaid` quick for whoever asks for many ids; awaits `giveWay` between pieces of that work. Call in turn. */
  indexOverlay(giveWay: () => Promise<void>): Promise<void> {
    return this.#overlay.index(giveWay);
  }

  /** Call in turn. The promise in the answer resolves when the write is applied; submission itself does not wait. */
  submit(batch: LoadedBatch): { readonly applied: Promise<AppliedWrite> } {
    this.#admit(batch);
    const stamp = this.#stamp(batch);
    this.#overlay.add(batch);
    const head = this.#head(stamp);
    const epoch = this.#epoch;
    const durable = this.#components.log.append(head, batch.buffer, epoch);
    durable.catch(() => {});
    const lookUp = new SegmentLookUp(batch, this.#components.clock);
    // A look-up that fails is made again, and retried, when the write is applied.
    lookUp.ask(this.#state.segments).catch(() => {});
    const applied = this.#applies.run(() => this.#apply(batch, stamp, { durable, epoch, lookUp }));
    // The caller may have given up (write_unknown); the write itself goes on.
    applied.catch(() => {});
    return { applied };
  }

  /** The last sequence that was submitted, whatever becomes of its write. */
  get lastSequence(): number {
    return this.#submitted.lastSequence;
  }

  /** Resolves when what was submitted is applied. */
  async whenApplied(): Promise<void> {
    await this.#applies.whenIdle();
    if (this.#broken) throw new ActorClosed(`the actor of "${this.#state.identity.name}" has lost a write`);
  }

  /**
   * The record of an import, whose rows have their sequences from `firstSequence` on. In turn, with nothing submitted that is not
   * applied. Resolves when it is durable; refused ones leave nothing behind.
   */
  async appendImport(
    payload: Buffer,
    rows: { readonly firstSequence: number; readonly count: number },
  ): Promise<{ readonly stamp: WriteStamp; readonly position: LogPosition; readonly payloadBytes: number }> {
    const { version, lastSequence, lastWrittenAt } = this.#submitted;
    if (lastSequence >= rows.firstSequence)
      throw new ApiError(
        'unavailable',
        'too much was written while the file was read; nothing was imported',
        {
          retryAfter: 1,
        },
      );
    const nowMicros = Math.floor(this.#components.clock.now() * 1_000);
    const stamp = {
      version: version + 1,
      // Its rows have the following ones, as those of a batch have.
      baseSequence: rows.firstSequence - 1,
      writtenAt: Math.max(nowMicros, lastWrittenAt + 1),
    };
    const epoch = this.#epoch;
    const submitted = this.#after(stamp, rows.count);
    try {
      const head = this.#head(stamp, importMark);
      const position = await this.#components.log.append(head, payload, epoch);
      this.#submitted = submitted;
      return { stamp, position, payloadBytes: payload.byteLength };
    } catch (error) {
      if (!isNotWritten(error)) {
        this.#broken = true;
        throw error;
      }
      this.#forgetPending(epoch);
      throw notWritten(error.refusal);
    }
  }

  async whenIdle(): Promise<void> {
    await this.#turn.whenIdle();
    await this.#applies.whenIdle();
  }

  #head(stamp: WriteStamp, mark?: string): RecordHead {
    const { tenantId, name: namespace, namespaceId } = this.#state.identity;
    const detail = [stamp.baseSequence, stamp.writtenAt, ...(mark === undefined ? [] : [mark])];
    return { tenantId, namespace, namespaceId, version: stamp.version, blob: null, detail };
  }

  #admit(batch: LoadedBatch): void {
    if (this.#pendingBytes + batch.buffer.byteLength <= limits.pendingWriteBytesMax) return;
    throw new ApiError(
      'write_busy',
      'writes arrive faster than this namespace commits them; nothing was written',
      {
        retryAfter: 1,
      },
    );
  }

  #stamp(batch: LoadedBatch): WriteStamp {
    const last = this.#submitted;
    const nowMicros = Math.floor(this.#components.clock.now() * 1_000);
    const stamp = {
      version: last.version + 1,
      baseSequence: last.lastSequence + 1,
      writtenAt: Math.max(nowMicros, last.lastWrittenAt + 1),
    };
    this.#submitted = this.#after(stamp, batch.documentOffsets.length);
    this.#pendingBytes += batch.buffer.byteLength;
    return stamp;
  }

  /** What the next write follows once a write with this stamp, of so many rows, is submitted. */
  #after(stamp: WriteStamp, rows: number): WritesBefore {
    const lastSequence = stamp.baseSequence + rows;
    assertFollows(this.#submitted, stamp, lastSequence);
    return { version: stamp.version, lastSequence, lastWrittenAt: stamp.writtenAt };
  }

  async #apply(
    batch: LoadedBatch,
    stamp: WriteStamp,
    submission: {
      readonly durable: Promise<LogPosition>;
      readonly epoch: number;
      readonly lookUp: SegmentLookUp;
    },
  ): Promise<AppliedWrite> {
    try {
      const position = await submission.durable;
      if (this.#broken) throw appliedByNext();
      const { lookUp } = submission;
      const deleted = await applyDurable(this.#components, this.#state, { batch, stamp, position, lookUp });
      this.#overlay.remove(batch);
      return { version: stamp.version, deleted };
    } catch (error) {
      if (!isNotWritten(error)) {
        this.#broken = true;
        throw error;
      }
      this.#forgetPending(submission.epoch);
      throw notWritten(error.refusal);
    } finally {
      this.#pendingBytes -= batch.buffer.byteLength;
      assert(this.#pendingBytes >= 0, () => 'pending writes take a negative number of bytes');
    }
  }

  /** Everything of the epoch is refused by the log as well, so the first refusal speaks for all of them. */
  #forgetPending(epoch: number): void {
    if (epoch !== this.#epoch) return;
    this.#epoch++;
    this.#overlay.clear();
    const { version } = this.#state.counters;
    assert(version <= this.#submitted.version, () => `version ${version} was applied and never submitted`);
    this.#submitted = { ...this.#state.counters };
  }
}

/**
 * Applies a durable record, here or at replay. Rows that it replaces are read from segments; while the store does not
 * answer it is tried again, because a durable write must not be left out.
 */
export async function applyDurable(
  components: Pick<ActorComponents, 'clock' | 'logger'>,
  state: NamespaceState,
  write: {
    readonly batch: LoadedBatch;
    readonly stamp: WriteStamp;
    readonly position: LogPosition;
    readonly lookUp: SegmentLookUp;
  },
): Promise<number> {
  const { batch, stamp, position, lookUp } = write;
  for (;;) {
    const generation = state.generation;
    try {
      await lookUp.ask(state.segments);
      // A log object makes several large batches durable at once: a read need not wait until all are applied.
      if (isLarge(batch)) await components.clock.yieldTurn();
      // A flush that was installed meanwhile moved rows to a segment in which nobody looked.
      if (generation !== state.generation) continue;
      return applyBatch(state, batch, stamp, lookUp, position);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      components.logger.error('a durable write waits for its segments', {
        namespaceId: state.identity.namespaceId,
        error: describeError(error),
      });
      await components.clock.sleep(applyRetryMs);
    }
  }
}

/** For a durable write whose predecessor could not be applied: applied to this state it would hide that one from every manifest. */
function appliedByNext(): ApiError {
  const sentence = 'this namespace is being opened again: the write is stored, and will be seen soon';
  return new ApiError('write_unknown', sentence, { retryAfter: 1 });
}

function notWritten(refusal: Refusal): ApiError {
  const options = { retryAfter: 1 };
  return refusal === 'busy'
    ? new ApiError('write_busy', 'the log has no room; nothing was written', options)
    : new ApiError('unavailable', 'the log could not take this write; nothing was written', options);
}

const checkDetail = storedCheck(z.tuple([z.int(), z.int(), z.literal(importMark).optional()]));

/** The stamp that a record's `detail` has: `[base sequence, written at]`. Throws `DataError` where the detail is anything else. */
export function stampFromWire(version: number, detail: unknown): WriteStamp {
  const read = () => checkDetail(detail);
  const [baseSequence, writtenAt] = orDamage('not the stamp of a write', read, 'a record of the log', 0);
  return { version, baseSequence, writtenAt };
}
