import { limits } from '../../protocol/limits.ts';
import { attemptKey } from '../../protocol/placement.ts';
import type { AttemptAsk, AttemptCounts, AttemptSaid, CountAttempt } from '../identity/attempt-counts.ts';
import type { Peers } from '../peers/peers.ts';
import type { KnownMembers } from './members.ts';
import { attemptAsk, readAttemptReply } from './peer-messages.ts';

export interface SharedAttemptsOptions {
  readonly members: KnownMembers;
  readonly peers: Pick<Peers, 'call'>;
  /** What this server counts: for all of them what it owns, and for itself what nobody else can be asked for. */
  readonly own: Pick<AttemptCounts, 'take'>;
}

/** Attempts as a cluster counts them: each key by the server that owns it, so that more servers give nobody more tries. */
export function sharedAttempts({ members, peers, own }: SharedAttemptsOptions): CountAttempt {
  const askOwner = (logId: string, ask: AttemptAsk) =>
    new Promise<AttemptSaid | null>((resolve) => {
      const { placement } = members.now.owners;
      const call = { head: attemptAsk(ask), body: null, deadlineMs: limits.attemptAskMs, placement };
      const failed = () => resolve(null);
      peers.call(logId, call, ({ head }) => resolve(readAttemptReply(head)), failed);
    });
  return async (ask) => {
    const logId = members.otherLogOf(attemptKey(ask.key));
    const said = logId === null ? null : await askOwner(logId, ask);
    return said ?? own.take(ask);
  };
}
