/**
 * What these pages read of the interface's answers. The schemas of protocol/ are made with Node's libraries, so their types
 * cannot be had here; test/src/front/console/shapes.test.ts holds these against them, by the compiler.
 */
export type Scope = 'read' | 'write' | 'admin';

export interface SignedUp {
  readonly key: string;
  readonly key_prefix: string;
}

export interface Tenant {
  readonly id: number;
  readonly name: string;
  readonly plan: string;
  readonly status: string;
}

export interface Me {
  readonly tenant_id: number;
  readonly tenant: Tenant;
  readonly person: {
    readonly id: number;
    readonly email: string;
    readonly name: string;
    readonly verified: boolean;
  } | null;
}

interface KeyCaps {
  readonly rate_per_s: number | null;
  readonly cap_queries: number | null;
  readonly cap_writes: number | null;
}

/** What an MCP client was let have. */
export interface Connection {
  readonly id: number;
  /** Its id is an https address where it has a document about itself. */
  readonly client: { readonly id: string; readonly name: string };
  readonly person: { readonly email: string };
  readonly scope: 'read' | 'write';
  readonly namespaces: readonly string[];
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export interface Key extends KeyCaps {
  readonly id: number;
  readonly name: string;
  readonly prefix: string;
  readonly scope: Scope;
  readonly namespaces: readonly string[];
  readonly used_queries: number;
  readonly used_writes: number;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly created_by: string;
}

export interface MadeKey {
  readonly name: string;
  readonly key: string;
}

export interface Namespace {
  readonly name: string;
  readonly vector?: { readonly dims: number; readonly metric: string } | undefined;
  readonly embed?: { readonly provider: string; readonly model?: string | undefined } | undefined;
  readonly docs_written: number;
  readonly stored_bytes: number;
  readonly created_at: string;
  readonly linked?:
    | {
        readonly source: string;
        readonly version: number;
        readonly follows: boolean;
        readonly gone?: boolean | undefined;
      }
    | undefined;
  readonly branched?: { readonly source: string; readonly version: number } | undefined;
}

export interface NamespaceList {
  readonly namespaces: readonly Namespace[];
  /** Empty: no more. */
  readonly next: string;
}

export interface Hit {
  readonly id: string;
  readonly match: string;
  readonly line: string;
  readonly line_number: number;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly written_at: string;
  readonly score?: number | undefined;
}

export interface Found {
  readonly hits: readonly Hit[];
  readonly next: string;
  readonly docs: number;
  readonly took_ms: number;
  readonly partial: boolean;
  readonly temperature: string;
}

export interface StoredDocument {
  readonly id: string;
  readonly text?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly written_at: string;
}

export interface SqlAnswer {
  readonly columns: readonly string[];
  readonly types: readonly string[];
  readonly rows: readonly (readonly (number | string | null)[])[];
  readonly truncated: boolean;
  readonly took_ms: number;
  readonly temperature: string;
}

export interface Counters {
  readonly queries: number;
  readonly writes: number;
  readonly write_bytes: number;
  readonly docs_written: number;
  readonly store_gets: number;
  readonly out_bytes: number;
  readonly embed_tokens: number;
  readonly stored_bytes: number;
  readonly cpu_ms: number;
  readonly gb_months: number;
}

export interface Usage extends Counters {
  readonly period_start: string;
  readonly plan: Allowances;
  readonly bill: Readonly<Record<BillLine, number>>;
  readonly days?: readonly (Counters & { readonly day: string; readonly bill_so_far: number })[] | undefined;
}

export interface Allowances {
  readonly name: string;
  readonly hard_limit: boolean;
  readonly unverified_share: number | null;
  readonly included_queries: number | null;
  readonly included_writes: number | null;
  readonly included_write_gb: number | null;
  readonly included_gb_months: number | null;
  readonly included_embed_tokens: number | null;
  readonly included_cpu_seconds: number | null;
  readonly included_store_gets: number | null;
  readonly included_out_gb: number | null;
  readonly storage_quota_gb: number | null;
}

export type BillLine = 'base' | 'storage' | 'writes' | 'queries' | 'embedding' | 'reads' | 'usage' | 'total';

export interface Billing {
  readonly plan: string;
  readonly configured: boolean;
  readonly subscribed: boolean;
  readonly status: string;
  readonly cancel_at_period_end: boolean;
  readonly period_start: string;
  readonly period_end: string;
  readonly usage: Counters;
  readonly bill: Readonly<Record<BillLine, number>>;
}
