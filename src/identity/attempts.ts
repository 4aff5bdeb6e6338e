import { isIPv6 } from 'node:net';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { AttemptLimits } from '../accounts/plans.ts';
import type { Clock } from '../base/clock.ts';
import { sha256Latin1 } from '../base/hash.ts';
import {
  type AttemptAsk,
  type AttemptKind,
  type AttemptSaid,
  type CountAttempt,
  Quota,
  takeStep,
} from './attempt-counts.ts';
import { emailIdentity } from './sign-up-rules.ts';

export interface AttemptsOptions {
  readonly limits: AttemptLimits;
  readonly clock: Clock;
  /** Whether clients on this machine are not counted by their address: where no proxy stands before the server. */
  readonly sparesLoopback: boolean;
  /** Counts what may be done few times, for all servers of the cluster. */
  readonly count: CountAttempt;
  readonly keysMax?: number;
}

export interface Attempter {
  /** As the person typed it. */
  readonly email: string;
  /** The client's network address, as text. */
  readonly address: string;
}

/** Asked around looking up what somebody has sent as a secret, by the address that they come from. */
export interface LookUpGuard {
  /** Throws 429 `rate_limited` where too many look-ups were in vain. */
  begin(): void;
  failed(): void;
}

const unguarded: LookUpGuard = { begin() {}, failed() {} };
const minuteMs = 60_000;

/**
 * How often somebody may try, by the account that they name and by the address that they come from. An account counts
 * whether or not it exists, so a refusal says nothing of that. What may be done few times is counted once for all servers of a
 * cluster (`count`); requests without credentials and look-ups in vain, which are judged by the minute and must cost nothing, by each server.
 */
export class Attempts {
  readonly #sparesLoopback: boolean;
  readonly #clock: Clock;
  readonly #count: CountAttempt;
  readonly #accountDelayMs: number;
  readonly #open: Quota;
  readonly #lookUps: Quota;

  constructor({
    limits: allowed,
    clock,
    sparesLoopback,
    count,
    keysMax = limits.attemptKeysMax,
  }: AttemptsOptions) {
    const quota = (max: number | null) => new Quota({ max, windowMs: minuteMs, clock, keysMax });
    this.#sparesLoopback = sparesLoopback;
    this.#clock = clock;
    this.#count = count;
    this.#accountDelayMs = allowed.login_account_delay_seconds * 1_000;
    this.#open = quota(allowed.open_per_address_minute);
    this.#lookUps = quota(limits.failedLookUpsPerMinuteMax);
  }

  /**
   * Runs a login; only its 401 counts as a failure. Throws 429 `rate_limited` without running it where this network has failed
   * too often with this account: nobody can close an account to other networks so. Where an account was tried from many,
   * every login is held for some seconds, the right one too, and then judged. Logins that run side by side are all judged by
   * the failures before them, and the gate for passwords bounds how many those are.
   */
  async login<T>({ email, address }: Attempter, run: () => Promise<T>): Promise<T> {
    const account = accountOf(email);
    const ofNetwork = { of: 'failures-by-network', key: pairOf(account, address) } as const;
    const ofAccount = { of: 'failures-by-account', key: account } as const;
    const [, { areTooMany }] = await Promise.all([
      this.#refuse({ ...ofNetwork, step: 'look' }),
      this.#count({ ...ofAccount, step: 'look' }),
    ]);
    await this.#spendByAddress('logins-by-address', address);
    if (areTooMany) {
      await this.#clock.sleep(this.#accountDelayMs);
      await this.#refuse({ ...ofNetwork, step: 'look' });
    }
    try {
      const result = await run();
      await this.#count({ ...ofNetwork, step: 'forget' });
      return result;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'unauthorized')
        await Promise.all([
          this.#count({ ...ofNetwork, step: 'note' }),
          this.#count({ ...ofAccount, step: 'note' }),
        ]);
      throw error;
    }
  }

  /** Counts a request without credentials, whatever it asks for, before its body is read. Throws 429 `rate_limited`. */
  openRequest(address: string): void {
    if (!this.#spares(address)) refuse(takeStep(this.#open, 'spend', networkOf(address)));
  }

  /** Counts a sign-up from an address. Throws 429 `rate_limited` where there were too many. */
  signup(address: string): Promise<void> {
    return this.#spendByAddress('signups-by-address', address);
  }

  /** Counts a client that registers itself. Throws 429 `rate_limited`. */
  registration(address: string): Promise<void> {
    return this.#spendByAddress('registrations-by-address', address);
  }

  /** Throws 429 `rate_limited`. Whom the address refuses does not use up what the account has. */
  async forgotPassword({ email, address }: Attempter): Promise<void> {
    await this.#spendByAddress('resets-by-address', address);
    await this.#refuse({ of: 'resets-by-account', step: 'spend', key: accountOf(email) });
  }

  /**
   * Only look-ups in vain count: whoever sends what is right is as many as they like, and is refused only beside those who
   * guess. Those that run side by side are all judged by the failures before them.
   */
  lookUpsFrom(address: string): LookUpGuard {
    if (this.#spares(address)) return unguarded;
    const network = networkOf(address);
    return {
      begin: () => refuse(this.#lookUps.look(network)),
      failed: () => this.#lookUps.note(network),
    };
  }

  /** Runs what uses a mailed link; its 400 is a look-up in vain. Throws 429 `rate_limited` without running it. */
  async useLink<T>(address: string, run: () => Promise<T>): Promise<T> {
    const guard = this.lookUpsFrom(address);
    guard.begin();
    try {
      return await run();
    } catch (error) {
      if (error instanceof ApiError && error.code === 'bad_request') guard.failed();
      throw error;
    }
  }

  /** A password that was just reset is known to its person, whatever was tried before from where they are. */
  async forgiveLogins({ email, address }: Attempter): Promise<void> {
    const account = accountOf(email);
    await Promise.all([
      this.#count({ of: 'failures-by-network', step: 'forget', key: pairOf(account, address) }),
      this.#count({ of: 'failures-by-account', step: 'forget', key: account }),
    ]);
  }

  async #spendByAddress(of: AttemptKind, address: string): Promise<void> {
    if (!this.#spares(address)) await this.#refuse({ of, step: 'spend', key: networkOf(address) });
  }

  /** Throws 429 `rate_limited` where the key has to wait. */
  async #refuse(ask: AttemptAsk): Promise<void> {
    refuse(await this.#count(ask));
  }

  #spares(address: string): boolean {
    return this.#sparesLoopback && isLoopback(address);
  }
}

/** A digest of an e-mail address, of one size whatever was sent. */
function accountOf(email: string): string {
  return sha256Latin1(emailIdentity(email));
}

/** The key of an account's failures from one network. */
function pairOf(account: string, address: string): string {
  return `${account} ${wideNetworkOf(address)}`;
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^127(\.[0-9]{1,3}){3}$/.test(address);
}

/** The network that counts as one client: whoever has one IPv6 address has the 2^64 of its network. */
export function networkOf(address: string): string {
  return isIPv6(address) ? `${groupsOf(address).slice(0, 4).join(':')}::/64` : address;
}

/** The network that counts as one place, from which the same people try: /24, of IPv6 /56. */
export function wideNetworkOf(address: string): string {
  if (!isIPv6(address)) return address.replace(/\.[0-9]+$/, '.0/24');
  const [first, second, third, fourth = '0'] = groupsOf(address);
  const upper = (Number.parseInt(fourth, 16) & 0xff00).toString(16);
  return `${first}:${second}:${third}:${upper}::/56`;
}

/** The eight groups of an IPv6 address, without leading zeros. */
function groupsOf(address: string): readonly string[] {
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  if (tail !== undefined) while (groups.length + after.length < 8) groups.push('0');
  return [...groups, ...after].map((group) => Number.parseInt(group, 16).toString(16));
}

function refuse({ waitMs }: AttemptSaid): void {
  if (waitMs <= 0) return;
  const seconds = Math.ceil(waitMs / 1_000);
  const sentence = `too many attempts: try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
  throw new ApiError('rate_limited', sentence, { retryAfter: seconds });
}
