/** Codes and refresh tokens become tokens here, and tokens end. */
import { refuseOtherResource } from '../../oauth/authorize-request.ts';
import { type Connections, type IssuedTokens, ReplayError } from '../../oauth/connections.ts';
import { OauthError } from '../../oauth/oauth-error.ts';
import type { TokenPlace } from '../../oauth/tokens.ts';
import { checkClient, clientCredentialsOf } from './client-credentials.ts';
import { type FormParameters, needed } from './form-parameters.ts';

export interface TokenComponents {
  readonly connections: Connections;
  /** The address that tokens are for: that of `/mcp`. */
  readonly resource: string;
  /** Tells the audit log of a connection that ended: revoked by its client, or because a code or token was used again. */
  readonly ended: (place: TokenPlace) => void;
}

export interface TokenRequest {
  readonly parameters: FormParameters;
  readonly authorization: string | undefined;
}

/** The answer of `/oauth/token`. Throws OauthError. */
export async function issueTokens(
  components: TokenComponents,
  { parameters, authorization }: TokenRequest,
): Promise<object> {
  const { connections, resource } = components;
  const credentials = clientCredentialsOf(authorization, parameters);
  const grant = needed(parameters, 'grant_type');
  refuseOtherResource(parameters.get('resource'), resource);
  const scope = parameters.get('scope') ?? null;
  const check = (client: Parameters<typeof checkClient>[0]) => checkClient(client, credentials);
  try {
    switch (grant) {
      case 'authorization_code': {
        const redirectUri = parameters.get('redirect_uri') ?? null;
        const verifier = needed(parameters, 'code_verifier');
        return answerOf(
          await connections.exchange(needed(parameters, 'code'), { redirectUri, verifier, scope, check }),
        );
      }
      case 'refresh_token':
        return answerOf(await connections.refresh(needed(parameters, 'refresh_token'), { scope, check }));
      default:
        throw new OauthError(
          'unsupported_grant_type',
          'grant_type can be authorization_code or refresh_token',
        );
    }
  } catch (error) {
    if (error instanceof ReplayError) components.ended(error.place);
    throw error;
  }
}

function answerOf({ access, refresh, scope, expiresInSeconds }: IssuedTokens): object {
  return {
    access_token: access,
    token_type: 'Bearer',
    expires_in: expiresInSeconds,
    refresh_token: refresh,
    scope: scope === 'write' ? 'read write' : 'read',
  };
}

/** `/oauth/revoke` (RFC 7009): a token that is nobody's is as good as revoked. Throws OauthError. */
export async function revokeToken(
  components: TokenComponents,
  { parameters, authorization }: TokenRequest,
): Promise<void> {
  const credentials = clientCredentialsOf(authorization, parameters);
  const token = needed(parameters, 'token');
  const ended = await components.connections.revoke(token, (client) => checkClient(client, credentials));
  if (ended !== null) components.ended(ended);
}
