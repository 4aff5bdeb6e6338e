import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import type { TenantId } from '../../../protocol/ids.ts';
import { type Credential, credentialOf, unauthorized } from '../../../src/auth/authenticate.ts';
import { insufficientScope, mcpAuthenticator } from '../../../src/auth/mcp-authenticate.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { makeToken } from '../../../src/oauth/tokens.ts';
import { keyPrincipal } from './principals.ts';

const baseUrl = 'https://tide.example';
const metadata = `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp", scope="read write"`;
const token = makeToken(systemRandom, 'access', { tenantId: 1 as TenantId, connectionId: 2 });
const principal = keyPrincipal({});

/** Knows one secret; everything else is nobody's. */
function knowing(secret: string) {
  const asked: Credential[] = [];
  const look = (credential: Credential) => {
    asked.push(credential);
    return credential.secret === secret ? principal : undefined;
  };
  const authenticator = mcpAuthenticator(
    {
      peek: look,
      async authenticate(credential) {
        const found = look(credential);
        if (found === undefined) throw unauthorized('unknown');
        return found;
      },
    },
    baseUrl,
  );
  return { authenticator, asked };
}

async function refusalOf(headers: Record<string, string>): Promise<ApiError> {
  const { authenticator } = knowing(token);
  try {
    await authenticator.authenticate((name) => headers[name]);
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
  assert.fail('it was let in');
}

test('a token, a key and a login are each asked for as what they are', async () => {
  for (const [secret, kind] of [
    [token, 'oauth'],
    ['tb_key', 'key'],
    ['a.login.token', 'login'],
  ] as const) {
    const { authenticator, asked } = knowing(secret);
    const header = (name: string) => (name === 'authorization' ? `Bearer ${secret}` : undefined);

    assert.equal(authenticator.peek(header), principal);
    assert.equal(await authenticator.authenticate(header), principal);

    assert.deepEqual(asked.at(-1), { kind, secret, tenant: undefined });
  }
});

test('whoever sends nothing is told where to ask, and of no error', async () => {
  const refusal = await refusalOf({});

  assert.equal(refusal.status, 401);
  assert.deepEqual(refusal.headers, [['WWW-Authenticate', `Bearer ${metadata}`]]);
});

test('whoever sends what is no good is told so', async () => {
  for (const headers of [
    {
      authorization: `Bearer ${makeToken(systemRandom, 'access', { tenantId: 1 as TenantId, connectionId: 2 })}`,
    },
    { authorization: 'Basic abc' },
    { 'x-api-key': token },
  ]) {
    const refusal = await refusalOf(headers);

    assert.equal(refusal.status, 401);
    assert.deepEqual(refusal.headers, [['WWW-Authenticate', `Bearer error="invalid_token", ${metadata}`]]);
  }
});

test('a read-only token is told what a write needs', () => {
  const refusal = insufficientScope(baseUrl);

  assert.equal(refusal.status, 403);
  assert.deepEqual(refusal.headers, [['WWW-Authenticate', `Bearer error="insufficient_scope", ${metadata}`]]);
});

test('the REST interface refuses access tokens, and says where they work', () => {
  assert.throws(
    () => credentialOf((name) => (name === 'authorization' ? `Bearer ${token}` : undefined)),
    (error: unknown) =>
      error instanceof ApiError && error.status === 401 && error.message.includes('/mcp only'),
  );
});
