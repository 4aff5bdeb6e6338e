import * as account from './account.ts';
import { documentIdSchema, documentQuerySchema, storedDocumentSchema } from './document.ts';
import { limits } from './limits.ts';
import * as namespace from './namespace.ts';
import * as searching from './search.ts';
import { sqlAnswerSchema, sqlRequestSchema } from './sql.ts';
import { integer, z } from './validate.ts';
import * as write from './write.ts';

/**
 * Every operation, once. Routing, validation, the OpenAPI document, the MCP tool list and the authorisation test
 * matrix are folds over this table: what is not here does not exist. See protocol/README.md for adding one.
 */
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

/** What an operation says of itself; what is left out has the default of `complete` below. */
interface OperationRow {
  readonly methods: readonly Method[];
  /** `{name}`, `{id}`, `{provider}` are path parameters. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** `login`: a login token only, keys are refused. Default `key-or-login`. */
  readonly auth?: 'none' | 'key-or-login' | 'login';
  /** The least scope; null where any live credential will do. */
  readonly scope?: account.Scope | null;
  /** `unlimited-admin`: an admin key without limits or caps, or the owner's login. `billing`: admin key or owner's login. */
  readonly authority?: 'any' | 'unlimited-admin' | 'billing';
  /** What a key hears of a namespace outside its patterns: 403, or 404 as of one that is missing. Default `forbidden`. */
  readonly outsidePatterns?: 'forbidden' | 'not_found';
  /** What is metered: one query or one write request. `/openapi.json` shows it as `x-metering`. */
  readonly marker?: 'query' | 'write' | null;
  /** Who does the work: the front itself, the tenant's actor or the namespace's. */
  readonly serves: 'front' | 'tenant' | 'namespace';
  readonly success?: number;
  /** Statuses that it may answer beside those that follow from its credential, parameters and body; /openapi.json lists them. */
  readonly statuses: readonly number[];
  /** Query parameters; with several methods, those of its GET. */
  readonly query?: z.ZodObject | null;
  /** The JSON body of the methods other than GET; `file` is an octet stream. */
  readonly request?: z.ZodType | 'file' | null;
  /** False where an empty body counts as `{}`. */
  readonly bodyRequired?: boolean;
  /** What a wrong field answers: 422 `invalid` or, where the service says so, 400. */
  readonly inputCode?: 'invalid' | 'bad_request';
  /** Null where the answer has no body; `text` is plain text. */
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

const POST = ['POST'] as const;
const GET = ['GET'] as const;
const PUT = ['PUT'] as const;
const PATCH = ['PATCH'] as const;
const DELETE = ['DELETE'] as const;

const idNumber = { id: integer(1) } as const;
const provider = { provider: z.enum(namespace.keyedProviders) } as const;
const inNamespace = { name: namespace.namespaceNameSchema } as const;
const inDocument = { ...inNamespace, id: documentIdSchema } as const;

const readStatuses = [400, 401, 402, 403, 404, 413, 422, 429, 503] as const;
const writeStatuses = [400, 401, 402, 403, 404, 413, 422, 429, 502, 503, 507] as const;
const anything = z.unknown().meta({ type: 'object', additionalProperties: true });

const rows = {
  signup: {
    methods: POST,
    path: '/v1/signup',
    tag: 'accounts',
    summary: 'Create a person, a first tenant and a first admin key',
    auth: 'none',
    sameOrigin: true,
    serves: 'front',
    success: 201,
    statuses: [400, 403, 409, 422, 429],
    request: account.signupRequestSchema,
    answer: account.signupAnswerSchema,
  },
  login: {
    methods: POST,
    path: '/v1/login',
    tag: 'accounts',
    summary: 'Get a login token, valid one day',
    description:
      'Acts for the default tenant, or for the one in header X-Tenant; a request with the token may name another one.',
    auth: 'none',
    sameOrigin: true,
    serves: 'front',
    statuses: [400, 401, 403, 404, 429],
    request: account.loginRequestSchema,
    inputCode: 'bad_request',
    answer: account.loginAnswerSchema,
  },
  verifyEmail: {
    methods: POST,
    path: '/v1/email/verify',
    tag: 'accounts',
    summary: 'Verify an e-mail address with the token of its link',
    auth: 'none',
    serves: 'front',
    statuses: [400],
    request: account.verifyRequestSchema,
    inputCode: 'bad_request',
    answer: account.verifyAnswerSchema,
  },
  resendVerification: {
    methods: POST,
    path: '/v1/email/verify/resend',
    tag: 'accounts',
    summary: 'Send the verification link again, at most once a minute',
    serves: 'front',
    success: 202,
    statuses: [400, 401, 429],
    answer: account.resendAnswerSchema,
  },
  forgotPassword: {
    methods: POST,
    path: '/v1/password/forgot',
    tag: 'accounts',
    summary: 'E-mail a single-use link that resets the password',
    auth: 'none',
    sameOrigin: true,
    serves: 'front',
    success: 202,
    statuses: [400, 403, 429],
    request: account.forgotRequestSchema,
    inputCode: 'bad_request',
    answer: account.forgotAnswerSchema,
  },
  resetPassword: {
    methods: POST,
    path: '/v1/password/reset',
    tag: 'accounts',
    summary: 'Set a new password with the token of a reset link',
    auth: 'none',
    sameOrigin: true,
    serves: 'front',
    statuses: [400, 403, 422, 429],
    request: account.resetRequestSchema,
    answer: account.resetAnswerSchema,
  },
  me: {
    methods: GET,
    path: '/v1/me',
    tag: 'accounts',
    summary: 'Who is asking: person (with a key, whoever made it), tenant, plan, scope and key',
    serves: 'front',
    statuses: [401],
    answer: account.meSchema,
  },

  listKeys: {
    methods: GET,
    path: '/v1/keys',
    tag: 'keys',
    summary: "The tenant's live keys, newest first",
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    statuses: [401, 403],
    answer: account.keyListSchema,
  },
  createKey: {
    methods: POST,
    path: '/v1/keys',
    tag: 'keys',
    summary: 'Create a key; it is shown only in this answer',
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    success: 201,
    statuses: [400, 401, 403, 409, 422],
    request: account.keyRequestSchema,
    answer: account.newKeySchema,
    idempotent: true,
  },
  revokeKey: {
    methods: DELETE,
    path: '/v1/keys/{id}',
    tag: 'keys',
    summary: 'Revoke a key at once',
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    success: 204,
    statuses: [401, 403, 404],
    answer: null,
    parameters: idNumber,
  },
  replaceKeyLimits: {
    methods: PUT,
    path: '/v1/keys/{id}/limits',
    tag: 'keys',
    summary: "Replace a key's limits",
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    success: 204,
    statuses: [400, 401, 403, 404, 422],
    request: account.keyLimitsSchema,
    answer: null,
    parameters: idNumber,
  },

  listEmbeddingKeys: {
    methods: GET,
    path: '/v1/embedding-keys',
    tag: 'keys',
    summary: 'Stored keys of embedding providers, never the keys themselves',
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    statuses: [401, 403],
    answer: account.embeddingKeyListSchema,
  },
  putEmbeddingKey: {
    methods: PUT,
    path: '/v1/embedding-keys/{provider}',
    tag: 'keys',
    summary: "Store a provider's key after trying it",
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    statuses: [400, 401, 403, 404, 422, 429, 502],
    request: account.embeddingKeyRequestSchema,
    answer: account.embeddingKeySchema,
    parameters: provider,
  },
  deleteEmbeddingKey: {
    methods: DELETE,
    path: '/v1/embedding-keys/{provider}',
    tag: 'keys',
    summary: "Forget a provider's key at once",
    scope: 'admin',
    authority: 'unlimited-admin',
    serves: 'tenant',
    success: 204,
    statuses: [401, 403, 404],
    answer: null,
    parameters: provider,
  },

  listTenants: {
    methods: GET,
    path: '/v1/tenants',
    tag: 'tenants',
    summary: "The caller's tenants and its role in each; a key sees its own",
    serves: 'front',
    statuses: [401],
    answer: account.tenantListSchema,
  },
  createTenant: {
    methods: POST,
    path: '/v1/tenants',
    tag: 'tenants',
    summary: 'Create a tenant; act for it with header X-Tenant',
    auth: 'login',
    serves: 'front',
    success: 201,
    statuses: [400, 401, 403, 409, 422],
    request: account.tenantRequestSchema,
    answer: account.tenantSchema,
    idempotent: true,
  },
  deleteTenant: {
    methods: DELETE,
    path: '/v1/tenants/{id}',
    tag: 'tenants',
    summary: 'Remove a tenant with its namespaces, keys and usage for good',
    auth: 'login',
    serves: 'front',
    success: 204,
    statuses: [401, 403, 404, 409],
    answer: null,
    parameters: idNumber,
  },

  usage: {
    methods: GET,
    path: '/v1/usage',
    tag: 'billing',
    summary: "This period's usage, plan and bill",
    scope: 'read',
    serves: 'tenant',
    statuses: [401],
    query: account.usageQuerySchema,
    answer: account.usageSchema,
  },
  billing: {
    methods: GET,
    path: '/v1/billing',
    tag: 'billing',
    summary: 'Plan, subscription, and what this period costs',
    scope: 'admin',
    authority: 'billing',
    serves: 'tenant',
    statuses: [401, 403],
    answer: account.billingSchema,
  },
  billingCheckout: {
    methods: POST,
    path: '/v1/billing/checkout',
    tag: 'billing',
    summary: 'A page that subscribes the tenant to pro',
    scope: 'admin',
    authority: 'billing',
    serves: 'front',
    statuses: [401, 403, 409, 422, 501, 502],
    answer: account.redirectUrlSchema,
    idempotent: true,
    built: false,
  },
  billingPortal: {
    methods: POST,
    path: '/v1/billing/portal',
    tag: 'billing',
    summary: "The payment provider's page for cards, invoices and cancelling",
    scope: 'admin',
    authority: 'billing',
    serves: 'front',
    statuses: [401, 403, 409, 501, 502],
    answer: account.redirectUrlSchema,
    built: false,
  },

  createNamespace: {
    methods: POST,
    path: '/v1/namespaces',
    tag: 'namespaces',
    summary: 'Create a namespace; a first write does it too',
    scope: 'write',
    serves: 'tenant',
    success: 201,
    statuses: [400, 401, 402, 403, 409, 422, 429, 503],
    request: namespace.namespaceRequestSchema,
    answer: namespace.namespaceSchema,
    rateLimitHeaders: true,
    idempotent: true,
    mcp: 'create_namespace',
  },
  listNamespaces: {
    methods: GET,
    path: '/v1/namespaces',
    tag: 'namespaces',
    summary: 'List namespaces by name',
    scope: 'read',
    serves: 'tenant',
    statuses: [401, 422, 429],
    query: namespace.namespaceListQuerySchema,
    answer: namespace.namespaceListSchema,
    rateLimitHeaders: true,
    mcp: 'list_namespaces',
  },
  getNamespace: {
    methods: GET,
    path: '/v1/namespaces/{name}',
    tag: 'namespaces',
    summary: 'Describe a namespace',
    scope: 'read',
    outsidePatterns: 'not_found',
    serves: 'namespace',
    statuses: [401, 403, 404, 429],
    answer: namespace.namespaceSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
  },
  updateNamespace: {
    methods: PATCH,
    path: '/v1/namespaces/{name}',
    tag: 'namespaces',
    summary: 'Turn embedding on, to another model, or off',
    scope: 'write',
    serves: 'namespace',
    statuses: [400, 401, 403, 404, 409, 422, 429, 502],
    request: namespace.namespacePatchSchema,
    answer: namespace.namespaceSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
    mcp: 'update_namespace',
  },
  deleteNamespace: {
    methods: DELETE,
    path: '/v1/namespaces/{name}',
    tag: 'namespaces',
    summary: 'Delete a namespace and its documents',
    scope: 'write',
    serves: 'tenant',
    success: 204,
    statuses: [401, 403, 404, 429],
    answer: null,
    parameters: inNamespace,
    rateLimitHeaders: true,
    mcp: 'delete_namespace',
  },
  linkNamespace: {
    methods: POST,
    path: '/v1/namespaces/{name}/link',
    tag: 'namespaces',
    summary: "Make a read-only link to another of the tenant's namespaces",
    scope: 'write',
    serves: 'tenant',
    success: 201,
    statuses: [400, 401, 402, 403, 404, 409, 422, 429, 503],
    request: namespace.linkRequestSchema,
    answer: namespace.namespaceSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
    built: false,
  },

  putDocuments: {
    methods: POST,
    path: '/v1/namespaces/{name}/docs',
    tag: 'documents',
    summary: 'Put documents, delete others, together or not at all',
    description:
      'Deletes apply before puts. Makes the namespace where it is missing. Answers once stored in object storage.',
    scope: 'write',
    marker: 'write',
    serves: 'namespace',
    statuses: writeStatuses,
    request: write.putRequestSchema,
    answer: write.writeResultSchema,
    parameters: inNamespace,
    bodyBytesMax: limits.writeBodyBytesMax,
    rateLimitHeaders: true,
    mcp: 'write_documents',
  },
  patchDocuments: {
    methods: PATCH,
    path: '/v1/namespaces/{name}/docs',
    tag: 'documents',
    summary: 'Change documents that exist',
    scope: 'write',
    marker: 'write',
    serves: 'namespace',
    statuses: writeStatuses,
    request: write.patchRequestSchema,
    answer: write.writeResultSchema,
    parameters: inNamespace,
    bodyBytesMax: limits.writeBodyBytesMax,
    rateLimitHeaders: true,
  },
  deleteDocuments: {
    methods: POST,
    path: '/v1/namespaces/{name}/delete',
    tag: 'documents',
    summary: 'Delete documents by id',
    scope: 'write',
    marker: 'write',
    serves: 'namespace',
    statuses: [400, 401, 402, 403, 404, 413, 422, 429, 503],
    request: write.deleteRequestSchema,
    answer: write.writeResultSchema,
    parameters: inNamespace,
    // 10,000 ids of 512 bytes are 5 MB, and each byte may be written as an escape of six.
    bodyBytesMax: limits.writeBodyBytesMax,
    rateLimitHeaders: true,
    mcp: 'delete_documents',
  },
  getDocument: {
    methods: GET,
    path: '/v1/namespaces/{name}/docs/{id}',
    tag: 'documents',
    summary: 'Read one document',
    description: 'The id is the rest of the path and may contain slashes. Counts as one query.',
    scope: 'read',
    marker: 'query',
    serves: 'namespace',
    statuses: [400, 401, 402, 403, 404, 422, 429, 503],
    query: documentQuerySchema,
    answer: storedDocumentSchema,
    parameters: inDocument,
    restParameter: 'id',
    rateLimitHeaders: true,
    mcp: 'get_document',
  },
  importDocuments: {
    methods: POST,
    path: '/v1/namespaces/{name}/import',
    tag: 'documents',
    summary: 'Import the rows of a CSV, NDJSON or Parquet file, all or none',
    scope: 'write',
    marker: 'write',
    serves: 'namespace',
    statuses: [400, 401, 402, 403, 404, 413, 422, 429, 503, 507],
    query: write.importQuerySchema,
    request: 'file',
    answer: write.importResultSchema,
    parameters: inNamespace,
    bodyBytesMax: limits.importBodyBytesMax,
    rateLimitHeaders: true,
  },

  search: {
    methods: ['POST', 'GET'],
    path: '/v1/namespaces/{name}/search',
    tag: 'search',
    summary: 'Find documents by text, regex and filter, newest first',
    scope: 'read',
    marker: 'query',
    serves: 'namespace',
    statuses: readStatuses,
    query: searching.searchQuerySchema,
    request: searching.searchRequestSchema,
    answer: searching.searchAnswerSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
    mcp: 'search',
  },
  count: {
    methods: ['POST', 'GET'],
    path: '/v1/namespaces/{name}/count',
    tag: 'search',
    summary: 'Count the matching documents exactly, with a sample of ids',
    scope: 'read',
    marker: 'query',
    serves: 'namespace',
    statuses: readStatuses,
    query: searching.countQuerySchema,
    request: searching.countRequestSchema,
    answer: searching.countAnswerSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
    mcp: 'count',
  },
  sql: {
    methods: POST,
    path: '/v1/namespaces/{name}/sql',
    tag: 'search',
    summary: "Query documents' metadata with SQL",
    scope: 'read',
    marker: 'query',
    serves: 'namespace',
    statuses: readStatuses,
    request: sqlRequestSchema,
    answer: sqlAnswerSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
    mcp: 'sql_query',
  },
  warm: {
    methods: POST,
    path: '/v1/namespaces/{name}/warm',
    tag: 'search',
    summary: 'Open a namespace and fetch what coming queries need',
    scope: 'read',
    marker: 'query',
    serves: 'namespace',
    statuses: readStatuses,
    request: searching.warmRequestSchema,
    bodyRequired: false,
    answer: searching.warmAnswerSchema,
    parameters: inNamespace,
    rateLimitHeaders: true,
    mcp: 'warm_namespace',
  },

  healthz: {
    methods: GET,
    path: '/healthz',
    tag: 'meta',
    summary: 'Whether the server answers: ok',
    auth: 'none',
    serves: 'front',
    statuses: [],
    answer: 'text',
  },
  openapi: {
    methods: GET,
    path: '/openapi.json',
    tag: 'meta',
    summary: 'This description',
    auth: 'none',
    serves: 'front',
    statuses: [],
    answer: anything,
  },
} as const satisfies Record<string, OperationRow>;

export type OperationName = keyof typeof rows;

/** A row with its name and all its defaults: every operation has the same shape. */
export interface Operation extends Required<OperationRow> {
  readonly name: OperationName;
}

function complete(name: OperationName, row: OperationRow): Operation {
  const hasBody = row.request !== undefined && row.request !== null;
  return {
    name,
    methods: row.methods,
    path: row.path,
    tag: row.tag,
    summary: row.summary,
    description: row.description ?? '',
    auth: row.auth ?? 'key-or-login',
    scope: row.scope ?? null,
    authority: row.authority ?? 'any',
    outsidePatterns: row.outsidePatterns ?? 'forbidden',
    marker: row.marker ?? null,
    serves: row.serves,
    success: row.success ?? 200,
    statuses: row.statuses,
    query: row.query ?? null,
    request: row.request ?? null,
    bodyRequired: row.bodyRequired ?? hasBody,
    inputCode: row.inputCode ?? 'invalid',
    answer: row.answer,
    parameters: row.parameters ?? {},
    restParameter: row.restParameter ?? null,
    bodyBytesMax: row.bodyBytesMax ?? (hasBody ? bodyBytesDefault(row) : 0),
    sameOrigin: row.sameOrigin ?? false,
    rateLimitHeaders: row.rateLimitHeaders ?? false,
    idempotent: row.idempotent ?? false,
    mcp: row.mcp ?? null,
    built: row.built ?? true,
  };
}

function bodyBytesDefault({ auth }: OperationRow): number {
  return auth === 'none' ? limits.openBodyBytesMax : limits.queryBodyBytesMax;
}

export const operationNames = Object.keys(rows) as readonly OperationName[];

export const operations = Object.fromEntries(
  operationNames.map((name) => [name, complete(name, rows[name])]),
) as Readonly<Record<OperationName, Operation>>;

export const operationList: readonly Operation[] = operationNames.map((name) => operations[name]);

/** Whether a request with this method has a body to read. HEAD is a GET. */
export function takesBody(operation: Operation, method: string): boolean {
  return operation.request !== null && method !== 'GET' && method !== 'HEAD';
}

/** The schema of the query string of this method, or null where every parameter is unknown. */
export function querySchemaOf(operation: Operation, method: string): z.ZodObject | null {
  const isOther = operation.methods.length > 1 && method !== 'GET' && method !== 'HEAD';
  return isOther ? null : operation.query;
}
