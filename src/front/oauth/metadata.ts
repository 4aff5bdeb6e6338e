import { oauthScopes } from '../../auth/mcp-authenticate.ts';
import { clientAuthMethods } from '../../oauth/client-record.ts';

/** What clients read before they ask: where the authorization server is, and what it can. Pure. */
export const oauthPaths = {
  resourceMetadata: '/.well-known/oauth-protected-resource',
  mcpResourceMetadata: '/.well-known/oauth-protected-resource/mcp',
  serverMetadata: '/.well-known/oauth-authorization-server',
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  revoke: '/oauth/revoke',
  register: '/oauth/register',
} as const;

/** What connections are for. */
export function resourceOf(baseUrl: string): string {
  return `${baseUrl}/mcp`;
}

/** RFC 9728. */
export function resourceMetadata(baseUrl: string): object {
  return {
    resource: resourceOf(baseUrl),
    authorization_servers: [baseUrl],
    scopes_supported: oauthScopes,
    bearer_methods_supported: ['header'],
    resource_name: 'Tidebase',
  };
}

/** RFC 8414. */
export function serverMetadata(baseUrl: string): object {
  return {
    issuer: baseUrl,
    authorization_endpoint: baseUrl + oauthPaths.authorize,
    token_endpoint: baseUrl + oauthPaths.token,
    revocation_endpoint: baseUrl + oauthPaths.revoke,
    registration_endpoint: baseUrl + oauthPaths.register,
    scopes_supported: oauthScopes,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: clientAuthMethods,
    revocation_endpoint_auth_methods_supported: clientAuthMethods,
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  };
}
