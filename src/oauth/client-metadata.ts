/**
 * What clients say of themselves, checked: in a registration (RFC 7591), or in a document at the address that is their id. Pure.
 * Members that we know nothing of are ignored, as the RFC asks.
 */
import { limits } from '../../protocol/limits.ts';
import { sha256Hex } from '../base/hash.ts';
import { type Random, randomHex } from '../base/random.ts';
import { type ClientAuthMethod, clientAuthMethods, type OauthClient } from './client-record.ts';
import { OauthError } from './oauth-error.ts';
import { redirectUriProblem } from './redirect-uri.ts';

type Metadata = Readonly<Record<string, unknown>>;

/** A client that registers, and its secret where it asked for one: shown once, never stored. */
export interface Registration {
  readonly client: OauthClient;
  readonly secret: string | null;
}

const idBytes = 16;
const secretBytes = 24;

/** Throws OauthError `invalid_client_metadata` or `invalid_redirect_uri`. */
export function registrationOf(
  body: unknown,
  { random, nowMs }: { readonly random: Random; readonly nowMs: number },
): Registration {
  const metadata = objectOf(body);
  const method = methodOf(metadata);
  refuseOtherFlows(metadata);
  const redirectUris = redirectUrisOf(metadata);
  const name = nameOf(metadata) ?? 'A client without a name';
  const secret = method === 'none' ? null : `tbs_${randomHex(random, secretBytes)}`;
  const secretDigest = secret === null ? null : sha256Hex(secret);
  const id = `client-${randomHex(random, idBytes)}`;
  return { client: { id, name, redirectUris, method, secretDigest, createdAt: nowMs }, secret };
}

/**
 * A client by the document at its id. It shows nothing at the token endpoint: methods with a shared secret are refused, and one
 * that would rather sign is served as a public client. Throws OauthError `invalid_client_metadata` or `invalid_redirect_uri`.
 */
export function documentedClient(id: string, document: unknown, nowMs: number): OauthClient {
  const metadata = objectOf(document);
  if (metadata.client_id !== id) {
    throw new OauthError(
      'invalid_client_metadata',
      'client_id in the document is not the address of the document',
    );
  }
  const method = metadata.token_endpoint_auth_method;
  if (typeof method === 'string' && method.startsWith('client_secret_'))
    throw new OauthError('invalid_client_metadata', 'a client with a metadata document can have no secret');
  const redirectUris = redirectUrisOf(metadata);
  const name = nameOf(metadata) ?? new URL(id).host;
  return { id, name, redirectUris, method: 'none', secretDigest: null, createdAt: nowMs };
}

function objectOf(value: unknown): Metadata {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Metadata;
  throw new OauthError('invalid_client_metadata', 'send a JSON object with redirect_uris');
}

/** RFC 7591: `client_secret_basic` where nothing is said. */
function methodOf({ token_endpoint_auth_method: asked = 'client_secret_basic' }: Metadata): ClientAuthMethod {
  const known = clientAuthMethods.find((each) => each === asked);
  if (known !== undefined) return known;
  const sentence = `token_endpoint_auth_method can be ${clientAuthMethods.join(', ')}`;
  throw new OauthError('invalid_client_metadata', sentence);
}

function refuseOtherFlows({ grant_types, response_types }: Metadata): void {
  refuseUnless(grant_types, ['authorization_code', 'refresh_token'], 'grant_types');
  refuseUnless(response_types, ['code'], 'response_types');
}

/** A list that holds the first of the known, and none but known ones; absent is right too. */
function refuseUnless(value: unknown, known: readonly string[], name: string): void {
  if (value === undefined) return;
  const isRight =
    Array.isArray(value) && value.includes(known[0]) && value.every((each) => known.includes(each as string));
  if (!isRight)
    throw new OauthError(
      'invalid_client_metadata',
      `${name} can be ${known.join(' and ')}, the first of them always`,
    );
}

function redirectUrisOf({ redirect_uris: uris }: Metadata): readonly string[] {
  const { redirectUrisMax } = limits;
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > redirectUrisMax)
    throw new OauthError(
      'invalid_redirect_uri',
      `redirect_uris must be a list of 1 to ${redirectUrisMax} addresses`,
    );
  for (const uri of uris as unknown[]) {
    const problem = typeof uri === 'string' ? redirectUriProblem(uri) : 'must be a string';
    if (problem !== null)
      throw new OauthError('invalid_redirect_uri', `an address of redirect_uris ${problem}`);
  }
  return uris as readonly string[];
}

/**
 * Trimmed; null where there is none. Marks that turn text round or are not seen could make a name another one's, a name of nothing
 * that is seen would be none, and marks that pile up would cover the page.
 */
function nameOf({ client_name: name }: Metadata): string | null {
  if (name === undefined || name === null || name === '') return null;
  const trimmed = typeof name === 'string' ? name.trim() : '';
  const { clientNameCharactersMax } = limits;
  const isRight =
    trimmed.length >= 1 &&
    trimmed.length <= clientNameCharactersMax &&
    trimmed.isWellFormed() &&
    !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\p{M}{5}/u.test(trimmed) &&
    trimmed.replace(/[\p{Default_Ignorable_Code_Point}\p{M}\p{Z}\u2800]/gu, '') !== '';
  if (isRight) return trimmed;
  const sentence = `client_name must have 1 to ${clientNameCharactersMax} characters, and none that are not seen or pile up`;
  throw new OauthError('invalid_client_metadata', sentence);
}
