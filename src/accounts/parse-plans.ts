import type { AttemptLimits, Plan, Plans } from './plans.ts';
import { querySecondsMax } from './plans.ts';

/** The plans file cannot be used; the message is a sentence for the person who wrote it. */
export class PlansError extends Error {
  override name = 'PlansError';
}

const accountDelaySecondsMax = 10;

/** What is wrong with a value, or null. */
type Rule = (value: unknown) => string | null;
type Rules<T> = Readonly<Record<keyof T, Rule>>;

const isNumberFrom = (value: unknown, least: number): boolean =>
  typeof value === 'number' && Number.isFinite(value) && value >= least;

const amount: Rule = (value) => (isNumberFrom(value, 0) ? null : 'must be a number, 0 or more');
const amountOrNoLimit: Rule = (value) =>
  value === null || isNumberFrom(value, 0) ? null : 'must be a number, 0 or more, or null for no limit';
const countOrNoLimit: Rule = (value) =>
  value === null || (isNumberFrom(value, 1) && Number.isSafeInteger(value))
    ? null
    : 'must be a whole number, 1 or more, or null for no limit';
const querySeconds: Rule = (value) =>
  isNumberFrom(value, 0.001) && Number(value) <= querySecondsMax
    ? null
    : `must be a number over 0, at most ${querySecondsMax}`;
/** A login that is held longer would meet the deadline of its request, and hold up a server that stops. */
const accountDelay: Rule = (value) =>
  isNumberFrom(value, 0) && Number(value) <= accountDelaySecondsMax
    ? null
    : `must be a number from 0 to ${accountDelaySecondsMax}`;
const count: Rule = (value) =>
  isNumberFrom(value, 1) && Number.isSafeInteger(value) ? null : 'must be a whole number, 1 or more';
const truth: Rule = (value) => (typeof value === 'boolean' ? null : 'must be true or false');
const share: Rule = (value) =>
  isNumberFrom(value, 0) && Number(value) <= 1 ? null : 'must be a number from 0 to 1';
const exactly =
  (text: string): Rule =>
  (value) =>
    value === text ? null : `must be "${text}"`;

const planRules = (name: string): Rules<Plan> => ({
  name: exactly(name),
  price_month: amount,
  included_gb_months: amountOrNoLimit,
  included_write_gb: amountOrNoLimit,
  included_queries: amountOrNoLimit,
  included_writes: amountOrNoLimit,
  included_embed_tokens: amountOrNoLimit,
  per_gb_month: amount,
  per_gb_written: amount,
  per_million_queries: amount,
  per_million_embed_tokens: amount,
  per_million_store_gets: amount,
  hard_limit: truth,
  qps: countOrNoLimit,
  concurrency: countOrNoLimit,
  storage_quota_gb: amountOrNoLimit,
  read_inflight_mb: countOrNoLimit,
  sql_seconds: querySeconds,
  sql_concurrency: countOrNoLimit,
  query_seconds: querySeconds,
  max_namespaces: countOrNoLimit,
  included_cpu_seconds: amountOrNoLimit,
  included_store_gets: amountOrNoLimit,
  included_out_gb: amountOrNoLimit,
  max_creates_day: countOrNoLimit,
  unverified_share: share,
});

const attemptRules: Rules<AttemptLimits> = {
  open_per_address_minute: countOrNoLimit,
  login_failures_per_account_and_network: countOrNoLimit,
  login_failures_per_account: countOrNoLimit,
  login_account_delay_seconds: accountDelay,
  login_window_seconds: count,
  login_per_address_minute: countOrNoLimit,
  signup_per_address_hour: countOrNoLimit,
  register_per_address_hour: countOrNoLimit,
  forgot_per_account_hour: countOrNoLimit,
  forgot_per_address_hour: countOrNoLimit,
};

/**
 * A plans file: `{"free": …, "pro": …, "attempts": …}`, every field present, so that an operator sees in one place what
 * holds. Throws `PlansError` naming every problem at once.
 */
export function parsePlans(json: string): Plans {
  const problems: string[] = [];
  const top = parseObject(json);
  const parts = {
    free: planRules('free'),
    pro: planRules('pro'),
    attempts: attemptRules,
  } satisfies Record<keyof Plans, unknown>;
  problems.push(...keyProblems(top, Object.keys(parts), ''));
  for (const [name, rules] of Object.entries(parts)) {
    if (Object.hasOwn(top, name)) problems.push(...partProblems(name, top[name], rules));
  }
  if (problems.length > 0) throw new PlansError(`the plans file cannot be used: ${problems.join('; ')}`);
  // Every field of the type was just found with its type, and no other.
  return top as unknown as Plans;
}

function parseObject(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new PlansError('the plans file cannot be used: it is not JSON', { cause });
  }
  if (!isObject(value)) throw new PlansError('the plans file cannot be used: it must be a JSON object');
  return value;
}

function partProblems(name: string, part: unknown, rules: Readonly<Record<string, Rule>>): string[] {
  if (!isObject(part)) return [`${name} must be an object`];
  const problems = keyProblems(part, Object.keys(rules), `${name}.`);
  for (const [key, rule] of Object.entries(rules)) {
    const problem = Object.hasOwn(part, key) ? rule(part[key]) : null;
    if (problem !== null) problems.push(`${name}.${key} ${problem}`);
  }
  return problems;
}

function keyProblems(found: Record<string, unknown>, known: readonly string[], path: string): string[] {
  return [
    ...known.filter((key) => !Object.hasOwn(found, key)).map((key) => `${path}${key} is missing`),
    ...Object.keys(found)
      .filter((key) => !known.includes(key))
      .map((key) => `${path}${key} is not known`),
  ];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
