import { timingSafeEqual } from 'node:crypto';
import { sha256Hex } from '../../base/hash.ts';
import type { Connection } from '../../oauth/connection-record.ts';
import { OauthError } from '../../oauth/oauth-error.ts';
import type { FormParameters } from './form-parameters.ts';

/** What a client brings to the token endpoint to show who it is. */
export interface ClientCredentials {
  readonly id: string;
  readonly secret: string | null;
}

/** From the Authorization header or from the form. Throws OauthError `invalid_request` for both, and for none. */
export function clientCredentialsOf(
  authorization: string | undefined,
  parameters: FormParameters,
): ClientCredentials {
  const secret = parameters.get('client_secret') ?? null;
  const id = parameters.get('client_id');
  if (authorization === undefined) {
    if (id === undefined) throw new OauthError('invalid_request', 'client_id is missing');
    return { id, secret };
  }
  const basic = basicOf(authorization);
  if (secret !== null || (id !== undefined && id !== basic.id))
    throw new OauthError(
      'invalid_request',
      'send the credentials of the client in the header or in the form, not in both',
    );
  return basic;
}

function basicOf(authorization: string): ClientCredentials & { readonly secret: string } {
  const [, encoded] = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization) ?? [];
  const text = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon === -1)
    throw new OauthError('invalid_client', 'the Authorization header must be Basic with id and secret');
  // RFC 6749, 2.3.1: each is form-encoded first.
  const decoded = (part: string) => new URLSearchParams(`v=${part}`).get('v') ?? '';
  return { id: decoded(text.slice(0, colon)), secret: decoded(text.slice(colon + 1)) };
}

/** Throws OauthError where a connection is another client's, or where its client has not shown its secret. */
export function checkClient(client: Connection['client'], { id, secret }: ClientCredentials): void {
  if (id !== client.id) throw new OauthError('invalid_grant', 'it was given to another client');
  if (client.secretDigest === null) return;
  const isIts =
    secret !== null && timingSafeEqual(Buffer.from(sha256Hex(secret)), Buffer.from(client.secretDigest));
  if (!isIts) throw new OauthError('invalid_client', 'client_secret is missing or wrong');
}
