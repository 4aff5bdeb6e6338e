/**
 * The bytes that today's code makes of a fixed value, for each format of version.ts. When a type gains a field the
 * sample no longer compiles, and with the field in it the bytes are others: either way somebody looks at version.ts.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSwept } from '../../actors/namespace/keep-sweeping.ts';
import { encodeCursor } from '../../actors/search/cursor.ts';
import { encodeManifest, type Manifest } from '../../actors/storage/manifest.ts';
import {
  encodeTombstones,
  encodeTombstonesObject,
  noTombstones,
  withDeleted,
} from '../../actors/storage/tombstones.ts';
import { emptyTenant, encodeTenantEvent, tenantManifestCodec } from '../../actors/tenant/tenant-state.ts';
import { applyNote } from '../../actors/tenant/tenant-usage.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import { buildOpenApi } from '../../protocol/openapi.ts';
import type { KeyRecord, TenantRecord } from '../../protocol/stored-tenant.ts';
import { type FormatName, formats, wireHistory, wireVersion } from '../../protocol/version.ts';
import { writeKeyClaim } from '../../src/accounts/key-claim.ts';
import { BackupSite } from '../../src/backup/backup-site.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { type BillingRecord, encodeBilling } from '../../src/billing/billing-record.ts';
import { encodeCustomerClaim } from '../../src/billing/customer-claim.ts';
import { joinCluster } from '../../src/cluster/join.ts';
import { encodeView, readView } from '../../src/cluster/view.ts';
import { encodeEmailClaim } from '../../src/identity/people.ts';
import { encodePerson } from '../../src/identity/person-record.ts';
import { encodeClient, type OauthClient } from '../../src/oauth/client-record.ts';
import { type Connection, encodeConnections } from '../../src/oauth/connection-record.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { writeFloor } from '../../src/stored/log-floor.ts';
import { encodeLogObject } from '../../src/stored/log-object.ts';
import { alone } from './key-rings.ts';
import type { FormatNow, FormatRecord } from './tidy-rules.ts';

const hex = (digit: string, length: number) => digit.repeat(length);
const logId = hex('k', 30);
const namespaceId = hex('a', 32);

const tenant: TenantRecord = {
  id: 7,
  name: 'Ada',
  plan: 'free',
  status: 'active',
  ownerId: 9,
  ownerVerified: true,
  createdAt: '2026-01-02',
};
const key: KeyRecord = {
  id: 8,
  name: 'first',
  prefix: 'tb_AbCdEfGh',
  digest: hex('9', 64),
  scope: 'admin',
  namespaces: ['logs-*'],
  ratePerSecond: 1,
  capQueries: 2,
  capWrites: 3,
  createdAt: '2026-01-02',
  createdBy: 'ada@example.com',
  personId: 9,
};

const manifest: Manifest = {
  version: 3,
  nonce: hex('1', 32),
  state: 'live',
  tenantId: 7,
  name: 'logs',
  namespaceId,
  createdAt: '2026-01-02T03:04:05Z',
  temporalKeys: ['day'],
  owner: { logId, view: 2 },
  applied: new Map([[logId, { slot: 5, index: 6 }]]),
  segments: [
    {
      id: hex('b', 32),
      size: 1_000,
      toc: { formatVersion: 1, rowCount: 9, minSequence: 1, maxSequence: 9, docsRawBytes: 900, sections: [] },
      tombstones: withDeleted(noTombstones, [3]),
      tombstonesObject: null,
      deletedAtMs: 1_700_000_000_000,
      graphs: [
        {
          id: `${hex('d', 32)}-0`,
          size: 5_000,
          checksum: hex('e', 16),
          firstRow: 0,
          endRow: 9,
          count: 8,
          leftOut: 1,
          precision: 'f16',
          scale: 1,
          expansion: 64,
        },
      ],
    },
  ],
  tail: { sequences: [10], writtenAt: [1_000_000], entries: Uint8Array.of(1, 2, 3) },
  retired: [{ kind: 'segment', id: hex('c', 32), atMs: 4 }],
  counters: { version: 4, lastSequence: 10, lastWrittenAt: 1_000_000, docsWritten: 11, bytesWritten: 1_200 },
};

/** Some listed, some as a bitmap. */
const manySet = withDeleted(noTombstones, [3, 7, ...Array.from({ length: 5_000 }, (_, i) => 65_536 + i * 3)]);

function logBytes(): Uint8Array {
  const header = {
    logId,
    slot: 5,
    kind: 'group',
    placement: 2,
    previousChecksum: 77n,
    batchId: hex('d', 32),
  } as const;
  const blob = { id: hex('e', 32), length: 12, checksum: 99n };
  const head = { tenantId: 7, namespace: 'logs', namespaceId, version: 4, blob: null, detail: [1, 2] };
  return encodeLogObject(header, [
    { head, payload: Uint8Array.of(1, 2, 3) },
    { head: { ...head, version: 5, blob }, payload: new Uint8Array() },
  ]).bytes;
}

/** A tenant's events travel in the log, so they are part of its format. */
function tenantBytes(): Uint8Array {
  const use = { keyId: key.id, queries: 2, writes: 1, lastUsedAt: 1_700_000_000_000 };
  const note = { day: '2026-01-02', counters: { queries: 2, cpuMs: 1.5 }, keys: [use] };
  const state = { ...emptyTenant(), tenant, version: 1 };
  state.keys.set(key.id, key);
  state.names.set('logs', {
    namespaceId,
    createdAt: '2026-01-02',
    vector: null,
    embed: null,
    writes: 4,
    docsWritten: 1,
    bytesWritten: 2,
    storedBytes: 3,
  });
  applyNote(state.usage, note);
  const envelope = {
    version: 2,
    keyName: hex('4', 16),
    wrappedKey: Uint8Array.of(1, 2),
    sealed: Uint8Array.of(3, 4),
  } as const;
  const sealed = { provider: 'openai', hint: 'sk-…abcd', createdAt: '2026', updatedAt: '2027', envelope };
  state.providerKeys.set(sealed.provider, sealed);
  const answer = {
    keyDigest: hex('a', 64),
    requestDigest: hex('b', 64),
    plannedId: 0,
    at: 1_700_000_000_000,
    status: 201,
    envelope,
  };
  state.answers.set(answer.keyDigest, answer);
  const { namespaces, ratePerSecond, capQueries, capWrites } = key;
  const keyLimits = { namespaces, ratePerSecond, capQueries, capWrites };
  const { owner, applied, nonce } = manifest;
  return Buffer.concat([
    tenantManifestCodec.encode({ version: 1, nonce, owner, applied, state }, paths.tenantManifest(7)),
    encodeTenantEvent({ kind: 'tenant-created', tenant, firstKey: key }),
    encodeTenantEvent({ kind: 'tenant-status', status: 'suspended' }),
    encodeTenantEvent({ kind: 'key-created', key, answer }),
    encodeTenantEvent({ kind: 'key-limits', keyId: 8, limits: keyLimits }),
    encodeTenantEvent({ kind: 'answer-forgotten', keyDigest: answer.keyDigest }),
    encodeTenantEvent({ kind: 'answer-stored', answer: { ...answer, plannedId: 5, envelope: null } }),
    encodeTenantEvent({ kind: 'key-revoked', keyId: 8 }),
    encodeTenantEvent({
      kind: 'namespace-created',
      name: 'logs',
      namespaceId,
      createdAt: '2026-01-02',
      vector: { dims: 3, metric: 'euclidean' },
      embed: { provider: 'openai', model: 'text-embedding-3-small', dims: 3 },
      answer: null,
    }),
    encodeTenantEvent({ kind: 'namespace-embedding', name: 'logs', namespaceId, embed: null }),
    encodeTenantEvent({ kind: 'provider-key-stored', record: sealed }),
    encodeTenantEvent({ kind: 'provider-key-forgotten', provider: 'openai' }),
    encodeTenantEvent({
      kind: 'namespace-deleted',
      name: 'logs',
      namespaceId,
      taken: { writes: 1, docsWritten: 2, bytesWritten: 3 },
      day: '2026-01-02',
    }),
    encodeTenantEvent({
      kind: 'namespace-reported',
      name: 'logs',
      report: {
        namespaceId,
        writes: 1,
        docsWritten: 2,
        bytesWritten: 3,
        storedBytes: 4,
        days: [{ day: '2026-01-02', writes: 1, docs: 2, bytes: 3 }],
        flushed: true,
      },
    }),
    encodeTenantEvent({ kind: 'owner-verified' }),
    encodeTenantEvent({
      kind: 'tenant-billing',
      plan: 'pro',
      status: 'active',
      billing: {
        version: 1,
        status: 'active',
        cancelAtPeriodEnd: false,
        anchorAt: 86_400_000,
        endedAt: null,
      },
    }),
    encodeTenantEvent({ kind: 'usage-noted', notes: [note] }),
  ]);
}

function personBytes(): Uint8Array {
  return encodePerson({
    id: 9 as PersonId,
    email: 'ada@example.com',
    name: 'Ada',
    passwordHash: '$argon2id$',
    generation: 1,
    verified: true,
    links: [{ kind: 'reset', digest: hex('a', 64), madeAt: 6 }],
    resentAt: 7,
    verificationMailsAt: [5, 7],
    keysEnding: false,
    tenants: [{ tenantId: 7 as TenantId, role: 'owner' }],
    defaultTenantId: 7 as TenantId,
    tenantsMade: { month: '2023-11', count: 0 },
    createdAt: 5,
    nonce: hex('f', 32),
  });
}

/** Two processes of one server after each other: the view of the second names the first one's sealed log. */
async function viewBytes(): Promise<Uint8Array> {
  const store = new MemoryObjectStore();
  const components = {
    store,
    clock: { ...systemClock, now: () => 1_700_000_000_000 },
    random: { bytes: (length: number) => new Uint8Array(length).fill(7) },
    log: { seal: async () => 12, doneAmong: async () => [] },
  };
  await joinCluster(components, 'server-1', '127.0.0.1:8080');
  await joinCluster(components, 'server-1', '127.0.0.1:8080');
  const view = await readView(store);
  // What this build speaks is no part of the format.
  const members = view.members.map((member) => ({ ...member, protocol: { least: 1, greatest: 1 } }));
  return encodeView({ ...view, members });
}

const oauthClient: OauthClient = {
  id: `client-${hex('c', 32)}`,
  name: 'Client',
  redirectUris: ['http://127.0.0.1/callback'],
  method: 'client_secret_post',
  secretDigest: hex('d', 64),
  createdAt: 1_700_000_000_000,
};
const connection: Connection = {
  id: 11,
  client: { id: oauthClient.id, name: 'Client', method: 'client_secret_post', secretDigest: hex('d', 64) },
  personId: 9 as PersonId,
  generation: 1,
  scope: 'read',
  namespaces: ['logs-*'],
  createdAt: 1_700_000_000_000,
  code: {
    digest: hex('3', 64),
    redirectUri: 'http://127.0.0.1:1234/callback',
    challenge: hex('4', 43),
    expiresAt: 1_700_000_060_000,
  },
  seed: hex('5', 32),
  refresh: {
    number: 3,
    digest: hex('6', 64),
    previousDigest: hex('7', 64),
    expiresAt: 1_707_776_000_000,
    replaced: [{ number: 1, at: 1_700_000_000_000 }],
  },
  access: [{ digest: hex('8', 64), scope: 'read', expiresAt: 1_700_003_600_000 }],
};

/** What one write leaves under a key. */
async function storedBytes(
  key: string,
  write: (store: MemoryObjectStore) => Promise<void>,
): Promise<Uint8Array> {
  const store = new MemoryObjectStore();
  await write(store);
  return (await store.get(key))?.bytes ?? new Uint8Array();
}

const billingRecord: BillingRecord = {
  customerId: 'cus_1',
  attempt: 1,
  checkout: { sessionId: 'cs_1', anchorAt: 86_400_000, expiresAt: 80_000_000 },
  subscription: {
    id: 'sub_1',
    state: 'past_due',
    anchorAt: 86_400_000,
    cancelAtPeriodEnd: false,
    endedAt: null,
    unpaidSince: 90_000_000,
  },
  change: {
    plan: 'pro',
    status: 'past_due',
    billing: {
      version: 2,
      status: 'past_due',
      cancelAtPeriodEnd: false,
      anchorAt: 86_400_000,
      endedAt: null,
    },
  },
  fetchedAt: 100_000_000,
  events: ['evt_1'],
  told: {
    periodAt: 86_400_000,
    planned: { storage: 1, writes: 2, queries: 3, embedding: 4, reads: 5 },
    until: 93_600_000,
    hours: [{ hourAt: 90_000_000, eventsAt: 93_599_000, units: { queries: 3 }, firstSentAt: null }],
  },
  nonce: hex('3', 32),
};

function cursorBytes(): Uint8Array {
  const scope = { tenantId: 7, namespaceId, queryDigest: hex('0', 64) };
  return Buffer.from(encodeCursor(alone(new Uint8Array(32).fill(1)), scope, 42));
}

/** The index of a backup of one object. */
async function backupBytes(): Promise<Uint8Array> {
  const store = new MemoryObjectStore();
  const random = { ...systemRandom, bytes: (length: number) => new Uint8Array(length) };
  const site = new BackupSite(store, '', { clock: systemClock, random });
  const bytes = await site.putContent(Buffer.from('a view'));
  const entry = { key: paths.view, size: 6, ...bytes, etag: '"1"' };
  const head = { format: 'tidebase backup', version: 1, moment: '2026-11-23T10:00:00.000Z' } as const;
  const { name } = await site.putIndex(head, [entry]);
  return (await store.get(`backups/${name}`))?.bytes ?? new Uint8Array();
}

/** Every format of version.ts, and the wire, as they are now. */
export async function formatsNow(root: string): Promise<FormatRecord> {
  const samples: Readonly<Record<FormatName, Uint8Array>> = {
    log: logBytes(),
    manifest: encodeManifest(manifest),
    deletes: encodeTombstonesObject(
      encodeTombstones(manySet),
      paths.namespaceTombstones(namespaceId, hex('b', 32)),
    ),
    // What these bytes must be is tested with the segments themselves.
    segment: readFileSync(join(root, `test/golden/segment-v${formats.segment.version}.bin`)),
    columns: readFileSync(join(root, `test/golden/columns-v${formats.columns.version}.bin`)),
    trigramIndex: readFileSync(join(root, `test/golden/trigram-index-v${formats.trigramIndex.version}.bin`)),
    clusterView: await viewBytes(),
    person: personBytes(),
    tenant: tenantBytes(),
    envelope: readFileSync(join(root, `test/golden/envelope-v${formats.envelope.version}.bin`)),
    logFloor: await storedBytes(paths.logFloor(logId), (store) =>
      writeFloor(store, logId, { floor: 42, placement: 7 }),
    ),
    swept: encodeSwept({ beganAtMs: 1_700_000_000_000, untilMs: 1_699_000_000_000 }),
    keyClaim: await storedBytes(paths.keyClaim(hex('9', 64)), (store) =>
      writeKeyClaim(store, systemClock, hex('9', 64), { tenantId: 7 as TenantId, keyId: 8 as KeyId }),
    ),
    emailClaim: encodeEmailClaim({ id: 9 as PersonId, nonce: hex('f', 32), email: 'ada@example.com' }),
    backup: await backupBytes(),
    cursor: cursorBytes(),
    connections: encodeConnections(7, { connections: [connection], nonce: hex('2', 32) }),
    billing: encodeBilling(7, billingRecord),
    customerClaim: encodeCustomerClaim('cus_1', 7),
    oauthClient: encodeClient(oauthClient, paths.usedClient(oauthClient.id)),
  };
  const wire = JSON.stringify(buildOpenApi('https://tidebase.example'));
  const stored = Object.entries(formats).map(([name, { version, history }]): [string, FormatNow] => [
    name,
    { version: String(version), history, digest: digestOf(samples[name as FormatName]) },
  ]);
  return Object.fromEntries([
    ['wire', { version: wireVersion, history: wireHistory, digest: digestOf(Buffer.from(wire)) }],
    ...stored,
  ]);
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
