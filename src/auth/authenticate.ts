/** Headers → principal. Whether the principal may do what it asks is authorize.ts. */
import type { Scope } from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { apiKeyDigest, apiKeyLooksRight, isApiKeyKind } from '../accounts/api-keys.ts';
import { type KeyClaim, readKeyClaim } from '../accounts/key-claim.ts';
import { type PlanName, type Plans, shareWeight } from '../accounts/plans.ts';
import type { KeyCaps } from '../accounts/scopes.ts';
import { DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';
import type { LookUpGuard } from '../identity/attempts.ts';
import { type LoginTokens, loginTokenCharactersMax, verifyLoginToken } from '../identity/login-token.ts';
import { readPerson } from '../identity/person-record.ts';
import { personBehind } from '../oauth/connection-person.ts';
import type { Connections } from '../oauth/connections.ts';
import { isAccessTokenKind, placeOfToken } from '../oauth/tokens.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { type Cached, KeyCache, type LoadedPrincipal } from './key-cache.ts';
import { noCaps, type Principal, principalLimits, type TenantStatus } from './principal.ts';

/** What a request brings to say who it is. */
export interface Credential {
  readonly kind: 'key' | 'login' | 'oauth';
  readonly secret: string;
  /** The header `X-Tenant` as it was sent; undefined without one. */
  readonly tenant: string | undefined;
}

export interface KnownKey {
  readonly keyId: KeyId;
  readonly scope: Scope;
  readonly namespaces: readonly string[];
  readonly caps: KeyCaps;
  readonly createdBy: PersonId | null;
}

export interface KnownTenant {
  readonly tenantId: TenantId;
  readonly status: TenantStatus;
  readonly planName: PlanName;
  readonly ownerVerified: boolean;
  readonly ownerId: number;
}

/** The tenants' own records, wherever their actors live. */
export interface TenantDirectory {
  /** What is known of a key; null where it was revoked or never was. */
  key(tenantId: TenantId, keyId: KeyId): Promise<KnownKey | null>;
  /** What is known of a tenant; null where there is none. */
  tenant(tenantId: TenantId): Promise<KnownTenant | null>;
}

export interface AuthenticatorComponents {
  readonly objectStore: ObjectStore;
  readonly tenants: TenantDirectory;
  readonly loginTokens: LoginTokens;
  readonly connections: Pick<Connections, 'ofAccessToken'>;
  readonly plans: Plans;
  readonly clock: Clock;
}

/** The value of a request's header by its lower-case name. */
export type HeaderOf = (name: string) => string | undefined;

/**
 * Reads the credential of a request to the REST interface. Throws 401 `unauthorized` where there is none or where it is an OAuth
 * access token, and 400 `bad_request` where there are two different ones.
 */
export function credentialOf(header: HeaderOf): Credential {
  const credential = anyCredentialOf(header);
  if (credential.kind !== 'oauth') return credential;
  throw unauthorized('an OAuth access token works at /mcp only: send an API key or a login token here');
}

/**
 * Reads the credential of a request, an OAuth access token too: for `/mcp`. Throws 401 `unauthorized` where there is none, and
 * 400 `bad_request` where there are two different ones: guessing which one was meant could act for the wrong tenant.
 */
export function anyCredentialOf(header: HeaderOf): Credential {
  const authorization = header('authorization');
  const apiKey = header('x-api-key');
  // A proxy's own credentials, or a browser's: of another scheme they are not for us where ours came beside them.
  const isOthers = authorization !== undefined && apiKey !== undefined && !/^ *bearer\b/i.test(authorization);
  const bearer = authorization === undefined || isOthers ? undefined : bearerOf(authorization);
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) {
    const sentence = 'Authorization and X-API-Key carry different credentials: send one of them';
    throw new ApiError('bad_request', sentence);
  }
  const secret = bearer ?? apiKey;
  if (secret === undefined || secret === '') {
    throw unauthorized(
      'there is no credential: send an API key as "Authorization: Bearer <key>" or as "X-API-Key: <key>"',
    );
  }
  const kind = kindOf(secret);
  if (kind !== 'key' && bearer === undefined) throw unauthorized('X-API-Key must carry an API key ("tb_…")');
  return { kind, secret, tenant: header('x-tenant') };
}

function kindOf(secret: string): Credential['kind'] {
  if (isApiKeyKind(secret)) return 'key';
  return isAccessTokenKind(secret) ? 'oauth' : 'login';
}

function bearerOf(authorization: string): string {
  const match = /^bearer +([^\s,]+) *$/i.exec(authorization);
  if (match?.[1] === undefined)
    throw unauthorized('the Authorization header must read "Bearer <key or token>"');
  return match[1];
}

export function unauthorized(sentence: string): ApiError {
  return new ApiError('unauthorized', sentence, { headers: [['WWW-Authenticate', 'Bearer']] });
}

/** How many claims of keys in use are remembered; an entry is about 200 bytes. */
const claimsMax = 50_000;

/** Finds the principal of a credential. There is one for each front thread. */
export class Authenticator {
  readonly #components: AuthenticatorComponents;
  readonly #cache: KeyCache;
  /** Key digest → where its key is kept, which never changes: so a revocation sends nobody else to the object store. */
  readonly #claims = new LruMap<string, KeyClaim>(claimsMax);

  /** `isAlone`: there are no other servers, so that what is cached here is true until this process forgets it. */
  constructor(components: AuthenticatorComponents, { isAlone }: { readonly isAlone: boolean }) {
    const { clock } = components;
    const { credentialKeptMs: keptMs, credentialRenewMs: renewAfterMs } = limits;
    const kept = isAlone ? { keptMs: null } : { keptMs, renewAfterMs };
    this.#components = components;
    this.#cache = new KeyCache({ clock, ...kept, load: (text) => this.#load(text) });
  }

  /** The principal where it is known, without waiting; throws 404 as `authenticate` does. */
  peek(credential: Credential): Principal | undefined {
    const principal = this.#cache.peek(cacheText(credential));
    return principal === undefined ? undefined : forTenant(principal, credential);
  }

  /**
   * Throws 401 `unauthorized` for a credential that is nobody's, was revoked or has expired, 404 `not_found` for an
   * `X-Tenant` that is not the credential's, and what key-cache.ts and the components throw. `guard`: see key-cache.ts.
   */
  async authenticate(credential: Credential, guard?: LookUpGuard): Promise<Principal> {
    // Garbage costs a checksum; it is neither looked up nor remembered.
    if (!looksRight(credential)) throw badCredential(credential);
    const principal = await this.#cache.get(cacheText(credential), guard);
    if (principal === null) throw badCredential(credential);
    return forTenant(principal, credential);
  }

  /** Forgets what is cached of a tenant or a person: it is void when this returns. */
  forget({ of, id }: Cached): void {
    if (of === 'tenant') this.#cache.invalidateTenant(id);
    else this.#cache.invalidatePerson(id);
  }

  async #load(text: string): Promise<LoadedPrincipal | null> {
    if (isApiKeyKind(text)) return this.#loadKey(text);
    return isAccessTokenKind(text) ? this.#loadConnection(text) : this.#loadLogin(text);
  }

  async #loadKey(key: string): Promise<LoadedPrincipal | null> {
    const { tenants, plans } = this.#components;
    const claim = await this.#claimOf(apiKeyDigest(key));
    if (claim === null) return null;
    const [record, tenant] = await Promise.all([
      tenants.key(claim.tenantId, claim.keyId),
      tenants.tenant(claim.tenantId),
    ]);
    if (tenant === null) throw missingTenant(claim.tenantId);
    if (record === null || tenant.status === 'deleting') return null;
    const principal: Principal = {
      auth: 'key',
      ...tenantPart(tenant),
      homeTenantId: tenant.tenantId,
      personId: record.createdBy,
      role: null,
      keyId: record.keyId,
      connectionId: null,
      scope: record.scope,
      namespaces: record.namespaces,
      caps: record.caps,
      limits: principalLimits(plans[tenant.planName], record.caps.ratePerS),
    };
    return { principal, expiresAt: null };
  }

  async #claimOf(digest: string): Promise<KeyClaim | null> {
    const known = this.#claims.get(digest);
    if (known !== undefined) return known;
    const claim = await readKeyClaim(this.#components.objectStore, digest);
    if (claim !== null) this.#claims.set(digest, claim);
    return claim;
  }

  /** A connection may do what it was let, as long as the person who let it could do as much themselves. */
  async #loadConnection(token: string): Promise<LoadedPrincipal | null> {
    const { objectStore, tenants, connections, plans } = this.#components;
    const found = await connections.ofAccessToken(token);
    if (found === null) return null;
    const { place, connection, access } = found;
    const [person, tenant] = await Promise.all([
      personBehind(objectStore, place.tenantId, connection),
      tenants.tenant(place.tenantId),
    ]);
    if (tenant === null) throw missingTenant(place.tenantId);
    if (person === null || tenant.status === 'deleting') return null;
    const principal: Principal = {
      auth: 'oauth',
      ...tenantPart(tenant),
      homeTenantId: tenant.tenantId,
      personId: person.id,
      role: null,
      keyId: null,
      connectionId: place.connectionId,
      scope: access.scope,
      namespaces: connection.namespaces,
      caps: noCaps,
      limits: principalLimits(plans[tenant.planName], null),
    };
    return { principal, expiresAt: access.expiresAt };
  }

  /** Finds out whose a login token is; null for nobody's. `text` is that of `cacheText`: the token, and the tenant asked for. */
  async #loadLogin(text: string): Promise<LoadedPrincipal | null> {
    const { objectStore, tenants, loginTokens, plans } = this.#components;
    const [token = '', asked] = text.split(' ');
    const claims = await verifyLoginToken(loginTokens, token);
    if (claims === null) return null;
    const person = await readPerson(objectStore, claims.personId);
    if (person === null || person.generation !== claims.generation) return null;
    const wanted = asked ?? String(claims.tenantId ?? person.defaultTenantId);
    const membership = person.tenants.find(({ tenantId }) => String(tenantId) === wanted);
    const tenant = membership === undefined ? null : await tenants.tenant(membership.tenantId);
    if (membership === undefined) throw noSuchTenant();
    if (tenant === null) throw missingTenant(membership.tenantId);
    if (tenant.status === 'deleting') throw noSuchTenant();
    const principal: Principal = {
      auth: 'login',
      ...tenantPart(tenant),
      homeTenantId: person.defaultTenantId,
      personId: person.id,
      role: membership.role,
      keyId: null,
      connectionId: null,
      scope: membership.role === 'owner' ? 'admin' : 'write',
      namespaces: [],
      caps: noCaps,
      limits: principalLimits(plans[tenant.planName], null),
    };
    return { principal, expiresAt: claims.expiresAt };
  }
}

/** Claims, and tokens, are made after the tenant that they lead to was durable. */
function missingTenant(tenantId: number): DataError {
  return new DataError(
    paths.tenantManifest(tenantId),
    0,
    'a credential leads to this tenant and it is missing',
  );
}

function tenantPart({ tenantId, status, planName, ownerVerified, ownerId }: KnownTenant) {
  const share = { owner: ownerId, tenant: tenantId, weight: shareWeight(planName, ownerVerified) };
  return { tenantId, tenantStatus: status, planName, ownerVerified, share };
}

function looksRight({ kind, secret }: Credential): boolean {
  if (kind === 'key') return apiKeyLooksRight(secret);
  if (kind === 'oauth') return placeOfToken('access', secret) !== null;
  return secret.length <= loginTokenCharactersMax;
}

/** One character more than the longest id: what is cut can be nobody's tenant, and short texts bound the cache. */
const tenantCharactersMax = 16;

/** A login is another principal for each tenant that it asks for. Tokens contain no space. */
function cacheText({ kind, secret, tenant }: Credential): string {
  if (kind !== 'login' || tenant === undefined) return secret;
  return `${secret} ${tenant.slice(0, tenantCharactersMax).replaceAll(' ', '-')}`;
}

/** A key or a connection belongs to one tenant: asking for another is answered like asking for one that does not exist. */
function forTenant(principal: Principal, { kind, tenant }: Credential): Principal {
  const foreign = kind !== 'login' && tenant !== undefined && tenant !== String(principal.tenantId);
  if (foreign) throw noSuchTenant();
  return principal;
}

export function noSuchTenant(): ApiError {
  return new ApiError('not_found', 'there is no such tenant');
}

const badCredentialSentences: Readonly<Record<Credential['kind'], string>> = {
  key: 'the API key is unknown or was revoked',
  login: 'the login token is not valid or has expired: log in again',
  oauth: 'the access token is unknown, has expired or its connection was ended: refresh it or connect again',
};

function badCredential({ kind }: Credential): ApiError {
  return unauthorized(badCredentialSentences[kind]);
}
