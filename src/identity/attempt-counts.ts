/** How often somebody has tried, by key. Each key is counted in one place: here, or by the server of the cluster that owns the key. */
import { limits } from '../../protocol/limits.ts';
import type { AttemptLimits } from '../accounts/plans.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';

/** What is counted, each by keys of its own: failed logins by account and network and by account, the others by what their names say. */
export const attemptKinds = [
  'failures-by-network',
  'failures-by-account',
  'logins-by-address',
  'signups-by-address',
  'registrations-by-address',
  'resets-by-account',
  'resets-by-address',
] as const;
export type AttemptKind = (typeof attemptKinds)[number];

/** `spend` counts one more where there is one left; `look` counts nothing, `note` counts in any case, `forget` begins anew. */
export const attemptSteps = ['spend', 'look', 'note', 'forget'] as const;

/** One step of counting. The key says where it is counted. */
export interface AttemptAsk {
  readonly of: AttemptKind;
  readonly step: (typeof attemptSteps)[number];
  readonly key: string;
}

export interface AttemptSaid {
  /** Milliseconds until the key may try again; 0: now. */
  readonly waitMs: number;
  /** Whether all that is free is used up. Failures beyond that may try again all the same, once they have waited. */
  readonly areTooMany: boolean;
}

/** Does a step wherever the key is counted. Never rejects: where nobody else can be asked, this server's own count is good enough. */
export type CountAttempt = (ask: AttemptAsk) => AttemptSaid | Promise<AttemptSaid>;

const welcome: AttemptSaid = { waitMs: 0, areTooMany: false };
const minuteMs = 60_000;
const hourMs = 3_600_000;

/** What is counted by keys: what each step does with one. */
interface Counted {
  look(key: string): AttemptSaid;
  note(key: string): void;
  forget(key: string): void;
}

export interface AttemptCountsOptions {
  readonly limits: AttemptLimits;
  readonly clock: Clock;
  readonly keysMax?: number;
}

/** The counts of one server, in memory: a restart forgives, and so does a key's move to another server. */
export class AttemptCounts {
  readonly #kinds: Readonly<Record<AttemptKind, Counted>>;

  constructor({ limits: allowed, clock, keysMax = limits.attemptKeysMax }: AttemptCountsOptions) {
    const quota = (max: number | null, windowMs: number) => new Quota({ max, windowMs, clock, keysMax });
    const windowMs = allowed.login_window_seconds * 1_000;
    const failures = (max: number | null) => new LoginFailures({ max, windowMs, clock, keysMax });
    this.#kinds = {
      'failures-by-network': failures(allowed.login_failures_per_account_and_network),
      'failures-by-account': failures(allowed.login_failures_per_account),
      'logins-by-address': quota(allowed.login_per_address_minute, minuteMs),
      'signups-by-address': quota(allowed.signup_per_address_hour, hourMs),
      'registrations-by-address': quota(allowed.register_per_address_hour, hourMs),
      'resets-by-account': quota(allowed.forgot_per_account_hour, hourMs),
      'resets-by-address': quota(allowed.forgot_per_address_hour, hourMs),
    };
  }

  take({ of, step, key }: AttemptAsk): AttemptSaid {
    return takeStep(this.#kinds[of], step, key);
  }
}

/** Does a step of counting; answers what the key had before it, or has once it is forgotten. */
export function takeStep(counted: Counted, step: AttemptAsk['step'], key: string): AttemptSaid {
  if (step === 'forget') counted.forget(key);
  const said = counted.look(key);
  if (step === 'note' || (step === 'spend' && said.waitMs === 0)) counted.note(key);
  return said;
}

interface QuotaOptions {
  /** Attempts of one key in a window, of failures those that are free; null: no limit. */
  readonly max: number | null;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly keysMax: number;
}

/** So many attempts a key in a window, which begins with the first of them. */
export class Quota implements Counted {
  readonly #options: QuotaOptions;
  readonly #windows: LruMap<string, { readonly startedMs: number; taken: number }>;

  constructor(options: QuotaOptions) {
    this.#options = options;
    this.#windows = new LruMap(options.keysMax);
  }

  look(key: string): AttemptSaid {
    const { max, windowMs, clock } = this.#options;
    const window = this.#running(key);
    if (max === null || window === undefined || window.taken < max) return welcome;
    return { waitMs: window.startedMs + windowMs - clock.monotonic(), areTooMany: true };
  }

  note(key: string): void {
    const { max, clock } = this.#options;
    if (max === null) return;
    const window = this.#running(key);
    if (window === undefined) this.#windows.set(key, { startedMs: clock.monotonic(), taken: 1 });
    else window.taken += 1;
  }

  forget(key: string): void {
    this.#windows.delete(key);
  }

  #running(key: string) {
    const { windowMs, clock } = this.#options;
    const window = this.#windows.get(key);
    return window === undefined || clock.monotonic() >= window.startedMs + windowMs ? undefined : window;
  }
}

/**
 * Failed logins by key, those of a window that slides. Past the allowed number each failure doubles how long the key has to
 * wait, up to the window. A failure counts for one window and no longer, so that few of them, however long they go on,
 * close nothing.
 */
class LoginFailures implements Counted {
  readonly #options: QuotaOptions;
  readonly #keys: LruMap<string, { readonly atMs: readonly number[]; readonly closedUntilMs: number }>;

  constructor(options: QuotaOptions) {
    this.#options = options;
    this.#keys = new LruMap(options.keysMax);
  }

  look(key: string): AttemptSaid {
    const { max, clock } = this.#options;
    if (max === null) return welcome;
    const waitMs = (this.#keys.get(key)?.closedUntilMs ?? 0) - clock.monotonic();
    return { waitMs: Math.max(0, waitMs), areTooMany: this.#inWindow(key).length >= max };
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
