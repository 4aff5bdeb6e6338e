/**
 * Objects of the store are damaged while nobody looks. Every answer after that is the right one, or an error that the
 * log explains by the object's key; other tenants notice nothing. CORRUPT_OBJECTS is how many (the suite does a few),
 * CORRUPT_SEED repeats a run, CORRUPT_S3 does it in a bucket of the server that TIDEBASE_TEST_S3_ENV names.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { StoreSettings } from '../../protocol/worker-tasks.ts';
import { apiKeyDigest } from '../../src/accounts/api-keys.ts';
import { systemClock } from '../../src/base/clock.ts';
import { sha256Hex } from '../../src/base/hash.ts';
import { systemRandom } from '../../src/base/random.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { openObjectStore } from '../../src/object-store/open-object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type ApiAnswer, ApiClient, documentPath } from '../support/api-client.ts';
import { appendGarbage, DamageTable, flipBits, randomRange, truncate, zeroRange } from '../support/damage.ts';
import { seededRandom } from '../support/model.ts';
import { newBucket, serverEnvOf } from '../support/s3-server.ts';
import { ServerProcess, temporaryFolder } from '../support/server-process.ts';

const wanted = Number(process.env.CORRUPT_OBJECTS ?? 4);
const seed = Number(process.env.CORRUPT_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** Null where everything is in a folder. */
const bucket = process.env.CORRUPT_S3 === undefined ? null : await newBucket();

interface Tenant {
  readonly email: string;
  readonly key: string;
  readonly personId: number;
  readonly tenantId: number;
  /** Name of the namespace → id of the document → text, in the order of writing. */
  readonly namespaces: Map<string, Map<string, string>>;
}

/** How a class of objects is damaged. `swap` is with the same object of another tenant. */
const damages = [flipBits, truncate, zeroRange, randomRange, appendGarbage] as const;
const damageNames = [...damages.map(({ name }) => name), 'swapped', 'deleted'];

/** Where a tenant's objects of a class lie, given all keys of the store. */
const tenantClasses: Record<string, (tenant: Tenant, world: World) => string> = {
  person: ({ personId }) => paths.person(personId),
  'address claim': ({ email }) => paths.emailClaim(sha256Hex(email)),
  'key claim': ({ key }) => paths.keyClaim(apiKeyDigest(key)),
  'tenant manifest': ({ tenantId }) => paths.tenantManifest(tenantId),
  'manifest with a tail': (tenant, world) => world.namespaceKey(tenant, 'tail', 'manifest'),
  'manifest with a segment': (tenant, world) => world.namespaceKey(tenant, 'segment', 'manifest'),
  'segment, documents': (tenant, world) => world.namespaceKey(tenant, 'segment', 'segment/'),
  'segment, indexes': (tenant, world) => world.namespaceKey(tenant, 'segment', 'segment/'),
  blob: (tenant, world) => world.blobKey(tenant),
};

/** Objects of the whole server: each is damaged alone. */
const serverClasses: Record<string, (world: World) => string> = {
  view: () => paths.view,
  lease: (world) => world.last(/^cluster\/lease\//),
  'log slot': (world) => world.unflushedSlots().at(0) ?? '',
  'last log slot': (world) => world.unflushedSlots().at(-1) ?? '',
  floor: (world) => world.last(/^log\/[^/]+\/floor$/),
  'done marker': (world) => world.last(/^log\/[^/]+\/done$/),
};

/** The last slot of a log that was not sealed is named by nothing: without it the log ends before it. */
const untold = ({ kind, damage }: Plan) => kind === 'last log slot' && damage === 'deleted';

/**
 * What cannot be told from an object that never was, because nothing else speaks of it: a claim is where the way to an
 * account begins. The answer is a refusal then.
 */
const refusedWhereGone = new Set(['address claim', 'key claim']);

const clients = new Set<ApiClient>();
after(() => {
  for (const client of clients) client.close();
});

/** A store with tenants in it, as a killed server left it, and how to have it again. */
class World {
  readonly folder: string;
  readonly tenants: Tenant[] = [];
  #objects = new Map<string, Buffer>();
  /** Slots that the last process wrote, which no manifest contains. */
  readonly #unflushed = new Set<string>();
  readonly #namespaceIds = new Map<string, string>();
  readonly #blobs = new Map<number, string>();

  constructor(folder: string) {
    this.folder = folder;
  }

  get env(): Record<string, string> {
    // One thread: it starts sooner, and where an actor lives makes no difference to what it reads.
    const threads = { TIDEBASE_ACTOR_THREADS: '1' };
    return bucket === null ? threads : { ...threads, ...serverEnvOf(bucket) };
  }

  open(folder: string): Promise<ObjectStore> {
    return openObjectStore(storeIn(folder), systemClock, systemRandom);
  }

  /** Reads everything, and remembers it. */
  async remember(): Promise<Map<string, Buffer>> {
    const store = await this.open(this.folder);
    const found = new Map<string, Buffer>();
    for (const key of await keysOf(store)) {
      const object = await store.get(key);
      if (object !== null) found.set(key, Buffer.from(object.bytes));
    }
    await store.close();
    this.#objects = found;
    return found;
  }

  noteUnflushed(before: ReadonlyMap<string, Buffer>): void {
    for (const key of this.#objects.keys()) if (!before.has(key)) this.#unflushed.add(key);
  }

  noteNamespaces(): void {
    for (const [key, bytes] of this.#objects) {
      const id = /^ns\/..\/([0-9a-f]+)\/manifest$/.exec(key)?.[1];
      if (id === undefined) continue;
      for (const { tenantId } of this.tenants) {
        for (const name of ['tail', 'segment', 'blob']) {
          // The manifest names its tenant and namespace; looked for in its bytes, which are MessagePack.
          const text = bytes.toString('latin1');
          if (text.includes(`${name}-of-${tenantId}`)) this.#namespaceIds.set(`${tenantId}/${name}`, id);
        }
      }
    }
  }

  noteBlob(tenant: Tenant, key: string): void {
    this.#blobs.set(tenant.tenantId, key);
  }

  get keys(): readonly string[] {
    return [...this.#objects.keys()];
  }

  bytesOf(key: string): Buffer {
    const bytes = this.#objects.get(key);
    assert.ok(bytes !== undefined, `there is ${key}`);
    return bytes;
  }

  namespaceKey({ tenantId }: Tenant, name: string, below: string): string {
    const id = this.#namespaceIds.get(`${tenantId}/${name}`);
    assert.ok(id !== undefined, `${name} of ${tenantId} has a manifest`);
    const key = this.keys.find((each) => each.includes(`/${id}/${below}`));
    assert.ok(key !== undefined, `${name} has ${below}`);
    return key;
  }

  blobKey({ tenantId }: Tenant): string {
    const key = this.#blobs.get(tenantId);
    assert.ok(key !== undefined, 'a blob');
    return key;
  }

  /** The slots above the floor of the log that was cut off by the kill. */
  unflushedSlots(): string[] {
    const slots = [...this.#unflushed].filter((key) => /^log\/[^/]+\/[0-9]{20}$/.test(key)).sort();
    const log = slots.at(-1)?.split('/')[1] ?? '';
    const found = slots.filter((key) => key.includes(log));
    assert.ok(found.length >= 2, 'slots after one another');
    return found;
  }

  /** The last such object of the latest log that has one: earlier ones are done with. */
  last(pattern: RegExp): string {
    const found = this.keys
      .filter((key) => pattern.test(key))
      .sort()
      .at(-1);
    assert.ok(found !== undefined, `an object ${pattern}`);
    return found;
  }

  /** A folder with the same data, and the store in it. */
  async again(): Promise<string> {
    if (bucket !== null) {
      const store = await this.open(this.folder);
      for (const key of await keysOf(store)) await store.delete(key);
      for (const [key, bytes] of this.#objects) await store.putIfAbsent(key, [bytes]);
      await store.close();
      rmSync(join(this.folder, 'cache'), { recursive: true, force: true });
      return this.folder;
    }
    const folder = temporaryFolder();
    for (const part of ['objects', 'secrets', 'server-id'])
      if (existsSync(join(this.folder, part)))
        cpSync(join(this.folder, part), join(folder, part), { recursive: true });
    return folder;
  }
}

function storeIn(folder: string): StoreSettings {
  if (bucket === null) return { kind: 'fs', folder: join(folder, 'objects') };
  const { endpoint, region, bucket: name, accessKeyId, secretAccessKey } = bucket;
  return { kind: 's3', endpoint, region, bucket: name, accessKeyId, secretAccessKey, forcePathStyle: true };
}

async function keysOf(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for (let after = ''; ; ) {
    const page = await store.list('', { limit: 1_000, ...(after === '' ? {} : { after }) });
    keys.push(...page.objects.map(({ key }) => key));
    after = keys.at(-1) ?? '';
    if (!page.more) return keys;
  }
}

const password = 'correct horse';
const incompressible = (random: () => number, length: number) =>
  Buffer.from(Array.from({ length: Math.ceil(length / 2) }, () => Math.floor(random() * 256))).toString(
    'hex',
  );

/** Every tenant: documents in a manifest's tail, in a segment, in the log alone, and one in a blob of the log. */
async function makeWorld(
  { count, blobs, withDone }: { readonly count: number; readonly blobs: number; readonly withDone: boolean },
  random: () => number,
): Promise<World> {
  const world = new World(temporaryFolder());
  const options = { folder: world.folder, env: { ...world.env, TIDEBASE_COMMIT_MS: '10' } };
  let server = await new ServerProcess(options).listening();
  let api = clientOf(server);
  const making = Array.from({ length: count }, (_, at) => makeTenant(api, at, random));
  world.tenants.push(...(await Promise.all(making)));
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  // An old log is done with once a later process has flushed what it replayed, which a short life may not get to.
  const isDone = () => world.keys.some((key) => key.endsWith('/done'));
  for (let life = 1; withDone && life <= 5 && !isDone(); life++) {
    server = await new ServerProcess(options).listening();
    api = clientOf(server);
    for (const tenant of world.tenants.slice(0, 2)) await put(api, tenant, 'tail', `life${life}`, 'again');
    await new Promise((resolve) => setTimeout(resolve, 300 * life));
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    await world.remember();
  }
  const before = await world.remember();
  world.noteNamespaces();

  server = await new ServerProcess(options).listening();
  api = clientOf(server);
  const late = world.tenants.map((tenant) => put(api, tenant, 'tail', 'late', `late ${tenant.tenantId}`));
  await Promise.all(late);
  await world.remember();
  for (const tenant of world.tenants.slice(0, blobs)) {
    const known = new Set(world.keys);
    await put(api, tenant, 'blob', 'large', incompressible(random, 1_900_000), 3);
    const blob = [...(await world.remember()).keys()].find(
      (key) => key.includes('/blob/') && !known.has(key),
    );
    assert.ok(blob !== undefined, 'a large write is a blob');
    world.noteBlob(tenant, blob);
  }
  await server.kill();
  await world.remember();
  world.noteUnflushed(before);
  rmSync(join(world.folder, 'cache'), { recursive: true, force: true });
  return world;
}

async function makeTenant(api: ApiClient, at: number, random: () => number): Promise<Tenant> {
  const email = `t${at}@example.com`;
  const { key, id, tenant_id: tenantId } = await api.signup(email, `Tenant ${at}`, password);
  const tenant: Tenant = { email, key, personId: id, tenantId, namespaces: new Map() };
  await put(api, tenant, 'tail', 'note', `words of ${tenantId} in the tail`, 4);
  await put(api, tenant, 'segment', 'part', incompressible(random, 60_000), 6);
  return tenant;
}

/** Documents of one request: `name-0`, `name-1`, …, with texts that say where they belong. */
async function put(
  api: ApiClient,
  tenant: Tenant,
  namespace: string,
  name: string,
  text: string,
  count = 1,
): Promise<void> {
  const full = `${namespace}-of-${tenant.tenantId}`;
  const documents = tenant.namespaces.get(full) ?? new Map<string, string>();
  tenant.namespaces.set(full, documents);
  const docs = Array.from({ length: count }, (_, i) => ({ id: `${name}-${i}`, text: `word${i} ${text}` }));
  await api.as(tenant.key).put(full, docs);
  for (const { id, text: written } of docs) documents.set(id, written);
}

function clientOf(server: ServerProcess): ApiClient {
  const client = new ApiClient(server.url);
  clients.add(client);
  return client;
}

type Verdict = 'right' | 'named' | 'partial and named' | 'refused';

/** Everything that is asked of a tenant; the worst that was answered. Throws for a wrong answer, or one unnamed. */
async function judge(
  server: ServerProcess,
  tenant: Tenant,
  damaged: { readonly key: string; readonly kind: string; readonly damage: string } | null,
): Promise<Verdict> {
  const base = clientOf(server);
  const api = base.as(tenant.key);
  const verdicts = new Set<Verdict>();
  const where = damaged === null ? 'undamaged' : `${damaged.kind} ${damaged.damage} (${damaged.key})`;
  const ask = async (
    method: string,
    path: string,
    body: unknown,
    isRight: (answer: ApiAnswer) => boolean,
  ) => {
    const client = path === '/v1/login' ? base : api;
    const answer = await client.request(method, path, { body });
    const shown = `${where}: ${method} ${path.slice(0, 80)}: ${answer.status} ${answer.body.toString().slice(0, 200)}`;
    if (answer.status < 300) {
      const isPartial = (answer.json() as { partial?: boolean }).partial === true;
      assert.ok(isRight(answer), `a wrong answer: ${shown}`);
      if (isPartial) await named(shown);
      verdicts.add(isPartial ? 'partial and named' : 'right');
    } else if (answer.status === 401 && damaged?.damage === 'deleted' && refusedWhereGone.has(damaged.kind)) {
      verdicts.add('refused');
    } else {
      assert.equal(answer.status, 503, `no error of damage: ${shown}`);
      await named(shown);
      verdicts.add('named');
    }
  };
  const named = async (shown: string) => {
    assert.ok(damaged !== null, `an error without damage: ${shown}\n${server.errors}`);
    const line = () =>
      server.errors
        .split('\n')
        .some((each) => each.includes(damaged.key) && /at byte \d|no object/.test(each));
    await server.until(line, `names ${damaged.key} (${shown})`, 30_000);
  };
  await ask('GET', '/v1/namespaces', undefined, (answer) => {
    const { namespaces } = answer.json() as { namespaces: { name: string }[] };
    return namespaces.map(({ name }) => name).join() === [...tenant.namespaces.keys()].sort().join();
  });
  if (damaged?.kind === 'person' || damaged?.kind === 'address claim') {
    await ask('POST', '/v1/login', { email: tenant.email, password }, () => true);
  }
  for (const [name, documents] of tenant.namespaces) await judgeNamespace(name, documents, ask);
  for (const worst of ['named', 'partial and named', 'refused'] as const)
    if (verdicts.has(worst)) return worst;
  return 'right';
}

async function judgeNamespace(
  name: string,
  documents: ReadonlyMap<string, string>,
  ask: (
    method: string,
    path: string,
    body: unknown,
    isRight: (answer: ApiAnswer) => boolean,
  ) => Promise<void>,
): Promise<void> {
  for (const [id, text] of documents) {
    const isRight = (answer: ApiAnswer) => (answer.json() as { text: string }).text === text;
    await ask('GET', documentPath(name, id), undefined, isRight);
  }
  const ids = [...documents].reverse();
  const searches = [
    { q: '', expected: ids },
    { q: 'word1', expected: ids.filter(([, text]) => text.startsWith('word1 ')) },
  ];
  for (const { q, expected } of searches) {
    await ask('POST', `/v1/namespaces/${name}/search`, { q }, (answer) => {
      const { hits, partial } = answer.json() as { hits: { id: string }[]; partial: boolean };
      const whole = expected.map(([id]) => id).slice(0, partial ? hits.length : undefined);
      return hits.map(({ id }) => id).join() === whole.join();
    });
    const isRight = (answer: ApiAnswer) => (answer.json() as { count: number }).count === expected.length;
    await ask('POST', `/v1/namespaces/${name}/count`, { q }, isRight);
  }
}

/** What is left of an object: null for nothing. */
function damagedBytes(
  bytes: Buffer,
  {
    kind,
    damage,
    other,
    random,
  }: { kind: string; damage: string; other: Buffer | null; random: () => number },
): Buffer | null {
  if (damage === 'deleted') return null;
  if (damage === 'swapped') return other ?? Buffer.from('of another kind altogether');
  const apply = damages.find(({ name }) => name === damage)?.apply;
  assert.ok(apply !== undefined, damage);
  if (kind === 'segment, documents' && damage !== 'appended garbage' && damage !== 'truncated') {
    const part = Math.floor(bytes.length * 0.9);
    return Buffer.concat([apply(bytes.subarray(0, part), random), bytes.subarray(part)]);
  }
  if (kind === 'segment, indexes' && damage !== 'appended garbage' && damage !== 'truncated') {
    const part = bytes.length - 2_000;
    return Buffer.concat([bytes.subarray(0, part), apply(bytes.subarray(part), random)]);
  }
  return apply(bytes, random);
}

async function replace(store: ObjectStore, key: string, bytes: Buffer | null): Promise<void> {
  await store.delete(key);
  if (bytes !== null) await store.putIfAbsent(key, [bytes]);
}

interface Plan {
  readonly kind: string;
  readonly damage: string;
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}

describe(`damaged objects (CORRUPT_SEED=${seed})`, { concurrency: 1 }, () => {
  it(`${wanted} damaged objects give right answers or named errors, and nobody else notices`, async (t) => {
    const random = seededRandom(seed);
    const all = (classes: object) =>
      Object.keys(classes).flatMap((kind) => damageNames.map((damage): Plan => ({ kind, damage })));
    const ofServer = shuffled(all(serverClasses), random)
      .filter((plan) => !untold(plan))
      .slice(0, Math.ceil(wanted / 6));
    const ofTenants = shuffled(all(tenantClasses), random);
    while (ofTenants.length < wanted) ofTenants.push(...shuffled(all(tenantClasses), random));
    ofTenants.length = wanted - ofServer.length;
    const table = new DamageTable();
    const perStart = Math.min(24, ofTenants.length);
    const isBlob = ({ kind }: Plan) => kind === 'blob';
    const blobs = Math.min(perStart, 1 + ofTenants.filter(isBlob).length);
    const withDone = ofServer.some(({ kind }) => kind === 'done marker');
    const world = await makeWorld({ count: perStart + 2, blobs, withDone }, random);

    for (let from = 0; from < ofTenants.length; from += perStart) {
      // Only the first tenants have blobs.
      const batch = ofTenants
        .slice(from, from + perStart)
        .sort((a, b) => Number(isBlob(b)) - Number(isBlob(a)));
      await damageTenants(world, batch, table, random);
    }
    for (const plan of ofServer) await damageServer(world, plan, table, random);

    if (bucket !== null) {
      const store = await world.open(world.folder);
      for (const key of await keysOf(store)) await store.delete(key);
      await store.close();
    }
    for (const line of table.lines()) t.diagnostic(line);
  });
});

/** One damage a tenant, all at once; the last two tenants stay as they are. */
async function damageTenants(
  world: World,
  plans: readonly Plan[],
  table: DamageTable,
  random: () => number,
): Promise<void> {
  const folder = await world.again();
  const store = await world.open(folder);
  const healthy = world.tenants.slice(-2);
  const victims = plans.map((plan, i) => {
    const tenant = world.tenants[i] as Tenant;
    const find = tenantClasses[plan.kind] as (typeof tenantClasses)[string];
    return { ...plan, tenant, key: find(tenant, world) };
  });
  for (const { key, kind, damage } of victims) {
    const find = tenantClasses[kind] as (typeof tenantClasses)[string];
    // The same object of a tenant that stays as it is: the bytes are intact, and somebody else's.
    const other = kind === 'blob' ? null : world.bytesOf(find(healthy[0] as Tenant, world));
    await replace(store, key, damagedBytes(world.bytesOf(key), { kind, damage, other, random }));
  }
  await store.close();

  const server = await new ServerProcess({ folder, env: world.env }).listening();
  for (const { tenant, ...damaged } of victims) {
    table.add(damaged.kind, damaged.damage, await judge(server, tenant, damaged));
  }
  for (const tenant of healthy) assert.equal(await judge(server, tenant, null), 'right');
  await server.kill();
}

/** A server that does not start says why, naming the object, and ends for good; one that starts is right in all. */
async function damageServer(
  world: World,
  { kind, damage }: Plan,
  table: DamageTable,
  random: () => number,
): Promise<void> {
  const folder = await world.again();
  const store = await world.open(folder);
  const key = (serverClasses[kind] as (typeof serverClasses)[string])(world);
  const other = world.bytesOf(kind === 'view' ? paths.person(world.tenants[0]?.personId ?? 0) : paths.view);
  await replace(store, key, damagedBytes(world.bytesOf(key), { kind, damage, other, random }));
  await store.close();

  const server = new ServerProcess({ folder, env: world.env });
  const started = await server.listening().then(
    () => true,
    () => false,
  );
  if (!started) {
    assert.equal((await server.end()).code, 78, server.errors);
    // Of a floor that is gone it is the first slot that nobody needs any more which seems to be missing.
    const isFloorGone = kind === 'floor' && damage === 'deleted';
    const named = isFloorGone ? `at byte \\d+: it is missing, between ${key}` : `${key} at byte \\d`;
    assert.match(server.errors, new RegExp(`cannot start: damaged data in .*${named}`));
    table.add(kind, damage, 'named, not started');
    return;
  }
  for (const tenant of world.tenants.slice(0, 3)) {
    assert.equal(await judge(server, tenant, null), 'right', `${kind} ${damage}`);
  }
  table.add(kind, damage, 'right');
  await server.kill();
}
