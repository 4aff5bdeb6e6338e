import { ApiError } from '../../protocol/errors.ts';
import type { Principal, PrincipalLimits } from '../auth/principal.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';
import { type HeaderList, rateLimitHeaders } from './rate-limit-headers.ts';

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly tenantsMax?: number;
  readonly keysMax?: number;
}

/** Tenants and rate-limited keys with counters at once; the least recently used lose theirs, which lets in a little more. */
export const admissionTenantsMaxDefault = 100_000;
export const admissionKeysMaxDefault = 100_000;

const windowMs = 1_000;

/** One admitted request: to be released when it has ended, however it ended. */
export interface AdmissionTicket {
  /** The rate-limit headers of the answer. Shared between answers: not to be changed. */
  readonly headers: HeaderList;
  /** Ends the request's flight, when its answer has left. Later calls do nothing. */
  release(): void;
  /**
   * Ends the request's flight as if it had never been admitted: for one that asks for operations, each of which is admitted in
   * its place.
   */
  withdraw(): void;
  /** Has `release` run something; a later call takes the place of an earlier one. */
  whenReleased(run: () => void): void;
}

interface Counter {
  window: number;
  requests: number;
  inFlight: number;
  sqlInFlight: number;
}

/**
 * Requests in flight and requests a second, per tenant and per key, on one front thread. Checked before anything else is
 * spent on a request: one look-up for most, two for keys with a rate of their own. A refused request counts for neither.
 *
 * Windows are whole seconds of the monotonic clock. A client can therefore send two windows' worth around the turn of a
 * second; a sliding window would cost more state and would make `RateLimit-Reset` a guess.
 */
export class Admission {
  readonly #clock: Clock;
  readonly #inFlight = { count: 0 };
  /** The refusals that were made, by their sentence. */
  readonly #refusals = new Map<string, { readonly headers: HeaderList; readonly error: ApiError }>();
  readonly #tenants: LruMap<number, Counter>;
  readonly #keys: LruMap<number, Counter>;

  constructor({ clock, tenantsMax, keysMax }: AdmissionOptions) {
    this.#clock = clock;
    this.#tenants = new LruMap(tenantsMax ?? admissionTenantsMaxDefault);
    this.#keys = new LruMap(keysMax ?? admissionKeysMaxDefault);
  }

  /** Counts a request that is nobody's, such as a sign-up: only so that a server that stops lets it end. */
  async accompany(work: () => Promise<void>): Promise<void> {
    this.#inFlight.count += 1;
    try {
      await work();
    } finally {
      this.#inFlight.count -= 1;
    }
  }

  /** Admitted requests that have not ended, of everybody. */
  get inFlight(): number {
    return this.#inFlight.count;
  }

  /**
   * Lets a request in, or answers 429 `rate_limited` with `retryAfter` and the rate-limit headers: answered, not thrown,
   * because a throw was a sixth of what a refusal of a flood costs.
   */
  admit({ tenantId, keyId, limits }: Principal, isSql = false): AdmissionTicket | ApiError {
    const window = Math.floor(this.#clock.monotonic() / windowMs);
    const tenant = counterOf(this.#tenants, tenantId, window);
    const key = limits.keyQps === null || keyId === null ? null : counterOf(this.#keys, keyId, window);
    const refusal = refusalOf(limits, tenant, key) ?? (isSql ? sqlRefusalOf(limits, tenant) : null);
    if (refusal !== null) return this.#rateLimited(refusal, headersOf(limits, tenant, key));
    tenant.requests += 1;
    tenant.inFlight += 1;
    if (isSql) tenant.sqlInFlight += 1;
    this.#inFlight.count += 1;
    if (key !== null) key.requests += 1;
    return new Ticket(tenant, this.#inFlight, { headers: headersOf(limits, tenant, key), isSql, key });
  }

  /**
   * The refusal with this sentence. A flood is refused with the same words again and again, so an error and its bytes are made once:
   * they were a third of what a refusal costs. Header lists are shared already, and of one sentence they differ only where something
   * is left of the second.
   */
  #rateLimited(sentence: string, headers: HeaderList): ApiError {
    const kept = this.#refusals.get(sentence);
    if (kept?.headers === headers) return kept.error;
    const error = new ApiError('rate_limited', `${sentence}: try again in a second`, {
      retryAfter: 1,
      headers,
    });
    if (this.#refusals.size >= refusalsKeptMax) this.#refusals.clear();
    this.#refusals.set(sentence, { headers, error });
    return error;
  }
}

/** Refusals that are kept: as many as there are limits and kinds of them. */
const refusalsKeptMax = 1_000;

class Ticket implements AdmissionTicket {
  readonly headers: HeaderList;
  readonly #all: { count: number };
  readonly #isSql: boolean;
  readonly #key: Counter | null;
  readonly #window: number;
  #tenant: Counter | null;
  #whenReleased: (() => void) | null = null;

  constructor(
    tenant: Counter,
    all: { count: number },
    {
      headers,
      isSql,
      key,
    }: { readonly headers: HeaderList; readonly isSql: boolean; readonly key: Counter | null },
  ) {
    this.#tenant = tenant;
    this.#all = all;
    this.#isSql = isSql;
    this.#key = key;
    this.#window = tenant.window;
    this.headers = headers;
  }

  whenReleased(run: () => void): void {
    this.#whenReleased = run;
  }

  withdraw(): void {
    // Those of a second that is over are counted by nobody any more.
    for (const counter of [this.#tenant, this.#tenant === null ? null : this.#key])
      if (counter?.window === this.#window) counter.requests -= 1;
    this.release();
  }

  release(): void {
    if (this.#tenant === null) return;
    this.#whenReleased?.();
    this.#tenant.inFlight -= 1;
    if (this.#isSql) this.#tenant.sqlInFlight -= 1;
    this.#all.count -= 1;
    this.#tenant = null;
  }
}

function counterOf(counters: LruMap<number, Counter>, id: number, window: number): Counter {
  const known = counters.get(id);
  if (known === undefined) {
    const counter = { window, requests: 0, inFlight: 0, sqlInFlight: 0 };
    counters.set(id, counter);
    return counter;
  }
  if (known.window !== window) {
    known.window = window;
    known.requests = 0;
  }
  return known;
}

function refusalOf(limits: PrincipalLimits, tenant: Counter, key: Counter | null): string | null {
  const { tenantQps, keyQps, concurrency } = limits;
  if (concurrency !== null && tenant.inFlight >= concurrency) {
    return `more than ${concurrency} requests are in flight`;
  }
  if (key !== null && keyQps !== null && key.requests >= keyQps) {
    return `the key's limit of ${keyQps} requests a second is reached`;
  }
  if (tenantQps !== null && tenant.requests >= tenantQps) {
    return `the limit of ${tenantQps} requests a second is reached`;
  }
  return null;
}

function sqlRefusalOf({ sqlConcurrency }: PrincipalLimits, { sqlInFlight }: Counter): string | null {
  if (sqlConcurrency === null || sqlInFlight < sqlConcurrency) return null;
  return `more than ${sqlConcurrency} SQL queries run at once`;
}

/** The limit is the tighter one; what remains is whatever ends first. */
function headersOf({ tenantQps, keyQps }: PrincipalLimits, tenant: Counter, key: Counter | null): HeaderList {
  const limit = keyQps ?? tenantQps;
  if (limit === null) return rateLimitHeaders(null, 0);
  const ofTenant = tenantQps === null ? limit : tenantQps - tenant.requests;
  const ofKey = key === null ? limit : limit - key.requests;
  return rateLimitHeaders(limit, Math.max(0, Math.min(ofTenant, ofKey)));
}
