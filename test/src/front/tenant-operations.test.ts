/** The steps of making and deleting a tenant, with the real actors, at a store that fails where a test wants it. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Tenant } from '../../../protocol/account.ts';
import type { ApiError } from '../../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../../protocol/ids.ts';
import { limits } from '../../../protocol/limits.ts';
import { actorAnswerToWire, noMeter } from '../../../protocol/messages.ts';
import type { Principal } from '../../../src/auth/principal.ts';
import { onlyOnce, requestMemory } from '../../../src/front/idempotency.ts';
import { tenantOperations } from '../../../src/front/tenant-operations.ts';
import { encodePerson, readPerson, updatePerson } from '../../../src/identity/person-record.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { type Tenants, tenantsThrough } from '../../../src/router/tenants.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type FaultPlan, FaultyObjectStore } from '../../support/faulty-object-store.ts';
import { InProcess, seededBytes } from '../../support/in-process.ts';
import { personRecord } from '../../support/people.ts';

const ownTenant = 7 as TenantId;
const personId = 3 as PersonId;
let clock: FakeClock;
let truth: MemoryObjectStore;
let process: InProcess;
let starts = 0;

beforeEach(async () => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  process = await start();
  await clock.run(process.createTenant());
  const person = personRecord({ id: personId, tenantId: ownTenant, createdAt: clock.now() });
  await truth.putIfAbsent(paths.person(personId), [encodePerson(person)]);
});

async function start(): Promise<InProcess> {
  return clock.run(InProcess.start({ store: truth, clock, random: seededBytes(290 + starts++) }));
}

/** As router and thread do. */
function tenantsOf(): Tenants {
  return tenantsThrough({
    async call(call, body) {
      const { status, packed } = await process.host.handle(call, body ?? null);
      return {
        head: actorAnswerToWire({ status, headers: [], meter: noMeter }),
        body: packed ?? new Uint8Array(),
      };
    },
  });
}

const login = { auth: 'login', personId, tenantId: ownTenant, role: 'owner' } as Principal;
/** One for all: a nonce that comes twice would pass for one's own write. */
const random = seededBytes(1);
const noFaults: FaultPlan = () => undefined;

function operations(plan: FaultPlan = noFaults, tenants = tenantsOf()) {
  const objectStore = new FaultyObjectStore(truth, clock, plan);
  const all = tenantOperations({ tenants, persons: { objectStore, clock, random }, billing: null });
  const begin = (name: 'listTenants' | 'createTenant' | 'deleteTenant', rest: object) => {
    const asked = { principal: login, body: undefined, plannedId: 0, parameters: {} as never };
    const request = { ...asked, clientAddress: '192.0.2.1', tenant: undefined, isAbout: () => {}, ...rest };
    return all.get(name)?.(request) ?? assert.fail(name);
  };
  const run = (...asked: Parameters<typeof begin>) => clock.run(begin(...asked));
  return {
    list: async () => ((await run('listTenants', {})) as Tenant[]).map(({ id }) => id),
    create: (plannedId: number) => run('createTenant', { body: { name: 'T' }, plannedId }) as Promise<Tenant>,
    /** Not waited for: several at once share the clock's time. */
    begin: (plannedId: number) => begin('createTenant', { body: { name: 'T' }, plannedId }),
    beginDelete: (id: number) => begin('deleteTenant', { parameters: { id: String(id) } }),
    delete: (id: number) => run('deleteTenant', { parameters: { id: String(id) } }),
  };
}

const listed = async () => (await readPerson(truth, personId))?.tenants.map(({ tenantId }) => tenantId);
const failing =
  (fault: 'drop-before-apply' | 'error-after-apply'): FaultPlan =>
  ({ operation, key }) =>
    operation === 'update' && key.startsWith('account/person/') ? fault : undefined;

test('a tenant that could not be listed is nobody’s, and the repetition makes the same one', async () => {
  await assert.rejects(operations(failing('drop-before-apply')).create(50));
  assert.deepEqual(await listed(), [7]);
  process.kill();
  process = await start();

  const made = await operations().create(50);

  assert.equal(made.id, 50);
  assert.deepEqual(await listed(), [7, 50]);
  assert.deepEqual(await operations().create(50), made);
  assert.deepEqual(await operations().list(), [7, 50]);
  process.kill();
});

test('where nobody knows whether a tenant was listed the client hears so, and the repetition finds it', async () => {
  let faults = 8;
  const plan: FaultPlan = (call) => (faults-- > 0 ? failing('error-after-apply')(call) : undefined);
  const made = await operations(plan)
    .create(50)
    .catch((error: unknown) => error);

  // Its own nonce tells it that an earlier try has won.
  assert.equal((made as Tenant).id, 50);
  assert.deepEqual(await listed(), [7, 50]);
  process.kill();
});

test('a number that another person’s tenant has is never listed', async () => {
  await clock.run(process.createTenant(60));

  await assert.rejects(operations().create(60), { code: 'unavailable' });

  assert.deepEqual(await listed(), [7]);
  process.kill();
});

test('who verifies an address while a tenant is made has a verified tenant', async () => {
  const tenants = tenantsOf();
  const racing: Tenants = {
    ...tenants,
    async create(tenant, firstKey) {
      await tenants.create(tenant, firstKey);
      const store = { objectStore: truth, clock, random };
      await updatePerson(store, personId, (person) => ({ ...person, verified: true }));
    },
  };

  await operations(noFaults, racing).create(50);

  assert.equal((await clock.run(tenants.get(50)))?.ownerVerified, true);
  process.kill();
});

test('a deletion that ends before the list is changed is finished by the next look at it', async () => {
  await operations().create(50);
  await operations().create(51);
  await assert.rejects(operations(failing('drop-before-apply')).delete(50));
  assert.deepEqual(await listed(), [7, 50, 51]);
  process.kill();
  process = await start();

  assert.deepEqual(await operations(failing('drop-before-apply')).list(), [7, 51]);
  assert.deepEqual(await listed(), [7, 50, 51]);
  assert.deepEqual(await operations().list(), [7, 51]);
  assert.deepEqual(await listed(), [7, 51]);
  process.kill();
});

test('a deletion may be repeated until the list is changed', async () => {
  await operations().create(50);
  await assert.rejects(operations(failing('drop-before-apply')).delete(50));

  await operations().delete(50);

  assert.deepEqual(await listed(), [7]);
  await assert.rejects(operations().delete(50), { code: 'not_found' });
  process.kill();
});

test('of 15 tenants that one person makes at once all are made, and listed', async () => {
  const { begin } = operations();
  const ids = Array.from({ length: 15 }, (_, i) => 100 + i);

  await clock.run(Promise.all(ids.map((id) => begin(id))));

  assert.deepEqual(await listed(), [7, ...ids]);
  process.kill();
});

test('a month has so many tenants of a person, those that are deleted and made again included', async () => {
  for (let id = 100; id < 100 + limits.tenantsMadePerMonthMax; id++) {
    await operations().create(id);
    // A repetition is none more.
    await operations().create(id);
    await operations().delete(id);
  }

  await assert.rejects(operations().create(50), { code: 'conflict' });
  assert.equal(await clock.run(tenantsOf().get(50)), null);
  clock.jump(31 * 24 * 3_600_000);
  await operations().create(50);

  assert.deepEqual(await listed(), [7, 50]);
  assert.equal((await readPerson(truth, personId))?.tenantsMade.count, 1);
  process.kill();
});

test('those past what one person may have under way are refused, and nothing is made for them', async () => {
  const { begin, beginDelete } = operations();
  const most = limits.tenantChangesAtOnceMax;

  const ends = await clock.run(
    Promise.all(
      Array.from({ length: most + 2 }, (_, i) =>
        (i === 0 ? begin(50) : beginDelete(1_000 + i)).catch((error: unknown) => error),
      ),
    ),
  );

  const codes = ends.slice(1).map((error) => (error as ApiError).code);
  assert.deepEqual(codes, [
    ...Array.from({ length: most - 1 }, () => 'not_found'),
    'unavailable',
    'unavailable',
  ]);
  process.kill();
});

test('a tenant that surely did not get into the list is deleted again, and the next one is another', async () => {
  const refusing: FaultPlan = ({ operation, key }) => {
    if (operation !== 'update' || !key.startsWith('account/person/')) return undefined;
    truth.putIfMatch = async () => ({ kind: 'refused' });
    return undefined;
  };
  const putIfMatch = truth.putIfMatch;
  const asked = { tenantId: ownTenant, operation: 'createTenant', keyDigest: 'a'.repeat(64), body: null };
  const memory = requestMemory(tenantsOf(), seededBytes(9));
  const planned: number[] = [];
  const attempt = (plan: FaultPlan) =>
    clock.run(
      onlyOnce(memory, asked, async (id) => {
        planned.push(id);
        const made = await operations(plan)
          .create(id)
          .finally(() => {
            truth.putIfMatch = putIfMatch;
          });
        return { status: 201, headers: [], body: JSON.stringify(made) };
      }),
    );

  await assert.rejects(attempt(refusing), { code: 'unavailable', retryAfter: 1 });
  assert.equal((await clock.run(tenantsOf().get(planned[0] ?? 0)))?.status, 'deleting');
  await attempt(noFaults);

  assert.equal(planned.length, 2);
  assert.deepEqual(await listed(), [7, planned[1]]);
  process.kill();
});

test('of tenants that are made at two servers at once no more are listed than a person may have', async () => {
  for (let id = 100; id < 100 + limits.tenantsOfPersonMax - 2; id++) await operations().create(id);
  const { create } = operations();

  const ends = await Promise.allSettled([create(50), operations().create(51)]);

  const refused = ends.filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 1);
  assert.equal((await listed())?.length, limits.tenantsOfPersonMax);
  const left = await Promise.all([50, 51].map((id) => clock.run(tenantsOf().get(id))));
  assert.deepEqual(left.map((tenant) => tenant?.status).sort(), ['active', 'deleting']);
  await assert.rejects(create(52), { code: 'conflict' });
  assert.equal(await clock.run(tenantsOf().get(52)), null);
  process.kill();
});

test('a request that is repeated after a crash at any of its steps makes one tenant', async () => {
  let crashes = 0;
  for (let step = 1; ; step++) {
    const keyDigest = String(step).padStart(64, '0');
    const asked = { tenantId: ownTenant, operation: 'createTenant', keyDigest, body: null };
    const attempt = (plan: FaultPlan) =>
      onlyOnce(requestMemory(tenantsOf(), seededBytes(step)), asked, async (id) => {
        const made = await operations(plan).create(id);
        return { status: 201, headers: [], body: JSON.stringify(made) };
      });
    let calls = 0;
    const crash: FaultPlan = () => {
      if (++calls < step) return undefined;
      process.kill();
      return { until: new Promise(() => {}) };
    };
    process.store.plan = crash;
    const before = (await listed()) ?? [];
    let answer: unknown = null;
    attempt(crash).then(
      ({ body }) => {
        answer = body;
      },
      () => {},
    );
    await clock.advance(60_000);
    process.kill();
    process = await start();

    const again = await clock.run(attempt(noFaults));
    const third = await clock.run(attempt(noFaults));

    assert.equal(again.status, 201);
    assert.deepEqual(third.headers.at(-1), ['idempotent-replayed', 'true']);
    assert.equal(third.body, again.body);
    assert.equal((await listed())?.length, before.length + 1);
    const { id } = JSON.parse(String(again.body)) as Tenant;
    await operations().delete(id);
    if (answer !== null) {
      assert.equal(answer, again.body);
      break;
    }
    crashes++;
  }
  assert.ok(crashes >= 4, `${crashes} crashes`);
  process.kill();
});
