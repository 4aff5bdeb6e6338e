/**
 * Stored records as bytes that were written once: each file of test/golden must be what the code of now writes, and must read
 * back as the value that it was made of. A file of an older version is never written again; it must go on being read.
 * Formats with more to say have their golden files in the tests of their rooms.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { decodeImport, encodeImport } from '../../actors/namespace/commit-import.ts';
import { decodeSwept, encodeSwept } from '../../actors/namespace/keep-sweeping.ts';
import { stampFromWire } from '../../actors/namespace/write-pipeline.ts';
import {
  decodeTombstonesObject,
  encodeTombstones,
  encodeTombstonesObject,
  noTombstones,
  withDeleted,
} from '../../actors/storage/tombstones.ts';
import { decodeTenantEvent, encodeTenantEvent } from '../../actors/tenant/tenant-state.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import {
  type KeyRecord,
  keyRecordSchema,
  providerKeyRecordSchema,
  type StoredAnswer,
  storedAnswerSchema,
  type TenantEvent,
  type TenantRecord,
  tenantEventSchema,
  tenantRecordSchema,
} from '../../protocol/stored-tenant.ts';
import { readKeyClaim, writeKeyClaim } from '../../src/accounts/key-claim.ts';
import { DataError } from '../../src/base/assert.ts';
import { systemClock } from '../../src/base/clock.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import { encodeRecord } from '../../src/base/record.ts';
import { decodeEmailClaim, encodeEmailClaim } from '../../src/identity/people.ts';
import { encodePerson, type Person, readPerson } from '../../src/identity/person-record.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeFloor, writeFloor } from '../../src/stored/log-floor.ts';
import { goldenBytes } from '../support/golden.ts';

const digest = '9'.repeat(64);
const tenant: TenantRecord = {
  id: 7,
  name: 'Ada',
  plan: 'pro',
  status: 'past_due',
  ownerId: 9,
  ownerVerified: true,
  createdAt: '2026-01-02T03:04:05.678Z',
};
const limits = { namespaces: ['logs-*', 'notes'], ratePerSecond: 1.5, capQueries: 2, capWrites: null };
const key: KeyRecord = {
  id: 2 ** 48 - 1,
  name: 'first',
  prefix: 'tb_AbCdEfGh',
  digest,
  scope: 'write',
  ...limits,
  createdAt: '2026-01-02T03:04:05.678Z',
  createdBy: 'ada@example.com',
  personId: 9,
};
const envelope = {
  version: 2,
  keyName: '4'.repeat(16),
  wrappedKey: Uint8Array.of(1, 2),
  sealed: Uint8Array.of(3, 4),
} as const;
const providerKey = {
  provider: 'openai',
  hint: 'sk-…abcd',
  createdAt: '2026-01-02T03:04:05.678Z',
  updatedAt: '2026-01-03T03:04:05.678Z',
  envelope,
};
const answer: StoredAnswer = {
  keyDigest: 'a'.repeat(64),
  requestDigest: 'b'.repeat(64),
  plannedId: 8,
  at: 1_700_000_000_000,
  status: 201,
  envelope,
};
const name = { name: 'logs', namespaceId: 'ab'.repeat(16) };
const taken = { writes: 1, docsWritten: 2, bytesWritten: 3 };

/** One event of each kind: a kind without one does not compile. */
const events: { readonly [Kind in TenantEvent['kind']]: Extract<TenantEvent, { kind: Kind }> } = {
  'tenant-created': { kind: 'tenant-created', tenant, firstKey: key },
  'tenant-status': { kind: 'tenant-status', status: 'deleting' },
  'tenant-billing': {
    kind: 'tenant-billing',
    plan: 'pro',
    status: 'past_due',
    billing: {
      version: 3,
      status: 'past_due',
      cancelAtPeriodEnd: true,
      anchorAt: 1_767_312_000_000,
      endedAt: null,
    },
  },
  'owner-verified': { kind: 'owner-verified' },
  'key-created': { kind: 'key-created', key, answer },
  'key-limits': { kind: 'key-limits', keyId: 8, limits },
  'key-revoked': { kind: 'key-revoked', keyId: 8 },
  'keys-ended': { kind: 'keys-ended', madeBy: null },
  'connections-ended': { kind: 'connections-ended', ids: [11, 12] },
  'answer-stored': { kind: 'answer-stored', answer: { ...answer, status: 0, envelope: null } },
  'answer-forgotten': { kind: 'answer-forgotten', keyDigest: answer.keyDigest },
  'namespace-created': {
    kind: 'namespace-created',
    ...name,
    createdAt: '2026-01-02T03:04:05.678Z',
    vector: { dims: 3, metric: 'euclidean' },
    embed: { provider: 'openai', model: 'text-embedding-3-small', dims: 3 },
    answer: null,
  },
  'namespace-embedding': { kind: 'namespace-embedding', ...name, embed: null },
  'provider-key-stored': { kind: 'provider-key-stored', record: providerKey },
  'provider-key-forgotten': { kind: 'provider-key-forgotten', provider: 'openai' },
  'namespace-deleted': { kind: 'namespace-deleted', ...name, taken, day: '2026-01-02' },
  'namespace-held': { kind: 'namespace-held', namespaceId: name.namespaceId, bytes: 5 },
  'namespace-reported': {
    kind: 'namespace-reported',
    name: 'logs',
    report: {
      namespaceId: name.namespaceId,
      ...taken,
      storedBytes: 4,
      days: [{ day: '2026-01-02', writes: 1, docs: 2, bytes: 3 }],
      flushed: true,
    },
  },
  'usage-noted': {
    kind: 'usage-noted',
    notes: [
      {
        day: '2026-01-02',
        counters: { queries: 2, cpuMs: 1.5 },
        keys: [{ keyId: 8, queries: 2, writes: 1, lastUsedAt: 1_700_000_000_000 }],
      },
    ],
  },
};

const person: Person = {
  id: 9 as PersonId,
  email: 'Ada@example.com',
  name: 'Ada',
  passwordHash: '$argon2id$',
  generation: 1,
  verified: true,
  links: [{ kind: 'reset', digest: 'a'.repeat(64), madeAt: 6 }],
  resentAt: null,
  verificationMailsAt: [5, 7],
  keysEnding: true,
  tenants: [{ tenantId: 7 as TenantId, role: 'owner' }],
  defaultTenantId: 7 as TenantId,
  tenantsMade: { month: '2023-11', count: 2 },
  createdAt: 5,
  nonce: 'f'.repeat(32),
};

/** The bytes that one write leaves under a key. */
async function written(key: string, write: (store: MemoryObjectStore) => Promise<void>): Promise<Uint8Array> {
  const store = new MemoryObjectStore();
  await write(store);
  return (await store.get(key))?.bytes ?? new Uint8Array();
}

async function storeWith(key: string, bytes: Uint8Array): Promise<MemoryObjectStore> {
  const store = new MemoryObjectStore();
  await store.putIfAbsent(key, [bytes]);
  return store;
}

describe('golden bytes of stored records', () => {
  it('each kind of a tenant’s events', () => {
    const made = packMessage(Object.values(events).map(encodeTenantEvent));

    const golden = goldenBytes('tenant-events-v9.bin', made);

    assert.deepEqual(Buffer.from(made), golden);
    // Those of version 8 are the same without what others hold, and those of version 7 without the subscription's too.
    for (const [version, later] of [
      [8, ['namespace-held']],
      [7, ['namespace-held', 'tenant-billing']],
    ] as const) {
      const bytes = new Uint8Array(readFileSync(`test/golden/tenant-events-v${version}.bin`));
      const others = Object.values(events).filter(({ kind }) => !later.some((each) => each === kind));
      assert.deepEqual(
        (unpackMessage(bytes) as Uint8Array[]).map((event) => decodeTenantEvent(event, 'golden')),
        others,
      );
    }
    const read = (unpackMessage(new Uint8Array(golden)) as Uint8Array[]).map((bytes) =>
      decodeTenantEvent(bytes, 'golden'),
    );
    assert.deepEqual(read, Object.values(events));
  });

  it('a person', async () => {
    const made = encodePerson(person);

    const golden = goldenBytes('person-v5.bin', made);

    assert.deepEqual(Buffer.from(made), golden);
    assert.deepEqual(await readPerson(await storeWith(paths.person(9), golden), 9), person);
  });

  it('a person of version 4, who had no verification mails and no keys to be ended', async () => {
    const { verificationMailsAt, keysEnding, ...older } = person;
    const made = encodeRecord({ magic: 'TBPN', versions: [4] }, older, paths.person(9));

    const golden = goldenBytes('person-v4.bin', made);

    const read = await readPerson(await storeWith(paths.person(9), golden), 9);
    assert.deepEqual(read, { ...older, verificationMailsAt: [], keysEnding: false });
    assert.deepEqual([verificationMailsAt.length, keysEnding], [2, true]);
  });

  it('the claims of a key and of an address', async () => {
    const claim = { tenantId: 7 as TenantId, keyId: 8 as KeyId };
    const path = paths.keyClaim(digest);
    const madeOfKey = await written(path, (store) => writeKeyClaim(store, systemClock, digest, claim));
    const madeOfAddress = encodeEmailClaim(person);

    const goldenOfKey = goldenBytes('key-claim-v2.bin', madeOfKey);
    const goldenOfAddress = goldenBytes('email-claim-v2.bin', madeOfAddress);

    assert.deepEqual(Buffer.from(madeOfKey), goldenOfKey);
    assert.deepEqual(await readKeyClaim(await storeWith(path, goldenOfKey), digest), claim);
    assert.deepEqual(Buffer.from(madeOfAddress), goldenOfAddress);
    const { personId, nonce } = decodeEmailClaim(goldenOfAddress, person.email);
    assert.deepEqual([personId, nonce], [9, person.nonce]);
  });

  it('the floor of a log, and how far the sweep has come', async () => {
    const logId = 'k'.repeat(30);
    const madeOfFloor = await written(paths.logFloor(logId), (store) =>
      writeFloor(store, logId, { floor: 42, placement: 7 }),
    );
    const swept = { beganAtMs: 1_700_000_000_000, untilMs: 1_699_000_000_000 };
    const madeOfSwept = encodeSwept(swept);

    const goldenOfFloor = goldenBytes('log-floor-v3.bin', madeOfFloor);
    const goldenOfSwept = goldenBytes('swept-v1.bin', madeOfSwept);

    assert.deepEqual(Buffer.from(madeOfFloor), goldenOfFloor);
    assert.deepEqual(decodeFloor(goldenOfFloor, logId), { floor: 42, placement: 7 });
    const second = readFileSync('test/golden/log-floor-v2.bin');
    assert.deepEqual(decodeFloor(second, logId), { floor: 42, placement: 0 });
    assert.deepEqual(Buffer.from(madeOfSwept), goldenOfSwept);
    assert.deepEqual(decodeSwept(goldenOfSwept), swept);
  });

  it('tombstones as an object of their own, some listed and some as a bitmap', () => {
    const many = Array.from({ length: 5_000 }, (_, i) => 65_536 + i * 3);
    const tombstones = withDeleted(noTombstones, [3, 7, ...many]);
    const place = paths.namespaceTombstones(name.namespaceId, 'b'.repeat(32));
    const made = encodeTombstonesObject(encodeTombstones(tombstones), place);

    const golden = goldenBytes('deletes-v1.bin', made);

    assert.deepEqual(Buffer.from(made), golden);
    const read = decodeTombstonesObject(golden, place);
    assert.equal(read.count, 5_002);
    assert.deepEqual(encodeTombstones(read), encodeTombstones(tombstones));
  });
});

describe('the record of an import', () => {
  const segment = {
    id: 'c'.repeat(32),
    size: 1_000,
    toc: {
      formatVersion: 9,
      rowCount: 3,
      minSequence: 11,
      maxSequence: 13,
      docsRawBytes: 900,
      sections: [
        { name: 'docs', offset: 0, length: 800, entryCount: 1, pageBytes: 0, root: null },
        { name: 'text', offset: 800, length: 90, entryCount: 3, pageBytes: 0, root: Uint8Array.of(1, 2) },
      ],
    },
    bytes: 700,
    temporalKeys: ['day'],
    textKeys: ['station'],
    hasEqualIds: false,
  };

  it('reads back from golden bytes', () => {
    const made = encodeImport(segment);

    const golden = goldenBytes('import-record-v1.bin', made);

    assert.deepEqual(Buffer.from(made), golden);
    assert.deepEqual(decodeImport(new Uint8Array(golden)), segment);
  });

  it('is damage where it is anything else, and so is a stamp', () => {
    assert.throws(
      () => decodeImport(packMessage({ ...segment, size: 'large' })),
      /the record of an import .*size/,
    );
    assert.deepEqual(stampFromWire(4, [10, 1_000]), { version: 4, baseSequence: 10, writtenAt: 1_000 });
    assert.deepEqual(stampFromWire(4, [10, 1_000, 'import']).baseSequence, 10);
    assert.throws(() => stampFromWire(4, [10]), DataError);
    assert.throws(() => stampFromWire(4, null), DataError);
  });
});

describe('the check of stored values', () => {
  const shapes = [
    { schema: tenantRecordSchema, value: tenant },
    { schema: keyRecordSchema, value: key },
    { schema: providerKeyRecordSchema, value: providerKey },
    { schema: storedAnswerSchema, value: answer },
    ...Object.values(events).map((value) => ({ schema: tenantEventSchema, value })),
  ];

  it('answers the value itself', () => {
    for (const { schema, value } of shapes) assert.equal(storedCheck(schema)(value), value);
  });

  it('refuses a field that is missing, one that is not known, and one of another type, by its name', () => {
    for (const { schema, value } of shapes) {
      const check = storedCheck(schema);
      for (const field of Object.keys(value)) {
        const { [field]: _, ...rest } = value as Record<string, unknown>;
        const refusal = { name: 'StoredValueError', message: new RegExp(`^${field}: `) };
        assert.throws(() => check(rest), refusal, `without ${field}`);
        assert.throws(() => check({ ...rest, [field]: Symbol('other') }), refusal, `another ${field}`);
      }
      assert.throws(() => check({ ...value, newer: 1 }), /newer/);
    }
  });

  it('makes damage of an event that is none, and names the record', () => {
    const bytes = packMessage({ kind: 'tenant-status', status: 'gone' });

    assert.throws(() => decodeTenantEvent(bytes, 'log/a/1, record 0'), {
      name: 'DataError',
      message: /damaged data in log\/a\/1, record 0 at byte 0: not what its format has: status/,
    });
    assert.throws(() => decodeTenantEvent(Uint8Array.of(0xc1), 'place'), DataError);
  });
});
