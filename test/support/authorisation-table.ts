/**
 * Who may do what, written down from the service's description and from nothing of the product: what each operation needs, what
 * each credential has, and so what every cell of operation × credential × target answers.
 */
import type { OperationName } from '../../protocol/operations.ts';

export const credentials = [
  'none',
  'garbage',
  'revoked key',
  'read key',
  'write key',
  'admin key',
  'admin key limited to namespaces',
  'admin key with a cap',
  "owner's login",
  "member's login",
  'login with a foreign X-Tenant',
  'login with an X-Tenant that is nobody’s',
  "suspended tenant's key",
  "suspended tenant's login",
  'OAuth, read-only',
  'OAuth, read-and-write',
  'OAuth, limited to namespaces',
  'OAuth, expired',
  'OAuth, revoked',
] as const;
export type Credential = (typeof credentials)[number];
/** Access tokens of connections, which work at /mcp only. */
export type OauthCredential = Extract<Credential, `OAuth, ${string}`>;

/** What an operation asks of its caller; `nothing`: it takes no credentials and looks at none. */
export type Need =
  | 'nothing'
  | 'a credential'
  | 'read'
  | 'write'
  | 'an unlimited admin'
  | 'an admin'
  | 'a person';

/**
 * Targets by what an operation is done to. `outside`: the caller's tenant has it, and the limited key's patterns do not cover
 * it. `foreign`: another tenant has it.
 */
export const targetsOf = {
  nothing: ['-'],
  namespace: ['own', 'outside', 'outside and missing', 'foreign', 'missing'],
  document: ['own', 'document missing', 'outside', 'outside and missing', 'foreign', 'missing'],
  'new namespace': ['new', 'outside', 'own'],
  key: ['own', 'foreign', 'missing'],
  tenant: ['own', 'default', 'foreign', 'missing'],
  provider: ['own', 'foreign', 'missing', 'unknown'],
} as const;
export type TargetKind = keyof typeof targetsOf;
export type Target = (typeof targetsOf)[TargetKind][number];

/** A status with its code, or a success. Several where more than one is right, such as a second mail within a minute. */
export type Outcome = string;

export interface Row {
  readonly needs: Need;
  readonly on: TargetKind;
  /** For who may, where the target is there. */
  readonly allowed: readonly Outcome[];
  /** For who may, where it is not the usual: 404 for what is missing or another's. */
  readonly at?: Readonly<Partial<Record<Target, readonly Outcome[]>>>;
  /** For a key whose patterns do not cover the namespace, whether it exists or not, where it is not the usual: 403. */
  readonly outside?: readonly Outcome[];
  /** The people of a suspended tenant may do it, by their login. */
  readonly whenSuspended?: boolean;
  /** It takes no credentials, and X-Tenant all the same. */
  readonly heedsTenant?: boolean;
}

const ok = ['200'] as const;
const created = ['201'] as const;
const accepted = ['202'] as const;
const done = ['204'] as const;
const missing = ['404 not_found'] as const;
const conflict = ['409 conflict'] as const;
const wrong = ['422 invalid'] as const;
const badRequest = ['400 bad_request'] as const;
/** No payment provider is set up for this server. */
const notSetUp = ['501 not_implemented'] as const;

/** A write to a name that is not there makes it; another tenant's name is one that is not there. */
const makesIt = { foreign: ok, missing: ok, 'outside and missing': ok } as const;

export const rows: Readonly<Record<OperationName, Row>> = {
  signup: { needs: 'nothing', on: 'nothing', allowed: created },
  login: { needs: 'nothing', on: 'nothing', allowed: ok, heedsTenant: true },
  // With a token that is none: whoever brings a right one needs nothing else.
  verifyEmail: { needs: 'nothing', on: 'nothing', allowed: badRequest },
  forgotPassword: { needs: 'nothing', on: 'nothing', allowed: accepted },
  resetPassword: { needs: 'nothing', on: 'nothing', allowed: badRequest },
  healthz: { needs: 'nothing', on: 'nothing', allowed: ok },
  openapi: { needs: 'nothing', on: 'nothing', allowed: ok },

  resendVerification: { needs: 'a credential', on: 'nothing', allowed: ['202', '429 rate_limited'] },
  me: { needs: 'a credential', on: 'nothing', allowed: ok, whenSuspended: true },

  listKeys: { needs: 'an unlimited admin', on: 'nothing', allowed: ok },
  createKey: { needs: 'an unlimited admin', on: 'nothing', allowed: created },
  revokeKey: { needs: 'an unlimited admin', on: 'key', allowed: done },
  replaceKeyLimits: { needs: 'an unlimited admin', on: 'key', allowed: done },
  listConnections: { needs: 'an unlimited admin', on: 'nothing', allowed: ok },
  // With ids of keys, which are no connections: a connection's own end is tested with its beginning.
  endConnection: {
    needs: 'an unlimited admin',
    on: 'key',
    allowed: missing,
  },
  listEmbeddingKeys: { needs: 'an unlimited admin', on: 'nothing', allowed: ok },
  putEmbeddingKey: {
    needs: 'an unlimited admin',
    on: 'provider',
    allowed: ok,
    at: { foreign: ok, missing: ok },
  },
  deleteEmbeddingKey: { needs: 'an unlimited admin', on: 'provider', allowed: done },

  listTenants: { needs: 'a credential', on: 'nothing', allowed: ok },
  createTenant: { needs: 'a person', on: 'nothing', allowed: created },
  deleteTenant: { needs: 'a person', on: 'tenant', allowed: done, at: { default: conflict } },

  usage: { needs: 'read', on: 'nothing', allowed: ok },
  billing: { needs: 'an admin', on: 'nothing', allowed: ok, whenSuspended: true },
  billingCheckout: { needs: 'an admin', on: 'nothing', allowed: notSetUp, whenSuspended: true },
  billingPortal: { needs: 'an admin', on: 'nothing', allowed: notSetUp, whenSuspended: true },
  billingWebhook: { needs: 'nothing', on: 'nothing', allowed: notSetUp },

  createNamespace: { needs: 'write', on: 'new namespace', allowed: created, at: { own: conflict } },
  listNamespaces: { needs: 'read', on: 'nothing', allowed: ok },
  getNamespace: { needs: 'read', on: 'namespace', allowed: ok, outside: missing },
  updateNamespace: { needs: 'write', on: 'namespace', allowed: ok },
  deleteNamespace: { needs: 'write', on: 'namespace', allowed: done },
  linkNamespace: {
    needs: 'write',
    on: 'namespace',
    allowed: conflict,
    // To itself.
    at: { own: wrong, foreign: created, missing: created, 'outside and missing': created },
  },
  branchNamespace: {
    needs: 'write',
    on: 'namespace',
    allowed: conflict,
    at: { own: wrong, foreign: created, missing: created, 'outside and missing': created },
  },

  putDocuments: { needs: 'write', on: 'namespace', allowed: ok, at: makesIt },
  patchDocuments: { needs: 'write', on: 'namespace', allowed: ok },
  deleteDocuments: { needs: 'write', on: 'namespace', allowed: ok },
  getDocument: { needs: 'read', on: 'document', allowed: ok },
  importDocuments: { needs: 'write', on: 'namespace', allowed: ok, at: makesIt },

  search: { needs: 'read', on: 'namespace', allowed: ok },
  count: { needs: 'read', on: 'namespace', allowed: ok },
  sql: { needs: 'read', on: 'namespace', allowed: ok },
  warm: { needs: 'read', on: 'namespace', allowed: ok },
};

const anyKey = ['a credential', 'read'] as const;
const has: Readonly<Partial<Record<Credential, readonly Need[]>>> = {
  'read key': anyKey,
  'write key': [...anyKey, 'write'],
  'admin key': [...anyKey, 'write', 'an admin', 'an unlimited admin'],
  'admin key limited to namespaces': [...anyKey, 'write', 'an admin'],
  'admin key with a cap': [...anyKey, 'write', 'an admin'],
  "owner's login": [...anyKey, 'write', 'an admin', 'an unlimited admin', 'a person'],
  "member's login": [...anyKey, 'write', 'a person'],
  'OAuth, read-only': anyKey,
  'OAuth, read-and-write': [...anyKey, 'write'],
  'OAuth, limited to namespaces': [...anyKey, 'write'],
};

const limited: ReadonlySet<Credential> = new Set([
  'admin key limited to namespaces',
  'OAuth, limited to namespaces',
]);

const refusals: Readonly<Partial<Record<Credential, Outcome>>> = {
  none: '401 unauthorized',
  garbage: '401 unauthorized',
  'revoked key': '401 unauthorized',
  'login with a foreign X-Tenant': '404 not_found',
  'login with an X-Tenant that is nobody’s': '404 not_found',
  "suspended tenant's key": '403 forbidden',
  "suspended tenant's login": '403 forbidden',
  'OAuth, expired': '401 unauthorized',
  'OAuth, revoked': '401 unauthorized',
};

const forbidden = ['403 forbidden'] as const;
const notThere: readonly Target[] = [
  'foreign',
  'missing',
  'outside and missing',
  'document missing',
  'unknown',
];

export interface Cell {
  readonly row: Row;
  readonly isBuilt: boolean;
  readonly credential: Credential;
  readonly target: Target;
  /** The same operation as a tool of /mcp: the one place where access tokens work. */
  readonly isTool?: boolean;
}

/** What the cell answers: one of these. In the order of the questions that a request is asked. */
export function expectedOf({ row, isBuilt, credential, target, isTool = false }: Cell): readonly Outcome[] {
  const isOutside = target === 'outside' || target === 'outside and missing';
  if (row.needs !== 'nothing') {
    if (credential === "suspended tenant's login" && row.whenSuspended === true) return row.allowed;
    const refusal = refusals[credential];
    if (refusal !== undefined) return [refusal];
    if (credential.startsWith('OAuth') && !isTool) return ['401 unauthorized'];
    if (has[credential]?.includes(row.needs) !== true) return forbidden;
    if (limited.has(credential) && isOutside) return row.outside ?? forbidden;
  }
  const namesAnothers = refusals[credential]?.startsWith('404') === true;
  if (row.heedsTenant === true && namesAnothers) return missing;
  if (!isBuilt) return notSetUp;
  // The member is in the owner's first tenant only, and a member deletes none.
  if (row.on === 'tenant' && credential === "member's login")
    return target === 'default' ? forbidden : missing;
  const special = row.at?.[target];
  if (special !== undefined) return special;
  return notThere.includes(target) ? missing : row.allowed;
}

export function isSuccess(outcomes: readonly Outcome[]): boolean {
  return outcomes.some((outcome) => outcome.startsWith('2'));
}
