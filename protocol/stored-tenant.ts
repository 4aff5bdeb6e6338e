/**
 * What is stored of a tenant: in its manifest, and in the events of the log that change it. Both are the format `tenant` of
 * version.ts, so a field that is added, renamed or left out needs a new version there; FORMATS.md has the whole layout.
 * Each shape is a schema, checked when it is decoded (stored-schema.ts), and the type that is inferred from it.
 *
 * Numbers are MessagePack's, times are milliseconds since 1970, dates as text are ISO 8601 in UTC. Fields that are not known
 * are refused: a server that would drop them loses what a newer one wrote.
 */
import { embedProviders, vectorMetrics } from './namespace.ts';
import { storedBytes } from './stored-schema.ts';
import { z } from './validate.ts';

const count = z.number();
const id = z.int().min(0);
const digest = z.string();

/** A secret under a data key, and the data key under the key-encryption key; src/accounts/envelope.ts seals and opens it. */
export const envelopeSchema = z.strictObject({
  /** Version 1 does not name its key: it is tried with each. */
  version: z.union([z.literal(1), z.literal(2)]),
  /** The key-encryption key that wraps the data key, by the first 16 hexadecimal digits of its digest. Absent in version 1. */
  keyName: z.string().optional(),
  /** The data key: nonce of 12 bytes, ciphertext of 32, tag of 16. */
  wrappedKey: storedBytes,
  /** The secret under the data key: nonce of 12 bytes, ciphertext, tag of 16. */
  sealed: storedBytes,
});
export type Envelope = Readonly<z.output<typeof envelopeSchema>>;

export const billingStatuses = ['none', 'active', 'past_due', 'canceled'] as const;

/** What a tenant knows of its subscription, as its billing record (src/billing/billing-record.ts) told it last. */
export const billingStandingSchema = z.strictObject({
  /** Counts the changes of the billing record: what is older than this is not taken any more. */
  version: z.int().min(1),
  status: z.enum(billingStatuses),
  /** Whether it ends with its period. */
  cancelAtPeriodEnd: z.boolean(),
  /** The midnight, UTC, that its months are counted from, and before which nothing is billed; null without a subscription. */
  anchorAt: count.nullable(),
  /** When the last subscription ended: what was used before does not count against the free plan. Null before one has. */
  endedAt: count.nullable(),
});
export type BillingStanding = Readonly<z.output<typeof billingStandingSchema>>;

/** The tenant itself. A deleted one keeps its number and the status `deleting`, and every other field is empty. */
export const tenantRecordSchema = z.strictObject({
  id,
  name: z.string(),
  plan: z.enum(['free', 'pro']),
  status: z.enum(['active', 'past_due', 'suspended', 'deleting']),
  /** The id of the person who owns it. */
  ownerId: id,
  /** Whether the owner's address is verified: an unverified free tenant has a small part of its plan. */
  ownerVerified: z.boolean(),
  createdAt: z.string(),
  /** Absent until somebody has subscribed. */
  billing: billingStandingSchema.optional(),
});
export type TenantRecord = Readonly<z.output<typeof tenantRecordSchema>>;

const keyLimits = {
  /** Names of namespaces and `prefix*` patterns that the key is limited to; empty: no limit. */
  namespaces: z.array(z.string()).readonly(),
  /** Requests a second; null: as the plan has it. */
  ratePerSecond: count.nullable(),
  /** Queries, and write requests, of one billing period; null: no cap. */
  capQueries: count.nullable(),
  capWrites: count.nullable(),
};

/** What `PUT /v1/keys/{id}/limits` replaces of a key. */
export const keyLimitsRecordSchema = z.strictObject(keyLimits);
export type KeyLimitsRecord = Readonly<z.output<typeof keyLimitsRecordSchema>>;

/** An API key: everything but the key, of which nothing more than its digest is stored. */
export const keyRecordSchema = z.strictObject({
  id,
  name: z.string(),
  /** The beginning of the key, by which a person recognises it. */
  prefix: z.string(),
  /** SHA-256 of the key in hexadecimal: under it lies the claim that leads here, and that is deleted with the key. */
  digest,
  scope: z.enum(['read', 'write', 'admin']),
  ...keyLimits,
  createdAt: z.string(),
  /** The address of the person who made it. */
  createdBy: z.string(),
  /** The id of the person who made it; 0 where none is known. */
  personId: id,
});
export type KeyRecord = Readonly<z.output<typeof keyRecordSchema>>;

/** A tenant's key of an embedding provider. */
export const providerKeyRecordSchema = z.strictObject({
  provider: z.string(),
  /** The ends of the key, by which a person recognises it. */
  hint: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
  /** As src/accounts/provider-key-envelope.ts seals it. */
  envelope: envelopeSchema,
});
export type ProviderKeyRecord = Readonly<z.output<typeof providerKeyRecordSchema>>;

/** A request with an `Idempotency-Key`, as the tenant that the caller acts for knows it. */
const begunRequest = {
  /** SHA-256 of the `Idempotency-Key`, hexadecimal. */
  keyDigest: digest,
  /** SHA-256 of operation and body, hexadecimal: another request under the same key is refused. */
  requestDigest: digest,
  /** The id of what the request makes, chosen before it is made, so that a repetition makes the same; 0 where it makes nothing. */
  plannedId: id,
};

/** What a tenant remembers of a request with an `Idempotency-Key`. */
export const storedAnswerSchema = z.strictObject({
  ...begunRequest,
  at: z.number(),
  /** The HTTP status of the answer; 0 while the request is not known to have ended. */
  status: z.int(),
  /** The answer's body, as src/accounts/answer-envelope.ts seals it; null while the request is not known to have ended. */
  envelope: envelopeSchema.nullable(),
});
export type StoredAnswer = Readonly<z.output<typeof storedAnswerSchema>>;

/** The length and metric of a namespace's vectors; null for a namespace of text alone. */
const vectorConfig = z.strictObject({ dims: z.int().min(1), metric: z.enum(vectorMetrics) }).nullable();
/** What embeds the texts of a namespace; null where nothing does. */
const embedConfig = z
  .strictObject({
    provider: z.enum(embedProviders),
    model: z.string().optional(),
    dims: z.int().min(1).optional(),
  })
  .nullable();

/** What a namespace has taken since it was made, as its actor reports it. */
const taken = {
  /** Write requests. */
  writes: count,
  /** Documents and deletes. */
  docsWritten: count,
  bytesWritten: count,
};

/** What makes a name a link: reads of it are reads of the source. */
export const linkRecordSchema = z.strictObject({
  /** The source's name and id: a namespace that is made by the name later is no source of the link. */
  source: z.string(),
  sourceId: z.string(),
  /** The source's version when the link was made. A link that does not follow stays there. */
  version: z.int().min(0),
  follows: z.boolean(),
});
export type LinkRecord = Readonly<z.output<typeof linkRecordSchema>>;

/** The namespace and version that another one began as. That namespace may be gone. */
export const branchRecordSchema = z.strictObject({
  source: z.string(),
  sourceId: z.string(),
  version: z.int().min(0),
});
export type BranchRecord = Readonly<z.output<typeof branchRecordSchema>>;

/** A namespace in the tenant's list: what is fixed of it, and the ledger of what its actor reported last. */
export const nameEntrySchema = z.strictObject({
  namespaceId: z.string(),
  createdAt: z.string(),
  vector: vectorConfig,
  embed: embedConfig,
  ...taken,
  /** Bytes that its objects take in the store. */
  storedBytes: count,
  /** Present where the name is a link. One that follows its source has no actor and no objects. */
  linked: linkRecordSchema.optional(),
  branched: branchRecordSchema.optional(),
});
export type NameEntry = Readonly<z.output<typeof nameEntrySchema>>;

/** What is metered of a tenant. */
export const usageCountersSchema = z.strictObject({
  queries: count,
  /** Write requests; an import is one. */
  writes: count,
  writeBytes: count,
  /** Documents and deletes. */
  docsWritten: count,
  /** GETs of the object store that queries made, and the bytes that these read. */
  storeGets: count,
  storeBytes: count,
  /** Bytes of answers to queries. */
  outBytes: count,
  mcpQueries: count,
  mcpWrites: count,
  /** Tokens that embedding models took, the hosted one's among them. */
  embedTokens: count,
  /** Tokens that the hosted model took: these alone are limited and billed. */
  hostedTokens: count,
  cpuMs: count,
  /** Stored gigabytes times hours. */
  gbHours: count,
});
export type UsageCounters = Readonly<z.output<typeof usageCountersSchema>>;

/** What was metered of a tenant on one UTC day. */
export const dayUsageSchema = z.strictObject({
  ...usageCountersSchema.shape,
  /** Bytes stored at the end of the day; of the running day: now. */
  storedBytes: count,
});
export type DayUsage = Readonly<z.output<typeof dayUsageSchema>>;

/** What a key has used in one billing period. */
export const keyUseSchema = z.strictObject({
  /** The period, `YYYY-MM`: the counts are of it. */
  month: z.string(),
  queries: count,
  writes: count,
  lastUsedAt: z.number(),
});
export type KeyUse = Readonly<z.output<typeof keyUseSchema>>;

/** What a front has counted of a key and not told yet. */
export const keyUseNoteSchema = z.strictObject({
  keyId: id,
  queries: count,
  writes: count,
  lastUsedAt: z.number(),
});
export type KeyUseNote = Readonly<z.output<typeof keyUseNoteSchema>>;

/** What a front has counted of a tenant on one UTC day and not told yet. */
export const usageNoteSchema = z.strictObject({
  day: z.string(),
  counters: usageCountersSchema.partial(),
  keys: z.array(keyUseNoteSchema).readonly(),
});
export type UsageNote = Readonly<z.output<typeof usageNoteSchema>>;

/** The writes that a namespace took on one UTC day. */
export const dayWritesSchema = z.strictObject({ day: z.string(), writes: count, docs: count, bytes: count });
export type DayWrites = Readonly<z.output<typeof dayWritesSchema>>;

/** What a namespace actor tells its tenant actor, for lists and quotas. */
export const namespaceReportSchema = z.strictObject({
  namespaceId: z.string(),
  ...taken,
  storedBytes: count,
  /** When the last of these were written: UTC days since it was opened, in their order; the first one has all before it too. */
  days: z.array(dayWritesSchema).readonly(),
  /** Whether its manifest contains all of this. What it does not contain is reported again by whoever replays the log. */
  flushed: z.boolean(),
});
export type NamespaceReport = Readonly<z.output<typeof namespaceReportSchema>>;

const event = <Kind extends string, Shape extends z.ZodRawShape>(kind: Kind, shape: Shape) =>
  z.strictObject({ kind: z.literal(kind), ...shape });
const named = { name: z.string(), namespaceId: z.string() };

/** A change of a tenant: the payload of a record in the log, and its kind. */
export const tenantEventSchema = z.discriminatedUnion('kind', [
  event('tenant-created', { tenant: tenantRecordSchema, firstKey: keyRecordSchema.nullable() }),
  event('tenant-status', { status: tenantRecordSchema.shape.status }),
  /** What follows for the tenant from its subscription. */
  event('tenant-billing', {
    plan: tenantRecordSchema.shape.plan,
    status: tenantRecordSchema.shape.status,
    billing: billingStandingSchema,
  }),
  event('owner-verified', {}),
  /** With `answer`, that of the request which made the key or the name: kept with what it did, or neither is. */
  event('key-created', { key: keyRecordSchema, answer: storedAnswerSchema.nullable() }),
  event('key-limits', { keyId: id, limits: keyLimitsRecordSchema }),
  event('key-revoked', { keyId: id }),
  /** Ends all keys where `madeBy` is null, or those that this person made. */
  event('keys-ended', { madeBy: id.nullable() }),
  /** Connections ended: their use is forgotten. The connections themselves are no part of the tenant's manifest. */
  event('connections-ended', { ids: z.array(id).readonly() }),
  event('answer-stored', { answer: storedAnswerSchema }),
  event('answer-forgotten', { keyDigest: digest }),
  event('namespace-created', {
    ...named,
    createdAt: z.string(),
    vector: vectorConfig,
    embed: embedConfig,
    answer: storedAnswerSchema.nullable(),
    linked: linkRecordSchema.optional(),
    branched: branchRecordSchema.optional(),
    /** What it begins with of a namespace that it was made from, which metered it; and the bytes of its own objects. */
    begins: z.strictObject({ ...taken, storedBytes: count }).optional(),
  }),
  event('namespace-embedding', { ...named, embed: embedConfig }),
  event('provider-key-stored', { record: providerKeyRecordSchema }),
  event('provider-key-forgotten', { provider: z.string() }),
  /** With what it had reported by then, and the UTC day. Its last words come after it, before its records are dropped. */
  event('namespace-deleted', { ...named, taken: z.strictObject(taken), day: z.string() }),
  /** Says how many bytes of a deleted namespace others hold; 0 where they hold nothing any more. */
  event('namespace-held', { namespaceId: z.string(), bytes: count }),
  event('namespace-reported', { name: z.string(), report: namespaceReportSchema }),
  event('usage-noted', { notes: z.array(usageNoteSchema).readonly() }),
]);
export type TenantEvent = Readonly<z.output<typeof tenantEventSchema>>;

/** A tenant's manifest: its one object. Maps are lists of pairs, or lists of values that have their key in them. */
export const tenantManifestSchema = z.strictObject({
  /** Rises by one with each commit. */
  version: z.int().min(1),
  /** 32 hexadecimal digits, new for each commit: tells one's own commit whose answer was lost. */
  nonce: z.string(),
  owner: z.strictObject({ logId: z.string(), view: z.int().min(0) }),
  /** Log id, slot and index of the last record of each log that is contained here. */
  applied: z.array(z.tuple([z.string(), id, id])),
  state: z.strictObject({
    tenant: tenantRecordSchema.nullable(),
    keys: z.array(keyRecordSchema),
    /** Name and entry. */
    names: z.array(z.tuple([z.string(), nameEntrySchema])),
    /** Ids of deleted namespaces of which others hold something, and how many bytes; absent where there are none. */
    held: z.array(z.tuple([z.string(), count])).optional(),
    providerKeys: z.array(providerKeyRecordSchema),
    /** Oldest first. */
    answers: z.array(storedAnswerSchema),
    usage: z.strictObject({
      /** UTC day and what was used on it. */
      days: z.array(z.tuple([z.string(), dayUsageSchema])),
      /** Key id and what it has used. */
      keys: z.array(z.tuple([id, keyUseSchema])),
      /** Up to when what is stored was counted; 0 before anything was. */
      storedUntil: z.number().min(0),
      /** Namespaces that were made on the last UTC day on which any were. */
      creations: z.strictObject({ day: z.string(), count }),
    }),
    /** Counts the events that made this state. */
    version: z.int().min(0),
  }),
});
export type TenantManifestWire = Readonly<z.output<typeof tenantManifestSchema>>;
