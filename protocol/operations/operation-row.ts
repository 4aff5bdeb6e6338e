import type { Scope } from '../account.ts';
import { namespaceNameSchema } from '../namespace.ts';
import { integer, type z } from '../validate.ts';
import type { EffectRow } from './effect.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type PathParameterName = 'name' | 'id' | 'provider';
export type Tag =
  | 'accounts'
  | 'keys'
  | 'tenants'
  | 'billing'
  | 'namespaces'
  | 'documents'
  | 'search'
  | 'meta';

/** What an operation says of itself; what is left out has the default of `complete` in operations.ts. */
export interface OperationRow {
  readonly methods: readonly Method[];
  /** `{name}`, `{id}`, `{provider}` are path parameters. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** `login`: a login token only, keys are refused. Default `key-or-login`. */
  readonly auth?: 'none' | 'key-or-login' | 'login';
  /** The least scope; null where any live credential will do. */
  readonly scope?: Scope | null;
  /** `unlimited-admin`: an admin key without limits or caps, or the owner's login. `billing`: admin key or owner's login. */
  readonly authority?: 'any' | 'unlimited-admin' | 'billing';
  /** Whether the people of a suspended tenant may do it: see who they are, and pay. Default false. */
  readonly whenSuspended?: boolean;
  /** What a key hears of a namespace outside its patterns: 403, or 404 as of one that is missing. Default `forbidden`. */
  readonly outsidePatterns?: 'forbidden' | 'not_found';
  /** Whether it reads or writes, what is unknown after a crash, and what is metered and audited; see effect.ts. */
  readonly effect: EffectRow;
  /** Who does the work: the front itself, the tenant's actor or the namespace's. */
  readonly serves: 'front' | 'tenant' | 'namespace';
  /** How the documents in its body change those of the namespace; null for whatever doesn't go through the write pipeline. */
  readonly changes?: 'put' | 'patch' | 'delete' | null;
  /**
   * What the front does before the actor is asked. `caller-address`: looks up the e-mail address of who asks, which the actor notes.
   * `usage-told`: tells the tenant what this front has counted, since the answer shows it or begins to limit it.
   */
  readonly needsFirst?: 'caller-address' | 'usage-told' | null;
  /** Which of a plan's limits hold: `sql_seconds` and `sql_concurrency`, or `query_seconds`. Default `query`. */
  readonly runsAs?: 'query' | 'sql';
  readonly success?: number;
  /** Statuses that it may answer beside those that follow from its credential, parameters and body; /openapi.json lists them. */
  readonly statuses: readonly number[];
  /** Query parameters; with several methods, those of its GET. */
  readonly query?: z.ZodObject | null;
  /** The JSON body of the methods other than GET; `file` is an octet stream, `signed` bytes that only their signature speaks for. */
  readonly request?: z.ZodType | 'file' | 'signed' | null;
  /** False where an empty body counts as `{}`. */
  readonly bodyRequired?: boolean;
  /** What a wrong field answers: 422 `invalid` or, where the service says so, 400. */
  readonly inputCode?: 'invalid' | 'bad_request';
  /** The shape of the answer's body; null where it has none, and `text` for plain text. */
  readonly answer: z.ZodType | 'text' | null;
  readonly parameters?: Readonly<Partial<Record<PathParameterName, z.ZodType>>>;
  /** The parameter that takes the rest of the path, slashes included. */
  readonly restParameter?: PathParameterName | null;
  readonly bodyBytesMax?: number;
  /** Refused to pages of other origins: what a browser does here without credentials has consequences for its person. */
  readonly sameOrigin?: boolean;
  readonly rateLimitHeaders?: boolean;
  /** Heeds an `Idempotency-Key`: done once, however often it is sent. */
  readonly idempotent?: boolean;
  /** Its MCP tool. */
  readonly mcp?: string | null;
  /** False: routed, authenticated and authorised, then answered 501 `not_implemented`. */
  readonly built?: boolean;
}

export type OperationRows = Readonly<Record<string, OperationRow>>;

export const POST = ['POST'] as const;
export const GET = ['GET'] as const;
export const PUT = ['PUT'] as const;
export const PATCH = ['PATCH'] as const;
export const DELETE = ['DELETE'] as const;

export const idNumber = { id: integer(1) } as const;
export const inNamespace = { name: namespaceNameSchema } as const;
