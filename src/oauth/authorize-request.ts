import { limits } from '../../protocol/limits.ts';
import type { OauthClient } from './client-record.ts';
import type { ConnectionScope } from './connection-record.ts';
import { OauthError } from './oauth-error.ts';
import { isChallenge } from './pkce.ts';
import { redirectUriMatches } from './redirect-uri.ts';

/** A client's request for a connection, as it comes with the person's browser. Pure. */
export interface AuthorizeRequest {
  readonly client: OauthClient;
  readonly redirectUri: string;
  readonly state: string | null;
  readonly challenge: string;
  /** The most that the client asks for; a person can let it have less. */
  readonly scope: ConnectionScope;
}

type Parameters = ReadonlyMap<string, string>;

/**
 * Where a refusal of the request may be sent. Throws OauthError where the address is not one of the client's: then the person is
 * told, and sent nowhere.
 */
export function redirectUriOf(parameters: Parameters, client: OauthClient): string {
  const asked = parameters.get('redirect_uri');
  if (asked === undefined) {
    const [only] = client.redirectUris;
    if (client.redirectUris.length === 1 && only !== undefined) return only;
    throw new OauthError('invalid_request', 'redirect_uri is missing, and the client has several addresses');
  }
  if (redirectUriMatches(client.redirectUris, asked)) return asked;
  throw new OauthError('invalid_request', 'redirect_uri is not one of the addresses of this client');
}

/** `state` as it came; one that is too long is nobody's and is left out. */
export function stateOf(parameters: Parameters): string | null {
  const state = parameters.get('state');
  return state === undefined || state.length > limits.oauthStateCharactersMax ? null : state;
}

/** Throws OauthError, which goes to the client. `resource`: what connections are for, `{base_url}/mcp`. */
export function authorizeRequestOf(
  parameters: Parameters,
  { client, resource }: { readonly client: OauthClient; readonly resource: string },
): AuthorizeRequest {
  const redirectUri = redirectUriOf(parameters, client);
  if ((parameters.get('state')?.length ?? 0) > limits.oauthStateCharactersMax)
    throw new OauthError('invalid_request', `state can have ${limits.oauthStateCharactersMax} characters`);
  if (parameters.get('response_type') !== 'code')
    throw new OauthError('unsupported_response_type', 'response_type must be code');
  const mode = parameters.get('response_mode') ?? 'query';
  if (mode !== 'query') throw new OauthError('invalid_request', 'response_mode can be query only');
  const challenge = challengeOf(parameters);
  refuseOtherResource(parameters.get('resource'), resource);
  return {
    client,
    redirectUri,
    state: stateOf(parameters),
    challenge,
    scope: scopeOf(parameters.get('scope')),
  };
}

function challengeOf(parameters: Parameters): string {
  const challenge = parameters.get('code_challenge');
  if (challenge === undefined)
    throw new OauthError('invalid_request', 'code_challenge is missing: PKCE is required');
  if (parameters.get('code_challenge_method') !== 'S256')
    throw new OauthError('invalid_request', 'code_challenge_method must be S256');
  if (!isChallenge(challenge))
    throw new OauthError('invalid_request', 'code_challenge must be 43 characters of base64url');
  return challenge;
}

/** Absent means ours. Throws OauthError `invalid_target`. */
export function refuseOtherResource(asked: string | undefined, resource: string): void {
  if (asked === undefined || asked === resource) return;
  // The same address in another spelling: upper case in the host, a default port.
  if (URL.canParse(asked) && !asked.includes('#') && new URL(asked).href === new URL(resource).href) return;
  throw new OauthError('invalid_target', `resource can be ${resource} only`);
}

/** Unknown words are ignored; who names neither of ours asks for all that a person will give. */
function scopeOf(scope: string | undefined): ConnectionScope {
  const words = new Set((scope ?? '').split(' '));
  return words.has('read') && !words.has('write') ? 'read' : 'write';
}
