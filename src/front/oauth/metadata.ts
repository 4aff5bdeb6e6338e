import { oauthScopes } from '../../auth/mcp-authenticate.ts';
import { clientAuthMethods } from '../../oauth/client-record.ts';

/** What clients read before they ask: where the authorization server is, and what it can. Pure. */
export const oauthPaths = {
  resourceMetadata: '/.well-known/oauth-protected-resource',
  serverMetadata: '/.well-known/oauth-authorization-server',
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  revoke: '/oauth/revoke',
  register: '/oauth/register',
} as const;

/** The path that the public address has before ours, without a slash at its end: empty for most. */
export function pathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** Where a browser finds one of them: whatever stands before this server takes its own path off again. */
export function placeOf(baseUrl: string, name: keyof typeof oauthPaths): string {
  return pathOf(baseUrl) + oauthPaths[name];
}

/**
 * Where metadata are: below the public address, and where RFC 8414 and RFC 9728 have them, which insert an address's path behind the
 * well-known part. A proxy that serves this server below a path has to pass `/.well-known/` on as it is.
 */
export function metadataPlaces(baseUrl: string): {
  readonly resource: ReadonlySet<string>;
  readonly server: ReadonlySet<string>;
} {
  const { resourceMetadata: resource, serverMetadata: server } = oauthPaths;
  const path = pathOf(baseUrl);
  return {
    resource: new Set([resource, `${resource}/mcp`, resource + path, `${resource}${path}/mcp`]),
    server: new Set([server, server + path]),
  };
}

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

/** Makes the metadata of the authorization server, as RFC 8414 wants them. */
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
