import { isIPv6 } from 'node:net';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { AttemptLimits } from '../accounts/plans.ts';
import type { Clock } from '../base/clock.ts';
import { sha256Latin1 } from '../base/hash.ts';
import { LruMap } from '../base/lru.ts';
import { emailIdentity } from './sign-up-rules.ts';

/**
 * How often somebody may try, by the account that they name and by the address that they come from. An account counts
 * whether or not it exists, so a refusal says nothing of that. Counted per server and in memory: a restart forgives.
 */
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
  /** The client's, as text. */
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

export class Attempts {
  readonly #sparesLoopback: boolean;
  readonly #failures: LoginFailures;
  readonly #open: Quota;
  readonly #logins: Quota;
  readonly #signups: Quota;
  readonly #lookUps: Quota;
  readonly #forgotten: { readonly byAccount: Quota; readonly byAddress: Quota };

  constructor({ limits: allowed, clock, sparesLoopback, keysMax = limits.attemptKeysMax }: AttemptsOptions) {
    const quota = (max: number | null, windowMs: number) => new Quota({ max, windowMs, clock, keysMax });
    this.#sparesLoopback = sparesLoopback;
    this.#failures = new LoginFailures(allowed, clock, keysMax);
    this.#open = quota(allowed.open_per_address_minute, minuteMs);
    this.#logins = quota(allowed.login_per_address_minute, minuteMs);
    this.#signups = quota(allowed.signup_per_address_hour, hourMs);
    this.#lookUps = quota(limits.failedLookUpsPerMinuteMax, minuteMs);
    this.#forgotten = {
      byAccount: quota(allowed.forgot_per_account_hour, hourMs),
      byAddress: quota(allowed.forgot_per_address_hour, hourMs),
    };
  }

  /**
   * Runs a login; only its 401 counts as a failure. Throws 429 `rate_limited` without running it. Logins that run side by
   * side are all judged by the failures before them, and the gate for passwords bounds how many those are.
   */
  async login<T>({ email, address }: Attempter, run: () => Promise<T>): Promise<T> {
    const account = accountOf(email);
    this.#failures.refuseEarly(account);
    this.#takeByAddress(this.#logins, address);
    try {
      const result = await run();
      this.#failures.forget(account);
      return result;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'unauthorized') this.#failures.note(account);
      throw error;
    }
  }

  /** Counts a request without credentials, whatever it asks for, before its body is read. Throws 429 `rate_limited`. */
  openRequest(address: string): void {
    this.#takeByAddress(this.#open, address);
  }

  /** Throws 429 `rate_limited`. */
  signup(address: string): void {
    this.#takeByAddress(this.#signups, address);
  }

  /** Throws 429 `rate_limited`. Whom the address refuses does not use up what the account has. */
  forgotPassword({ email, address }: Attempter): void {
    this.#takeByAddress(this.#forgotten.byAddress, address);
    this.#forgotten.byAccount.take(accountOf(email));
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

  /** A password that was just reset is known to its person, whatever was tried before. */
  forgiveLogins(email: string): void {
    this.#failures.forget(accountOf(email));
  }

  #takeByAddress(quota: Quota, address: string): void {
    if (!this.#spares(address)) quota.take(networkOf(address));
  }

  #spares(address: string): boolean {
    return this.#sparesLoopback && isLoopback(address);
  }
}

/** A digest: of one size whatever was sent. */
function accountOf(email: string): string {
  return sha256Latin1(emailIdentity(email));
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^127(\.[0-9]{1,3}){3}$/.test(address);
}

/** Whoever has one IPv6 address has the 2^64 of its network. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  if (tail !== undefined) while (groups.length + after.length < 8) groups.push('0');
  const network = [...groups, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

interface QuotaOptions {
  /** Null: no limit. */
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

  take(key: string): void {
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

/**
 * Failed logins of an account. After the allowed number each failure doubles how long the account has to wait, up to the
 * window and never longer: a lock would let anybody shut anybody out. Forgotten after a window without failures.
 */
class LoginFailures {
  readonly #max: number | null;
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #accounts: LruMap<string, { failures: number; closedUntilMs: number }>;

  constructor(allowed: AttemptLimits, clock: Clock, keysMax: number) {
    this.#max = allowed.login_failures_per_account;
    this.#windowMs = allowed.login_window_seconds * 1_000;
    this.#clock = clock;
    this.#accounts = new LruMap(keysMax);
  }

  refuseEarly(account: string): void {
    const entry = this.#accounts.get(account);
    const leftMs = entry === undefined ? 0 : entry.closedUntilMs - this.#clock.monotonic();
    if (leftMs > 0) throw tooMany(leftMs);
  }

  note(account: string): void {
    if (this.#max === null) return;
    const nowMs = this.#clock.monotonic();
    const before = this.#accounts.get(account);
    const isRecent = before !== undefined && nowMs < before.closedUntilMs + this.#windowMs;
    const failures = (isRecent ? before.failures : 0) + 1;
    const closedUntilMs = nowMs + this.#delayMs(failures - this.#max);
    this.#accounts.set(account, { failures, closedUntilMs });
  }

  forget(account: string): void {
    this.#accounts.delete(account);
  }

  /** `over`: failures past the last that is free. */
  #delayMs(over: number): number {
    return over < 0 ? 0 : Math.min(limits.loginDelayFirstMs * 2 ** over, this.#windowMs);
  }
}

function tooMany(leftMs: number): ApiError {
  const seconds = Math.ceil(leftMs / 1_000);
  const sentence = `Too many attempts: try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  return new ApiError('rate_limited', sentence, { retryAfter: seconds });
}
