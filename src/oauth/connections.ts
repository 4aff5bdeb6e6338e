import { ApiError } from '../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { KeyRing } from '../accounts/key-ring.ts';
import { must } from '../base/assert.ts';
import { randomHex, randomId48 } from '../base/random.ts';
import { SerialByKey } from '../base/serial-by-key.ts';
import type { RecordStore } from '../identity/stored-record.ts';
import type { OauthClient } from './client-record.ts';
import {
  type AccessToken,
  accessTokenSeconds,
  type Connection,
  type ConnectionScope,
  hasLapsed,
  readConnections,
  updateConnections,
} from './connection-record.ts';
import { OauthError } from './oauth-error.ts';
import { verifierFits } from './pkce.ts';
import { numberOfRefreshToken, planRefresh, refreshToken, repeatedToken } from './refresh-tokens.ts';
import { makeToken, placeOfToken, type TokenPlace, tokenDigest } from './tokens.ts';

export interface ConnectionsComponents extends RecordStore {
  /** What refresh tokens are made with. */
  readonly keys: KeyRing;
  /** Makes every front forget what it knows of these connections; durable where it has to be. */
  readonly forget: (tenantId: TenantId, connectionIds: readonly number[]) => Promise<void>;
  /** Whether the person who let the client connect still is who they were, and in the tenant: else the connection has ended. */
  readonly isAlive: (tenantId: TenantId, connection: Connection) => Promise<boolean>;
}

/** What a person has let a client have. */
export interface Consent {
  readonly tenantId: TenantId;
  readonly person: { readonly id: PersonId; readonly generation: number };
  readonly client: OauthClient;
  readonly scope: ConnectionScope;
  readonly namespaces: readonly string[];
  readonly redirectUri: string;
  readonly challenge: string;
}

/** What the token endpoint answers. */
export interface IssuedTokens {
  readonly access: string;
  readonly refresh: string;
  readonly scope: ConnectionScope;
  readonly expiresInSeconds: number;
}

/** Checks that the client at the token endpoint is the one of the connection; throws OauthError `invalid_client`. */
export type ClientCheck = (client: Connection['client']) => void;

/** A code or token was used that had been used up long before: its connection has ended because of that. */
export class ReplayError extends OauthError {
  override name = 'ReplayError';
  readonly place: TokenPlace;

  constructor(place: TokenPlace, description: string) {
    super('invalid_grant', description);
    this.place = place;
  }
}

/**
 * What happens to connections. Each is one compare-and-set of the tenant's record, so that of any number of servers that use
 * one code, or rotate one token, one has done it and the others see that. On one server a tenant's changes wait for each other,
 * a bounded number of them.
 *
 * Changes that take something away (`end`, `endAll`, a replay, a revocation) are durable first and then told to every front by
 * `forget`: when they are answered, no server lets the tokens in.
 */
export class Connections {
  readonly #components: ConnectionsComponents;
  readonly #turns = new SerialByKey<TenantId>();

  constructor(components: ConnectionsComponents) {
    this.#components = components;
  }

  /** Those that work or may yet, newest first. */
  async list(tenantId: TenantId): Promise<readonly Connection[]> {
    const nowMs = this.#components.clock.now();
    const all = await readConnections(this.#components.objectStore, tenantId);
    return all.filter((each) => !hasLapsed(each, nowMs)).sort((a, b) => b.createdAt - a.createdAt);
  }

  /** What an access token stands for; null where it is unknown, has expired or was revoked. */
  async ofAccessToken(token: string): Promise<{
    readonly place: TokenPlace;
    readonly connection: Connection;
    readonly access: AccessToken;
  } | null> {
    const place = placeOfToken('access', token);
    if (place === null) return null;
    const digest = tokenDigest(token);
    const connection = await this.#find(place);
    const access = connection?.access.find((each) => each.digest === digest);
    const isLive = access !== undefined && this.#components.clock.now() < access.expiresAt;
    return connection === null || !isLive ? null : { place, connection, access };
  }

  /** Makes a connection that waits for its code to be used, and answers the code. Throws 409 `conflict` where there are too many. */
  async allow(consent: Consent): Promise<{ readonly code: string; readonly connectionId: number }> {
    const { random, clock } = this.#components;
    const { tenantId, client } = consent;
    const connectionId = randomId48(random);
    const code = makeToken(random, 'code', { tenantId, connectionId });
    const nowMs = clock.now();
    const connection: Connection = {
      id: connectionId,
      client: { id: client.id, name: client.name, method: client.method, secretDigest: client.secretDigest },
      personId: consent.person.id,
      generation: consent.person.generation,
      scope: consent.scope,
      namespaces: consent.namespaces,
      createdAt: nowMs,
      code: {
        digest: tokenDigest(code),
        redirectUri: consent.redirectUri,
        challenge: consent.challenge,
        expiresAt: nowMs + limits.oauthCodeMs,
      },
      seed: randomHex(random, seedBytes),
      refresh: null,
      access: [],
    };
    await this.#change(tenantId, (connections) => {
      refuseOneMore(connections, connection);
      return [...connections, connection];
    });
    return { code, connectionId };
  }

  /**
   * Uses a code up. Throws OauthError `invalid_grant` for one that is unknown, has expired, is another redirect address's or does
   * not fit the verifier, all of which leave it usable; one that was used before ends what came of it.
   */
  async exchange(
    code: string,
    asked: {
      readonly redirectUri: string | null;
      readonly verifier: string;
      readonly scope: string | null;
      readonly check: ClientCheck;
    },
  ): Promise<IssuedTokens> {
    const place = placeOfToken('code', code);
    if (place === null) throw badCode();
    await this.#refuseDead(place);
    const outcome: { tokens: IssuedTokens | null; replayed: boolean } = { tokens: null, replayed: false };
    await this.#changeOne(place, (connection) => {
      outcome.replayed = false;
      if (connection === undefined || connection.code.digest !== tokenDigest(code)) throw badCode();
      asked.check(connection.client);
      if (connection.refresh !== null) {
        outcome.replayed = true;
        return null;
      }
      if (asked.redirectUri !== null && asked.redirectUri !== connection.code.redirectUri)
        throw new OauthError('invalid_grant', 'redirect_uri is not the one that the code was sent to');
      if (!verifierFits(asked.verifier, connection.code.challenge))
        throw new OauthError(
          'invalid_grant',
          'code_verifier does not fit the code_challenge of the authorization',
        );
      const { next, tokens } = this.#issue(place, connection, asked.scope);
      outcome.tokens = tokens;
      return next;
    });
    if (!outcome.replayed) return must(outcome.tokens, 'the tokens of a code that was used');
    await this.#forget(place);
    throw new ReplayError(place, 'the code was used before: what came of it was ended, connect again');
  }

  /** Gives the next tokens for a refresh token, by the rules of refresh-tokens.ts. Throws OauthError `invalid_grant`. */
  async refresh(
    token: string,
    asked: { readonly scope: string | null; readonly check: ClientCheck },
  ): Promise<IssuedTokens> {
    const place = placeOfToken('refresh', token);
    if (place === null) throw badRefreshToken();
    await this.#refuseDead(place);
    const outcome: { tokens: IssuedTokens | null; revoked: boolean } = { tokens: null, revoked: false };
    await this.#changeOne(place, (connection) => {
      outcome.revoked = false;
      const number = connection && numberOfRefreshToken(this.#components.keys, place, { connection, token });
      if (connection === undefined || connection.refresh === null || number === null || number === undefined)
        throw badRefreshToken();
      asked.check(connection.client);
      const nowMs = this.#components.clock.now();
      const plan = planRefresh(connection.refresh, { number, nowMs, graceMs: limits.refreshGraceMs });
      if (plan.kind === 'revoke') {
        outcome.revoked = true;
        return null;
      }
      const { next, tokens } =
        plan.kind === 'rotate'
          ? this.#issue(place, connection, asked.scope)
          : this.#repeat(place, connection, { scope: asked.scope, number: plan.number });
      outcome.tokens = tokens;
      return next;
    });
    if (!outcome.revoked) return must(outcome.tokens, 'the tokens of a refresh');
    await this.#forget(place);
    const sentence =
      'the refresh token was replaced long ago and used again: the connection was ended, connect again';
    throw new ReplayError(place, sentence);
  }

  /**
   * Revokes a token of either kind: of a refresh token its whole connection, of an access token itself alone. One that is nobody's
   * is as good as revoked. Answers the connection that ended, if any.
   */
  async revoke(token: string, check: ClientCheck): Promise<TokenPlace | null> {
    const place = placeOfToken('refresh', token) ?? placeOfToken('access', token);
    if (place === null) return null;
    const outcome = { ended: false, found: false };
    await this.#changeOne(place, (connection) => {
      Object.assign(outcome, { ended: false, found: false });
      if (connection === undefined) return connection;
      const digest = tokenDigest(token);
      const isAccess = connection.access.some((each) => each.digest === digest);
      const isRefresh =
        !isAccess && numberOfRefreshToken(this.#components.keys, place, { connection, token }) !== null;
      if (!isAccess && !isRefresh) return connection;
      check(connection.client);
      Object.assign(outcome, { ended: isRefresh, found: true });
      return isRefresh
        ? null
        : { ...connection, access: connection.access.filter((each) => each.digest !== digest) };
    });
    if (outcome.found) await this.#forget(place);
    return outcome.ended ? place : null;
  }

  /** Ends a connection: when it resolves no server lets its tokens in. Answers false where there is none. */
  async end(place: TokenPlace): Promise<boolean> {
    let isThere = false;
    await this.#changeOne(place, (connection) => {
      isThere = connection !== undefined;
      return null;
    });
    // Also where it is not there: the server that ended it may have gone before the fronts had heard.
    await this.#forget(place);
    return isThere;
  }

  /** Ends all connections of a tenant, or with a person those that they made. */
  async endAll(tenantId: TenantId, madeBy: PersonId | null): Promise<void> {
    let ended: readonly number[] = [];
    await this.#change(tenantId, (connections) => {
      const kept = connections.filter(({ personId }) => madeBy !== null && personId !== madeBy);
      const keptIds = new Set(kept.map(({ id }) => id));
      ended = connections.flatMap(({ id }) => (keptIds.has(id) ? [] : [id]));
      return ended.length === 0 ? connections : kept;
    });
    // Also where there are none: the server that ended them may have gone before the fronts had heard.
    await this.#components.forget(tenantId, ended);
  }

  async #find({ tenantId, connectionId }: TokenPlace): Promise<Connection | null> {
    const all = await readConnections(this.#components.objectStore, tenantId);
    const found = all.find(({ id }) => id === connectionId);
    return found === undefined || hasLapsed(found, this.#components.clock.now()) ? null : found;
  }

  /** Before anything is written for it; who is not known is refused later, with the right words. */
  async #refuseDead(place: TokenPlace): Promise<void> {
    const connection = await this.#find(place);
    if (connection === null || (await this.#components.isAlive(place.tenantId, connection))) return;
    const sentence =
      'the person who allowed this connection is not in its tenant any more or has a new password: connect again';
    throw new OauthError('invalid_grant', sentence);
  }

  #forget({ tenantId, connectionId }: TokenPlace): Promise<void> {
    return this.#components.forget(tenantId, [connectionId]);
  }

  /** The tokens that follow the present ones, and the connection with them. */
  #issue(place: TokenPlace, connection: Connection, asked: string | null) {
    const { keys, clock } = this.#components;
    const nowMs = clock.now();
    const old = connection.refresh;
    const number = (old?.number ?? 0) + 1;
    const token = refreshToken(keys.present, place, { seed: connection.seed, number });
    const replaced = old === null ? [] : [...old.replaced, { number: old.number, at: nowMs }];
    const refresh = {
      number,
      digest: tokenDigest(token),
      previousDigest: old?.digest ?? null,
      expiresAt: nowMs + limits.refreshTokenMs,
      replaced: replaced
        .filter(({ at }) => nowMs < at + limits.refreshGraceMs)
        .slice(-limits.replacedTokensKeptMax),
    };
    return this.#withAccess({ ...connection, refresh }, place, { asked, token });
  }

  #repeat(
    place: TokenPlace,
    connection: Connection,
    { scope, number }: { readonly scope: string | null; readonly number: number },
  ) {
    const token = repeatedToken(this.#components.keys, place, { connection, number });
    // Only after a rotation of the server's key without its previous one.
    if (token === null) throw badRefreshToken();
    return this.#withAccess(connection, place, { asked: scope, token });
  }

  #withAccess(
    connection: Connection,
    place: TokenPlace,
    { asked, token }: { readonly asked: string | null; readonly token: string },
  ): { readonly next: Connection; readonly tokens: IssuedTokens } {
    const { random, clock } = this.#components;
    const nowMs = clock.now();
    const scope = narrowed(connection.scope, asked);
    const access = makeToken(random, 'access', place);
    const made = { digest: tokenDigest(access), scope, expiresAt: nowMs + limits.accessTokenMs };
    const living = connection.access.filter(({ expiresAt }) => nowMs < expiresAt);
    return {
      next: { ...connection, access: [...living, made].slice(-limits.accessTokensOfConnectionMax) },
      tokens: { access, refresh: token, scope, expiresInSeconds: accessTokenSeconds },
    };
  }

  /** `change` answers null to end the connection, and what it was given to leave all as it is. */
  #changeOne(
    { tenantId, connectionId }: TokenPlace,
    change: (connection: Connection | undefined) => Connection | null | undefined,
  ): Promise<void> {
    return this.#change(tenantId, (connections) => {
      const found = connections.find(({ id }) => id === connectionId);
      const changed = change(found);
      if (found === undefined || changed === found) return connections;
      return connections.flatMap((each) => (each !== found ? [each] : (changed ?? [])));
    });
  }

  async #change(
    tenantId: TenantId,
    change: (connections: readonly Connection[]) => readonly Connection[],
  ): Promise<void> {
    if (this.#turns.waiting(tenantId) >= limits.connectionChangesAtOnceMax) {
      const sentence = 'too many connections of this tenant change at once; nothing was done: try again';
      throw new ApiError('rate_limited', sentence, { retryAfter: 1 });
    }
    await this.#turns.run(tenantId, () => updateConnections(this.#components, tenantId, change));
  }
}

const seedBytes = 16;

/** What a client asks for of what it has; more than that, and what nobody knows, is left out. */
function narrowed(granted: ConnectionScope, asked: string | null): ConnectionScope {
  const words = new Set((asked ?? '').split(' '));
  return words.has('read') && !words.has('write') ? 'read' : granted;
}

function refuseOneMore(connections: readonly Connection[], added: Connection): void {
  const ofPerson = connections.filter(({ personId }) => personId === added.personId).length;
  if (connections.length >= limits.connectionsOfTenantMax || ofPerson >= limits.connectionsOfPersonMax) {
    const sentence =
      `a tenant has at most ${limits.connectionsOfTenantMax} connections, and a person ` +
      `${limits.connectionsOfPersonMax} of them: end some in the console that are not used any more`;
    throw new ApiError('conflict', sentence);
  }
  const patterns = [...connections, added].reduce((sum, { namespaces }) => sum + namespaces.length, 0);
  if (added.namespaces.length > 0 && patterns > limits.connectionPatternsOfTenantMax) {
    const sentence =
      `the connections of a tenant have at most ${limits.connectionPatternsOfTenantMax} names and patterns ` +
      'together: use a prefix, or end some connections';
    throw new ApiError('invalid', `namespaces: ${sentence}`, { fields: { namespaces: sentence } });
  }
}

function badCode(): OauthError {
  return new OauthError('invalid_grant', 'the code is unknown or has expired: connect again');
}

function badRefreshToken(): OauthError {
  return new OauthError(
    'invalid_grant',
    'the refresh token is unknown or has expired, or its connection was ended: connect again',
  );
}
