/**
 * Shares by owner what the front takes in of bodies. Each byte is copied out of the socket by the one thread that answers everybody,
 * and a client on a fast line sends a gigabyte a second: twenty of them would leave the thread no time for others.
 *
 * 1. Who is alone is not held up: nobody else has asked this server for anything lately (`RecentOwners`).
 * 2. Otherwise all who send may together send `limits.intakeBytesPerMs`, each a part of that by its weight.
 * 3. Who sends more than its part is held up until it is paid for; a small body never is, for the first bytes are free.
 */
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import type { Share } from '../base/share.ts';
import type { RecentOwners } from '../router/recent-owners.ts';

interface Sender {
  readonly weight: number;
  /** Until when what came is paid for, at its part. */
  paidUntilMs: number;
}

/** Says how long senders of large bodies are held up. */
export class IntakeShares {
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly #recentOwners: Pick<RecentOwners, 'hasOthersThan'>;
  /** Those who have sent lately, by owner. */
  readonly #senders = new Map<number, Sender>();

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>, recentOwners: Pick<RecentOwners, 'hasOthersThan'>) {
    this.#clock = clock;
    this.#recentOwners = recentOwners;
  }

  /** Notes that so many bytes have come. Answers what the sender is to wait for before it sends more; undefined where it may go on. */
  came({ owner, weight }: Pick<Share, 'owner' | 'weight'>, bytes: number): Promise<void> | undefined {
    const now = this.#clock.monotonic();
    const sender = this.#senders.get(owner) ?? { weight, paidUntilMs: now };
    this.#senders.set(owner, sender);
    const bytesPerMs = (limits.intakeBytesPerMs * weight) / this.#weights(now, owner);
    // However much it sent while it was alone: it is not to pay for that for long.
    sender.paidUntilMs = Math.min(
      Math.max(sender.paidUntilMs, now) + bytes / bytesPerMs,
      now + limits.intakeHeldUpMsMax,
    );
    if (this.#senders.size === 1 && !this.#recentOwners.hasOthersThan(owner)) return undefined;
    const waitMs = sender.paidUntilMs - now - limits.intakeFreeBytes / bytesPerMs;
    return waitMs < 1 ? undefined : this.#clock.sleep(waitMs);
  }

  /** The weights of all who send now, and forgets the others. */
  #weights(now: number, owner: number): number {
    let sum = 0;
    for (const [other, { weight, paidUntilMs }] of this.#senders) {
      if (paidUntilMs > now || other === owner) sum += weight;
      else this.#senders.delete(other);
    }
    return sum;
  }
}
