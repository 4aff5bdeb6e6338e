import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Authority, authorize } from '../../../src/auth/authorize.ts';
import type { Principal } from '../../../src/auth/principal.ts';
import { keyPrincipal, loginPrincipal } from './principals.ts';

const authorities: readonly Authority[] = ['read', 'write', 'admin', 'manage-keys', 'billing', 'login'];
const callers: readonly (readonly [string, Principal, readonly Authority[]])[] = [
  ['a read key', keyPrincipal({ scope: 'read' }), ['read']],
  ['a write key', keyPrincipal({ scope: 'write' }), ['read', 'write']],
  ['an admin key', keyPrincipal({}), ['read', 'write', 'admin', 'manage-keys', 'billing']],
  [
    'an admin key for some namespaces',
    keyPrincipal({ namespaces: ['a*'] }),
    ['read', 'write', 'admin', 'billing'],
  ],
  ['an admin key with a cap', keyPrincipal({ caps: { writes: 5 } }), ['read', 'write', 'admin', 'billing']],
  ['the owner', loginPrincipal('owner'), authorities],
  ['a member', loginPrincipal('member'), ['read', 'write', 'login']],
  ['a key of a suspended tenant', keyPrincipal({ tenantStatus: 'suspended' }), []],
  ['the owner of a suspended tenant', loginPrincipal('owner', { tenantStatus: 'suspended' }), []],
  [
    'a key of a tenant that owes',
    keyPrincipal({ tenantStatus: 'past_due', scope: 'write' }),
    ['read', 'write'],
  ],
];

for (const [name, principal, allowed] of callers) {
  test(`${name} may do ${allowed.join(', ') || 'nothing'}`, () => {
    for (const authority of authorities) {
      const refusal = authorize(principal, authority, null);
      assert.equal(refusal === null, allowed.includes(authority), authority);
      if (refusal !== null) assert.equal(refusal.code, 'forbidden');
    }
  });
}

const hidden = { outsidePatterns: 'not_found', whenSuspended: false } as const;

test('the people of a suspended tenant may do what is for them, and its keys nothing', () => {
  const suspended = { tenantStatus: 'suspended' } as const;
  const forThem = { outsidePatterns: 'forbidden', whenSuspended: true } as const;

  assert.equal(authorize(loginPrincipal('owner', suspended), 'billing', null, forThem), null);
  assert.equal(authorize(loginPrincipal('member', suspended), 'billing', null, forThem)?.status, 403);
  assert.equal(authorize(keyPrincipal(suspended), 'billing', null, forThem)?.status, 403);
  assert.equal(authorize(loginPrincipal('owner', suspended), 'read', null)?.status, 403);
});

test('a namespace outside the patterns is refused and one inside is not', () => {
  const principal = keyPrincipal({ scope: 'write', namespaces: ['docs', 'user-*'] });

  assert.equal(authorize(principal, 'read', 'docs'), null);
  assert.equal(authorize(principal, 'write', 'user-1'), null);
  assert.equal(authorize(principal, 'read', 'other')?.status, 403);
  assert.equal(authorize(principal, 'read', 'other', hidden)?.status, 404);
  assert.equal(authorize(principal, 'admin', 'other', hidden)?.status, 403);
  assert.equal(authorize(keyPrincipal({}), 'read', 'other'), null);
});
