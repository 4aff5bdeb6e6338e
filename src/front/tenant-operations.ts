import { type Tenant, tenantRequestSchema } from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import { parseId48, type TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { OperationName } from '../../protocol/operations.ts';
import type { TenantRecord } from '../../protocol/stored-tenant.ts';
import { parseWith } from '../../protocol/validate.ts';
import type { Role } from '../accounts/scopes.ts';
import { dayOf, periodOf } from '../accounts/usage.ts';
import type { Principal } from '../auth/principal.ts';
import { DataError, must } from '../base/assert.ts';
import { SerialByKey } from '../base/serial-by-key.ts';
import type { PaidPlans } from '../billing/paid-plans.ts';
import { type Person, type PersonStore, readPerson, updatePerson } from '../identity/person-record.ts';
import { StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import type { Tenants } from '../router/tenants.ts';
import type { FrontOperation, FrontRequest } from './front-operation.ts';

export interface TenantComponents {
  readonly tenants: Tenants;
  readonly persons: PersonStore;
  /** Null where nobody can subscribe. */
  readonly billing: Pick<PaidPlans, 'end'> | null;
}

type Membership = Person['tenants'][number];

/**
 * The tenants of a person. A person's record lists them; the tenant itself is its actor's. On one server a person's are made
 * and deleted one after another: all of them change the one record, and those that are too many are refused before they are
 * made.
 *
 * Making one: the tenant first, the list last. One that surely did not get into the list is deleted again; a crash between
 * leaves a tenant that nobody can reach.
 *
 * Deleting one: its subscription ends before all else; then the tenant first (durably, and forgotten by every front), the list last. A crash between leaves a number in the
 * list that leads to a remnant, which counts as nothing and leaves the list when it is next read.
 */
export function tenantOperations(components: TenantComponents): ReadonlyMap<OperationName, FrontOperation> {
  const turns: Turns = new SerialByKey();
  return new Map<OperationName, FrontOperation>([
    ['listTenants', (request) => listTenants(components, principalOf(request))],
    ['createTenant', (request) => inTurn(turns, request, () => createTenant(components, request))],
    ['deleteTenant', (request) => inTurn(turns, request, () => deleteTenant(components, request))],
  ]);
}

/** Runs one person's changes one after the other. */
type Turns = SerialByKey<number>;

async function inTurn<T>(turns: Turns, request: FrontRequest, change: () => Promise<T>): Promise<T> {
  const personId = must(principalOf(request).personId, 'the person of a login');
  if (turns.waiting(personId) < limits.tenantChangesAtOnceMax) return turns.run(personId, change);
  const sentence = 'too many tenants are being made and deleted at once; nothing was done: try again';
  throw new ApiError('unavailable', sentence, { retryAfter: 5 });
}

function principalOf({ principal }: FrontRequest): Principal {
  return must(principal, 'a principal');
}

async function listTenants(components: TenantComponents, principal: Principal): Promise<Tenant[]> {
  if (principal.auth === 'login') {
    const person = await personOf(components, principal);
    const living = await livingTenants(components, person);
    return living.map(({ tenant, role }) => shown(tenant, role));
  }
  const tenant = await tenantOf(components, principal.tenantId);
  return tenant.status === 'deleting' ? [] : [shown(tenant, 'owner')];
}

/** The tenants of a person that are not deleted, in the order in which they were made. */
async function livingTenants(components: TenantComponents, person: Person) {
  const listed = await Promise.all(
    person.tenants.map(async ({ tenantId, role }) => ({
      tenant: await tenantOf(components, tenantId),
      role,
    })),
  );
  const living = listed.filter(({ tenant }) => tenant.status !== 'deleting');
  // A deletion that came to its end without its last step. Should this fail, the next look does it.
  if (living.length < listed.length) {
    const gone = new Set(listed.filter((each) => !living.includes(each)).map(({ tenant }) => tenant.id));
    await leaveList(components, person, (tenantId) => gone.has(tenantId)).catch(() => {});
  }
  return living;
}

async function createTenant(components: TenantComponents, request: FrontRequest): Promise<Tenant> {
  const { name } = parseWith(tenantRequestSchema, request.body);
  const { tenants, persons } = components;
  const person = await personOf(components, principalOf(request));
  const id = request.plannedId as TenantId;
  // Before anything is made for it; the record, when it is changed, decides.
  if (!lists(person, id)) await refuseOneMore(components, person);
  const createdAt = new Date(persons.clock.now()).toISOString();
  const ownerVerified = person.verified;
  const fields = { plan: 'free', status: 'active', ownerId: person.id, ownerVerified, createdAt } as const;
  await tenants.create({ id, name, ...fields }, null);
  const made = await tenantOf(components, id).catch((error: unknown) => {
    throw perhapsMade(error);
  });
  // Numbers are drawn by chance: another tenant may have had this one.
  if (made.status !== 'deleting' && made.ownerId !== person.id)
    throw new ApiError('unavailable', 'two tenants got one id; no tenant was made: try again', {
      retryAfter: 1,
    });
  if (made.status === 'deleting') throw new ApiError('conflict', 'the tenant was made and deleted again');
  const listed = await enterList(components, person, id);
  // Who verified an address after it was read here has told only the tenants that were listed by then.
  if (listed.verified && !made.ownerVerified) {
    await tenants.ownerVerified(id).catch((error: unknown) => {
      throw perhapsMade(error);
    });
  }
  return shown(made, 'owner');
}

async function refuseOneMore(components: TenantComponents, person: Person): Promise<void> {
  withOneMore(person, components.persons.clock.now());
  if (person.tenants.length < limits.tenantsOfPersonMax) return;
  const living = await livingTenants(components, person);
  if (living.length >= limits.tenantsOfPersonMax) throw tooMany();
}

/** The count with one more. Throws 409 where the month has no more: not 429, whose clients would wait for days by themselves. */
function withOneMore({ tenantsMade }: Person, nowMs: number): Person['tenantsMade'] {
  const { month, endMs } = periodOf(nowMs);
  const count = tenantsMade.month === month ? tenantsMade.count : 0;
  if (count < limits.tenantsMadePerMonthMax) return { month, count: count + 1 };
  const sentence = `an account makes at most ${limits.tenantsMadePerMonthMax} tenants a month, deleted ones included: the next one from ${dayOf(endMs)} on`;
  throw new ApiError('conflict', sentence);
}

function lists({ tenants }: Person, id: TenantId): boolean {
  return tenants.some(({ tenantId }) => tenantId === id);
}

async function enterList(
  { tenants, persons }: TenantComponents,
  { id }: Person,
  tenantId: TenantId,
): Promise<Person> {
  try {
    const listed = await updatePerson(persons, id, (person) => {
      if (lists(person, tenantId)) return person;
      if (person.tenants.length >= limits.tenantsOfPersonMax) throw tooMany();
      const tenantsMade = withOneMore(person, persons.clock.now());
      return { ...person, tenants: [...person.tenants, { tenantId, role: 'owner' }], tenantsMade };
    });
    return must(listed, 'the person who is logged in');
  } catch (error) {
    if (error instanceof ApiError && error.code === 'write_unknown') throw perhapsMade(error);
    // Nobody can reach it, so it may as well go; where that fails it stays, and still nobody can.
    await tenants.setStatus(tenantId, 'deleting').catch(() => {});
    if (!(error instanceof StoreError)) throw error;
    const sentence = 'object storage failed; no tenant was made: try again';
    throw new ApiError('unavailable', sentence, { retryAfter: 1, cause: error });
  }
}

/** What repeats this with its `Idempotency-Key` finds the same tenant. */
function perhapsMade(cause: unknown): ApiError {
  const sentence = 'the tenant may have been made: list the tenants to find out';
  return new ApiError('write_unknown', sentence, { cause, retryAfter: 1 });
}

/** Answered when the tenant is gone: its objects are too, or go as soon as the store lets them. */
async function deleteTenant(components: TenantComponents, request: FrontRequest): Promise<void> {
  const tenantId = parseId48(request.parameters.id ?? '');
  const person = await personOf(components, principalOf(request));
  const membership = person.tenants.find((each) => each.tenantId === tenantId);
  if (membership === undefined) throw new ApiError('not_found', 'there is no such tenant');
  refuseDeletion(person, membership);
  // Nobody pays for what is not there: where this fails nothing is deleted.
  await components.billing?.end(membership.tenantId);
  await components.tenants.setStatus(membership.tenantId, 'deleting');
  await leaveList(components, person, (each) => each === tenantId);
}

function refuseDeletion({ defaultTenantId }: Person, { tenantId, role }: Membership): void {
  if (role !== 'owner') throw new ApiError('forbidden', 'only its owner may delete a tenant');
  if (tenantId !== defaultTenantId) return;
  throw new ApiError('conflict', "this is the account's own tenant: it stays as long as the account does");
}

async function leaveList(
  { persons }: TenantComponents,
  { id }: Person,
  leaves: (tenantId: number) => boolean,
): Promise<void> {
  await updatePerson(persons, id, (person) => {
    const tenants = person.tenants.filter(({ tenantId }) => !leaves(tenantId));
    return tenants.length === person.tenants.length ? person : { ...person, tenants };
  });
}

async function personOf({ persons }: TenantComponents, { personId }: Principal): Promise<Person> {
  const id = must(personId, 'the person of a login');
  return must(await readPerson(persons.objectStore, id), 'the person who is logged in');
}

/** The tenant of an id that something led to. It was made before that, and its remnant stays: one that is missing is damage. */
async function tenantOf({ tenants }: TenantComponents, tenantId: number): Promise<TenantRecord> {
  const tenant = await tenants.get(tenantId);
  if (tenant !== null) return tenant;
  throw new DataError(paths.tenantManifest(tenantId), 0, 'a person lists this tenant and it is missing');
}

function shown({ id, name, plan, status, createdAt }: TenantRecord, role: Role): Tenant {
  return { id, name, plan, status, role, created_at: createdAt };
}

function tooMany(): ApiError {
  const sentence = `an account has at most ${limits.tenantsOfPersonMax} tenants: delete one that is not needed`;
  return new ApiError('conflict', sentence);
}
