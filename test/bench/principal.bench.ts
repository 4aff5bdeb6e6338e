/**
 * What it costs a request to say who it is, with a credential that the front knows: microseconds from its headers to its
 * principal, and to its being let in (limits, scope, allowance). Bar: 15 µs.
 * Run: node dist/test/bench/principal.bench.js
 */
import { stdout } from 'node:process';
import { ApiError } from '../../protocol/errors.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import { operations } from '../../protocol/operations.ts';
import { makeApiKey } from '../../src/accounts/api-keys.ts';
import { writeKeyClaim } from '../../src/accounts/key-claim.ts';
import { builtInPlans } from '../../src/accounts/plans.ts';
import { Authenticator, credentialOf } from '../../src/auth/authenticate.ts';
import { authorize } from '../../src/auth/authorize.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { Admission } from '../../src/front/admission.ts';
import { Allowances } from '../../src/front/allowances.ts';
import { allowanceRefusal, beginCapped } from '../../src/front/metering.ts';
import { UsageMeter } from '../../src/front/usage-meter.ts';
import { loginTokens, signLoginToken } from '../../src/identity/login-token.ts';
import { encodePerson, type Person } from '../../src/identity/person-record.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { alone } from '../support/key-rings.ts';

const times = 1_000_000;
const tenantId = 7 as TenantId;
const plans = { ...builtInPlans, free: { ...builtInPlans.free, qps: null } };

const store = new MemoryObjectStore();
const tokens = loginTokens(alone(systemRandom.bytes(32)), systemClock, systemRandom);
const person: Person = {
  id: 9 as PersonId,
  email: 'ada@example.com',
  name: 'Ada',
  passwordHash: '',
  generation: 1,
  verified: true,
  links: [],
  resentAt: null,
  verificationMailsAt: [],
  keysEnding: false,
  tenants: [{ tenantId, role: 'owner' }],
  defaultTenantId: tenantId,
  tenantsMade: { month: '2023-11', count: 0 },
  createdAt: 0,
  nonce: 'ab'.repeat(16),
} as Person;
const made = makeApiKey(systemRandom);
await store.putIfAbsent(paths.person(person.id), [encodePerson(person)]);
await writeKeyClaim(store, systemClock, made.digest, { tenantId, keyId: 5 as KeyId });
const authenticator = new Authenticator(
  {
    objectStore: store,
    loginTokens: tokens,
    connections: { ofAccessToken: async () => null },
    plans,
    clock: systemClock,
    tenants: {
      key: async () => ({
        keyId: 5 as KeyId,
        scope: 'admin',
        namespaces: ['notes*'],
        caps: { ratePerS: null, queries: 1_000_000_000, writes: null },
        createdBy: person.id,
      }),
      tenant: async () => ({ tenantId, status: 'active', planName: 'free', ownerVerified: true, ownerId: 1 }),
    },
  },
  { isAlone: true },
);
const admission = new Admission({ clock: systemClock });
const allowances = new Allowances(plans, systemClock);
const meter = new UsageMeter({
  clock: systemClock,
  logger: { error() {}, info() {}, debug() {} } as never,
  tell: async () => null,
  learn() {},
});
const metering = { allowances, meter };

for (const [name, secret] of [
  ['API key', made.key],
  ['login token', await signLoginToken(tokens, person)],
] as const) {
  const headers = new Map([['authorization', `Bearer ${secret}`]]);
  const header = (wanted: string) => headers.get(wanted);
  await authenticator.authenticate(credentialOf(header));
  for (let warmUp = 0; warmUp < 2; warmUp++) {
    const known = perRequest(() => authenticator.peek(credentialOf(header)));
    const letIn = perRequest(() => {
      const principal = authenticator.peek(credentialOf(header));
      if (principal === undefined) throw new Error('it is not known');
      const ticket = admission.admit(principal);
      if (ticket instanceof ApiError) throw ticket;
      const endCapped = beginCapped(metering, operations.getDocument, principal);
      if (endCapped !== null) ticket.whenReleased(endCapped);
      const refusal =
        authorize(principal, 'read', 'notes-1') ??
        allowanceRefusal(metering, operations.getDocument, principal);
      if (refusal !== null) throw refusal;
      ticket.release();
    });
    if (warmUp === 1)
      stdout.write(`${name.padEnd(12)} known ${known.toFixed(2)} µs, let in ${letIn.toFixed(2)} µs\n`);
  }
}

function perRequest(work: () => unknown): number {
  const began = performance.now();
  for (let i = 0; i < times; i++) work();
  return ((performance.now() - began) * 1_000) / times;
}
