import { isIPv6 } from 'node:net';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { AttemptLimits } from '../accounts/plans.ts';
import type { Clock } from '../base/clock.ts';
import { sha256Latin1 } from '../base/hash.ts';
import { LruMap } from '../base/lru.ts';
import { emailIdentity } from './sign-up-rules.ts';

export interface AttemptsOptions {
  readonly limits: AttemptLimits;
  readonly clock: Clock;
  /** Whether clients on this machine are not counted by their address: where no proxy stands before the server. */
  readonly sparesLoopback: boolean;
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
const hourMs = 3_600_000;

/**
 * How often somebody may try, by the account that they name and by the address that they come from. An account counts
 * whether or not it exists, so a refusal says nothing of that. Counted per server and in memory: a restart forgives.
 */
export class Attempts {
  readonly #sparesLoopback: boolean;
  readonly #clock: Clock;
  readonly #accountDelayMs: number;
  readonly #failures: { readonly ofNetwork: LoginFailures; readonly ofAccount: LoginFailures };
  readonly #open: Quota;
  readonly #logins: Quota;
  readonly #signups: Quota;
  readonly #registrations: Quota;
  readonly #lookUps: Quota;
  readonly #forgotten: { readonly byAccount: Quota; readonly byAddress: Quota };

  constructor({ limits: allowed, clock, sparesLoopback, keysMax = limits.attemptKeysMax }: AttemptsOptions) {
    const quota = (max: number | null, windowMs: number) => new Quota({ max, windowMs, clock, keysMax });
    this.#sparesLoopback = sparesLoopback;
    const windowMs = allowed.login_window_seconds * 1_000;
    const failures = (max: number | null) => new LoginFailures({ max, windowMs, clock, keysMax });
    this.#clock = clock;
    this.#accountDelayMs = allowed.login_account_delay_seconds * 1_000;
    this.#failures = {
      ofNetwork: failures(allowed.login_failures_per_account_and_network),
      ofAccount: failures(allowed.login_failures_per_account),
    };
    this.#open = quota(allowed.open_per_address_minute, minuteMs);
    this.#logins = quota(allowed.login_per_address_minute, minuteMs);
    this.#signups = quota(allowed.signup_per_address_hour, hourMs);
    this.#registrations = quota(allowed.register_per_address_hour, hourMs);
    this.#lookUps = quota(limits.failedLookUpsPerMinuteMax, minuteMs);
    this.#forgotten = {
      byAccount: quota(allowed.forgot_per_account_hour, hourMs),
      byAddress: quota(allowed.forgot_per_address_hour, hourMs),
    };
  }

  /**
   * Runs a login; only its 401 counts as a failure. Throws 429 `rate_limited` without running it where this network has failed
   * too often with this account: nobody can close an account to other networks so. Where an account was tried from many,
   * every login is held for some seconds, the right one too, and then judged. Logins that run side by side are all judged by
   * the failures before them, and the gate for passwords bounds how many those are.
   */
  async login<T>({ email, address }: Attempter, run: () => Promise<T>): Promise<T> {
    const account = accountOf(email);
    const pair = `${account} ${wideNetworkOf(address)}`;
    this.#failures.ofNetwork.refuseEarly(pair);
    this.#takeByAddress(this.#logins, address);
    if (this.#failures.ofAccount.areTooMany(account)) {
      await this.#clock.sleep(this.#accountDelayMs);
      this.#failures.ofNetwork.refuseEarly(pair);
    }
    try {
      const result = await run();
      this.#failures.ofNetwork.forget(pair);
      return result;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'unauthorized') {
        this.#failures.ofNetwork.note(pair);
        this.#failures.ofAccount.note(account);
      }
      throw error;
    }
  }

  /** Counts a request without credentials, whatever it asks for, before its body is read. Throws 429 `rate_limited`. */
  openRequest(address: string): void {
    this.#takeByAddress(this.#open, address);
  }

  /** Counts a sign-up from an address. Throws 429 `rate_limited` where there were too many. */
  signup(address: string): void {
    this.#takeByAddress(this.#signups, address);
  }

  /** Counts a client that registers itself. Throws 429 `rate_limited`. */
  registration(address: string): void {
    this.#takeByAddress(this.#registrations, address);
  }

  /** Throws 429 `rate_limited`. Whom the address refuses does not use up what the account has. */
  forgotPassword({ email, address }: Attempter): void {
    this.#takeByAddress(this.#forgotten.byAddress, address);
    this.#forgotten.byAccount.spend(accountOf(email));
  }

  /**
   * Only look-ups in vain count: whoever sends what is right is as many as they like, and is refused only beside those who
   * guess. Those that run side by side are all judged by the failures before them.
   */
  lookUpsFrom(address: string): LookUpGuard {
    if (this.#spares(address)) return unguarded;
    const network = networkOf(address);
    return { begin: () => this.#lookUps.refuse(network), failed: () => this.#lookUps.note(network) };
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
  forgiveLogins({ email, address }: Attempter): void {
    const account = accountOf(email);
    this.#failures.ofNetwork.forget(`${account} ${wideNetworkOf(address)}`);
    this.#failures.ofAccount.forget(account);
  }

  #takeByAddress(quota: Quota, address: string): void {
    if (!this.#spares(address)) quota.spend(networkOf(address));
  }

  #spares(address: string): boolean {
    return this.#sparesLoopback && isLoopback(address);
  }
}

/** A digest of an e-mail address, of one size whatever was sent. */
function accountOf(email: string): string {
  return sha256Latin1(emailIdentity(email));
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

interface QuotaOptions {
  /** Attempts of one key in a window; null: no limit. */
  readonly max: number | null;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly keysMax: number;
}

/** So many attempts a key in a window, which begins with the first of them. */
class Quota {
  readonly #options: QuotaOptions;
  readonly #windows: LruMap<string, { readonly startedMs: number; taken: number }>;

  constructor(options: QuotaOptions) {
    this.#options = options;
    this.#windows = new LruMap(options.keysMax);
  }

  spend(key: string): void {
    this.refuse(key);
    this.note(key);
  }

  /** Throws 429 `rate_limited` where the window has no more. */
  refuse(key: string): void {
    const { max, windowMs, clock } = this.#options;
    const window = this.#running(key);
    if (max === null || window === undefined || window.taken < max) return;
    throw tooMany(window.startedMs + windowMs - clock.monotonic());
  }

  note(key: string): void {
    const { max, clock } = this.#options;
    if (max === null) return;
    const window = this.#running(key);
    if (window === undefined) this.#windows.set(key, { startedMs: clock.monotonic(), taken: 1 });
    else window.taken += 1;
  }

  #running(key: string) {
    const { windowMs, clock } = this.#options;
    const window = this.#windows.get(key);
    return window === undefined || clock.monotonic() >= window.startedMs + windowMs ? undefined : window;
  }
}

interface FailuresOptions {
  /** Failures that are free; null: all of them. */
  readonly max: number | null;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly keysMax: number;
}

/**
 * Failed logins by key, those of a window that slides. Past the allowed number each failure doubles how long the key has to
 * wait, up to the window. A failure counts for one window and no longer, so that few of them, however long they go on,
 * close nothing.
 */
class LoginFailures {
  readonly #options: FailuresOptions;
  readonly #keys: LruMap<string, { readonly atMs: readonly number[]; readonly closedUntilMs: number }>;

  constructor(options: FailuresOptions) {
    this.#options = options;
    this.#keys = new LruMap(options.keysMax);
  }

  /** Throws 429 `rate_limited` while the key has to wait. */
  refuseEarly(key: string): void {
    const entry = this.#keys.get(key);
    const leftMs = entry === undefined ? 0 : entry.closedUntilMs - this.#options.clock.monotonic();
    if (leftMs > 0) throw tooMany(leftMs);
  }

  areTooMany(key: string): boolean {
    const { max } = this.#options;
    return max !== null && this.#inWindow(key).length >= max;
  }

  note(key: string): void {
    const { max, clock } = this.#options;
    if (max === null) return;
    const nowMs = clock.monotonic();
    const atMs = [...this.#inWindow(key), nowMs].slice(-limits.loginFailuresKeptMax);
    this.#keys.set(key, { atMs, closedUntilMs: nowMs + this.#delayMs(atMs.length - max) });
  }

  forget(key: string): void {
    this.#keys.delete(key);
  }

  #inWindow(key: string): readonly number[] {
    const { clock, windowMs } = this.#options;
    const sinceMs = clock.monotonic() - windowMs;
    return this.#keys.get(key)?.atMs.filter((atMs) => atMs > sinceMs) ?? [];
  }

  /** How long a key waits, in milliseconds, after `over` failures past the last that is free. */
  #delayMs(over: number): number {
    return over < 0 ? 0 : Math.min(limits.loginDelayFirstMs * 2 ** over, this.#options.windowMs);
  }
}

function tooMany(leftMs: number): ApiError {
  const seconds = Math.ceil(leftMs / 1_000);
  const sentence = `too many attempts: try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
  return new ApiError('rate_limited', sentence, { retryAfter: seconds });
}
