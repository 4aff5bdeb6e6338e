import type { UsageCounters } from '../../protocol/stored-tenant.ts';
import type { Plan } from './plans.ts';

/** What a period costs, in the currency of the plan's prices. Pure. */
export interface Bill {
  /** The plan's price a month. */
  readonly base: number;
  readonly storage: number;
  readonly writes: number;
  readonly queries: number;
  /** Tokens of the hosted model. */
  readonly embedding: number;
  /** Reads of the object store. */
  readonly reads: number;
  /** All of these but the base. */
  readonly usage: number;
  readonly total: number;
}

/** Where a plan includes all there is, nothing is past it. */
const past = (used: number, included: number | null) =>
  included === null ? 0 : Math.max(0, used - included);

/** Prices have fractions of cents; sums of them must not have fractions of those. */
const rounded = (amount: number) => Math.round(amount * 1e6) / 1e6;

/** `gbMonths`: of the whole period so far. */
export function billOf(plan: Plan, usage: UsageCounters, gbMonths: number): Bill {
  const base = plan.price_month;
  const storage = rounded(past(gbMonths, plan.included_gb_months) * plan.per_gb_month);
  const writes = rounded(past(usage.writeBytes / 1e9, plan.included_write_gb) * plan.per_gb_written);
  const queries = rounded((past(usage.queries, plan.included_queries) / 1e6) * plan.per_million_queries);
  const embedding = rounded(
    (past(usage.hostedTokens, plan.included_embed_tokens) / 1e6) * plan.per_million_embed_tokens,
  );
  const reads = rounded(
    (past(usage.storeGets, plan.included_store_gets) / 1e6) * plan.per_million_store_gets,
  );
  const sum = rounded(storage + writes + queries + embedding + reads);
  return { base, storage, writes, queries, embedding, reads, usage: sum, total: rounded(base + sum) };
}
