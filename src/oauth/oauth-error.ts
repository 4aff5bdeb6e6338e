/**
 * A refusal in OAuth's own shape (RFC 6749, 5.2): `{"error": code, "error_description": sentence}`. Descriptions are printable
 * ASCII without quotes and backslashes, as the RFC asks, and say what is wrong and what to do.
 */
export type OauthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_target'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'access_denied'
  | 'invalid_client_metadata'
  | 'invalid_redirect_uri'
  | 'temporarily_unavailable'
  | 'server_error';

export class OauthError extends Error {
  override name = 'OauthError';
  readonly code: OauthErrorCode;

  constructor(code: OauthErrorCode, description: string) {
    super(description.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, '?'));
    this.code = code;
  }
}
