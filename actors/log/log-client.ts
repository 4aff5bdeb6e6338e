import { ApiError } from '../../protocol/errors.ts';
import { logCalls } from '../../protocol/messages.ts';
import type { PortChannel } from '../../src/base/port-channel.ts';
import { encodeHead, type RecordHead } from '../../src/stored/log-object.ts';
import type { KnownShares } from '../thread/known-shares.ts';
import { type AppendOptions, AppendRefused, type Refusal } from './group-commit.ts';
import type { LogPosition } from './replay.ts';
import type { LogTarget } from './unflushed.ts';

/** The log as an actor sees it: a call over the port to the log thread. */
export interface LogClient {
  /** The log of this process. */
  readonly logId: string;
  /** Appends a record, as GroupCommit.append does. The payload lies in shared memory or is handed over. */
  append(
    head: RecordHead,
    payload: Uint8Array,
    epoch: number,
    options?: Pick<AppendOptions, 'isUrgent'>,
  ): Promise<LogPosition>;
  /**
   * Resolves after every durable record of the target that the log still needs was replayed to this thread; rejects
   * with 503 where the log could not be read.
   */
  replayTarget(target: { readonly tenantId: number; readonly namespaceId: string }): Promise<void>;
  /**
   * Whether no other process had ended this one's log when it was asked: then what this process's actors knew at that
   * moment was the truth. Rejects with 503 where that can't be said.
   */
  confirmOpen(): Promise<boolean>;
  /** How many milliseconds ago at most the log was surely open, when this was called; null where it is sealed. Rejects with 503. */
  seenOpen(): Promise<number | null>;
  /** The target's manifest contains everything up to the position. */
  flushed(target: { readonly tenantId: number; readonly namespaceId: string }, through: LogPosition): void;
  /** Resolves once the log has heard everything that it was told before. */
  heard(): Promise<void>;
  /** Targets of this thread that other servers own now, and of which the log may have records that no manifest has. */
  movedAway(): Promise<readonly LogTarget[]>;
}

export function createLogClient(
  channel: PortChannel,
  identity: { readonly logId: string },
  shares: Pick<KnownShares, 'of'>,
): LogClient {
  return {
    logId: identity.logId,
    async append(head, payload, epoch, { isUrgent = false } = {}) {
      const { owner, weight } = shares.of(head.tenantId);
      const call = [logCalls.append, encodeHead(head), epoch, owner, weight, isUrgent];
      const answer = await channel.call(call, payload);
      const [kind, first, index] = answer.head as
        | ['stored', number, number]
        | ['refused', Refusal, undefined];
      if (kind === 'refused') throw new AppendRefused(first);
      return { logId: identity.logId, slot: first, index };
    },
    async confirmOpen() {
      const answer = await channel.call([logCalls.confirmOpen]);
      const [kind] = answer.head as ['open' | 'sealed' | 'failed'];
      if (kind === 'failed') throw unreadable();
      return kind === 'open';
    },
    async seenOpen() {
      const answer = await channel.call([logCalls.seenOpen]);
      const [kind, ageMs] = answer.head as ['open', number] | ['sealed' | 'failed', undefined];
      if (kind === 'failed') throw unreadable();
      return kind === 'open' ? ageMs : null;
    },
    async replayTarget(target) {
      const answer = await channel.call([logCalls.replayTarget, target.tenantId, target.namespaceId]);
      if ((answer.head as [string])[0] === 'done') return;
      throw unreadable();
    },
    flushed(target, through) {
      const { logId, slot, index } = through;
      channel.notify([logCalls.flushed, target.tenantId, target.namespaceId, logId, slot, index]);
    },
    async heard() {
      await channel.call([logCalls.hear]);
    },
    async movedAway() {
      const answer = await channel.call([logCalls.movedAway]);
      const targets = answer.head as [number, string, string][];
      return targets.map(([tenantId, namespace, namespaceId]) => ({ tenantId, namespace, namespaceId }));
    },
  };
}

const unreadable = () =>
  new ApiError('unavailable', 'the log could not be read; try again', { retryAfter: 1 });

/** Whether a failed append is known to have left nothing behind. */
export function isNotWritten(error: unknown): error is AppendRefused {
  return error instanceof AppendRefused;
}
