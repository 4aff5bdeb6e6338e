/**
 * Who calls `/mcp`: an API key (in either header), a login token, or an OAuth access token (`tbo_…`). The principal says all that
 * a connection may do: `scope` (`read` or `write` for OAuth), `namespaces` (empty: all), `tenantStatus`, `auth`, `connectionId`.
 * Refusals are answered as RFC 9728 asks: their 401 says where the description of the authorization server is.
 */
import { ApiError } from '../../protocol/errors.ts';
import type { LookUpGuard } from '../identity/attempts.ts';
import { type Authenticator, anyCredentialOf, type HeaderOf } from './authenticate.ts';
import type { Principal } from './principal.ts';

export interface McpAuthenticator {
  /** The principal where it is known, without waiting; undefined where it must be looked up. Throws as `authenticate` does. */
  peek(header: HeaderOf): Principal | undefined;
  /**
   * Throws 401 `unauthorized` with `WWW-Authenticate` for no credential and for one that is unknown, expired or ended; 400
   * `bad_request` for two different ones; 404 `not_found` for an `X-Tenant` that is not its own; 429 and 503 as for REST.
   * `guard`: `attempts.lookUpsFrom(address)`, so that guessing is counted.
   */
  authenticate(header: HeaderOf, guard?: LookUpGuard): Promise<Principal>;
}

/** What clients may ask for; a person can let them have less. */
export const oauthScopes = ['read', 'write'] as const;
export type OauthScope = (typeof oauthScopes)[number];

/** Makes what finds out who calls `/mcp`. `baseUrl`: the public address, without a slash at its end. */
export function mcpAuthenticator(
  authenticator: Pick<Authenticator, 'peek' | 'authenticate'>,
  baseUrl: string,
): McpAuthenticator {
  return {
    peek: (header) => challenging(baseUrl, header, () => authenticator.peek(anyCredentialOf(header))),
    authenticate: async (header, guard) => {
      try {
        return await authenticator.authenticate(anyCredentialOf(header), guard);
      } catch (error) {
        throw withChallenge(baseUrl, header, error);
      }
    },
  };
}

/** 403 with the scopes that a write needs: for a token that may only read, where the client could ask for more. */
export function insufficientScope(baseUrl: string): ApiError {
  const sentence = 'this connection is read-only: connect again and allow reading and writing';
  const challenge = challengeOf(baseUrl, 'insufficient_scope');
  return new ApiError('forbidden', sentence, { headers: [['WWW-Authenticate', challenge]] });
}

function challenging<T>(baseUrl: string, header: HeaderOf, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw withChallenge(baseUrl, header, error);
  }
}

/** Who has sent nothing is told of no error (RFC 6750, 3.1); who has sent something that is no good, that it is not. */
function withChallenge(baseUrl: string, header: HeaderOf, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'unauthorized') return error;
  const sentNothing = header('authorization') === undefined && header('x-api-key') === undefined;
  const challenge = challengeOf(baseUrl, sentNothing ? null : 'invalid_token');
  return new ApiError('unauthorized', error.message, { headers: [['WWW-Authenticate', challenge]] });
}

function challengeOf(baseUrl: string, error: 'invalid_token' | 'insufficient_scope' | null): string {
  const metadata = `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp"`;
  const scope = `scope="${oauthScopes.join(' ')}"`;
  return `Bearer ${error === null ? '' : `error="${error}", `}${metadata}, ${scope}`;
}
