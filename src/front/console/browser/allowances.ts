import { formatBytes, formatNumber, formatPrecise } from './format.ts';
import type { Usage } from './shapes.ts';

/** What was used of what the plan includes. Pure. */
export interface Allowance {
  readonly name: string;
  readonly used: number;
  /** Null: no limit. */
  readonly included: number | null;
  readonly format: (value: number) => string;
}

const gigabyte = 1e9;

/** `share`: what part an account has whose address is not verified. */
export function allowancesOf(usage: Usage, share: number): Allowance[] {
  const { plan } = usage;
  const shared = (included: number | null) => (included === null ? null : included * share);
  const bytes = (gigabytes: number | null) => (gigabytes === null ? null : gigabytes * gigabyte * share);
  const seconds = (value: number) => `${formatPrecise(value)} s`;
  const all: readonly Allowance[] = [
    { name: 'Queries', used: usage.queries, included: shared(plan.included_queries), format: formatNumber },
    { name: 'Writes', used: usage.writes, included: shared(plan.included_writes), format: formatNumber },
    {
      name: 'Bytes written',
      used: usage.write_bytes,
      included: bytes(plan.included_write_gb),
      format: formatBytes,
    },
    {
      name: 'Stored now',
      used: usage.stored_bytes,
      included: bytes(plan.storage_quota_gb),
      format: formatBytes,
    },
    {
      name: 'Bytes returned',
      used: usage.out_bytes,
      included: bytes(plan.included_out_gb),
      format: formatBytes,
    },
    {
      name: 'Reads of object storage',
      used: usage.store_gets,
      included: shared(plan.included_store_gets),
      format: formatNumber,
    },
    {
      name: 'Query time',
      used: usage.cpu_ms / 1_000,
      included: shared(plan.included_cpu_seconds),
      format: seconds,
    },
    {
      name: 'Embedding tokens',
      used: usage.embed_tokens,
      included: shared(plan.included_embed_tokens),
      format: formatNumber,
    },
  ];
  return [...all];
}
