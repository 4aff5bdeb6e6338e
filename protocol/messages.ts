/**
 * What crosses a thread, and nothing else does. Heads are MessagePack arrays (positions, not names: they are encoded
 * for every request), bodies are raw bytes; src/base/port-channel.ts carries both. Private to one build, but for
 * ActorCallWire and ActorAnswerWire, which servers forward (`peerVersions`): what is stored has
 * its shapes in stored-*.ts, with versions.
 */
import { ApiError, type ErrorCode } from './errors.ts';
import type { EmbedConfig, VectorConfig } from './namespace.ts';
import type {
  BillingStanding,
  BranchRecord,
  KeyRecord,
  LinkRecord,
  StoredAnswer,
  TenantRecord,
  UsageCounters,
} from './stored-tenant.ts';

/** front → actor: one operation on a namespace, or on the tenant itself where the namespace is empty. */
export interface ActorCall {
  /** A name of operations.ts, or one of internal-calls.ts. */
  readonly operation: string;
  readonly tenantId: number;
  readonly namespace: string;
  /** The path's own argument: a document's id or a key's; of an import, what its body is packed with; else empty. */
  readonly argument: string;
  /** The query string as it came, without its question mark. */
  readonly query: string;
  /** Milliseconds that this request may still take. */
  readonly deadlineMs: number;
  /** What the actor needs to know of who asks; see CallerNote. */
  readonly caller: CallerNote;
  /** SHA-256 of the `Idempotency-Key`, of operations that heed one. */
  readonly idempotencyKey?: string;
  /** The link by which the namespace is read: its owner sends the reads of a link on to the owner of the source. */
  readonly link?: ReadLink;
  /** A read of what is in the store, whoever owns it: of a client that wants an answer although the owner gives none. Never leaves its server. */
  readonly fromCopy?: true;
}

/** A link, as whoever answers its reads has to know it. */
export interface ReadLink {
  readonly name: string;
  /** The name of its source. */
  readonly source: string;
  /** The link's own id. */
  readonly linkId: string;
  readonly createdAt: string;
  /** The id of its source: a namespace that has the source's name later is another one. */
  readonly sourceId: string;
  /** The version at which it stays; null where it follows its source. */
  readonly version: number | null;
}

export interface CallerNote {
  /** The id of the request that this is about, for logs; empty for what nobody asked for. */
  readonly requestId: string;
  /** Names or `prefix*` patterns that limit what a list shows; empty: no limit. */
  readonly namespaces: readonly string[];
  /** Who makes a key: the person's address, shown in the list of keys, and id (0 where none is known). */
  readonly createdBy: string;
  readonly personId: number;
  /** Seconds that a query of this tenant's plan may take. */
  readonly querySeconds: number;
  /** Bytes that the tenant may have in the store; null: no limit. */
  readonly storageQuotaBytes: number | null;
  /** Bytes of the object store that the tenant's queries may have on their way at once; null: no limit. */
  readonly readInflightBytes: number | null;
  /** The owner of the tenant, who is charged, and its weight: of src/base/share.ts. */
  readonly owner: number;
  readonly weight: number;
}

export type ActorCallWire = [
  string,
  number,
  string,
  string,
  string,
  number,
  readonly string[],
  string,
  number,
  number,
  number | null,
  number | null,
  string,
  number,
  number,
  (string | null)?,
  (ReadLinkWire | null)?,
  true?,
];

type ReadLinkWire = readonly [string, string, string, string, string, number | null];

export function actorCallToWire(call: ActorCall): ActorCallWire {
  const { caller, idempotencyKey, link, fromCopy } = call;
  const wire: ActorCallWire = [
    call.operation,
    call.tenantId,
    call.namespace,
    call.argument,
    call.query,
    call.deadlineMs,
    caller.namespaces,
    caller.createdBy,
    caller.personId,
    caller.querySeconds,
    caller.storageQuotaBytes,
    caller.readInflightBytes,
    caller.requestId,
    caller.owner,
    caller.weight,
  ];
  if (link !== undefined)
    wire.push(idempotencyKey ?? null, [
      link.name,
      link.source,
      link.linkId,
      link.createdAt,
      link.sourceId,
      link.version,
    ]);
  else if (idempotencyKey !== undefined) wire.push(idempotencyKey);
  if (fromCopy === undefined) return wire;
  while (wire.length < copyMarkAt) wire.push(null);
  wire.push(fromCopy);
  return wire;
}

/** Where the mark of `fromCopy` stands in a call on its way. */
const copyMarkAt = 17;

export function actorCallFromWire(wire: unknown): ActorCall {
  const [
    operation,
    tenantId,
    namespace,
    argument,
    query,
    deadlineMs,
    namespaces,
    createdBy,
    personId,
    querySeconds,
    storageQuotaBytes,
    readInflightBytes,
    requestId,
    owner,
    weight,
    idempotencyKey,
    link,
    fromCopy,
  ] = wire as ActorCallWire;
  const caller = {
    requestId,
    namespaces,
    createdBy,
    personId,
    querySeconds,
    storageQuotaBytes,
    readInflightBytes,
    owner,
    weight,
  };
  const call = { operation, tenantId, namespace, argument, query, deadlineMs, caller };
  if (fromCopy === true) return { ...call, fromCopy };
  if (link !== undefined && link !== null) return { ...call, link: readLinkFromWire(link) };
  return typeof idempotencyKey === 'string' ? { ...call, idempotencyKey } : call;
}

function readLinkFromWire([name, source, linkId, createdAt, sourceId, version]: ReadLinkWire): ReadLink {
  return { name, source, linkId, createdAt, sourceId, version };
}

/** actor → front: the status, headers that the operation adds, and what to meter. The body is the answer's JSON. */
export interface ActorAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly meter: Meter;
}

/** What a request used: counted where the work happens, summed on the front. */
export interface Meter {
  readonly documents: number;
  readonly bytes: number;
  readonly cpuMs: number;
  readonly storeGets: number;
  readonly storeBytes: number;
  /** Tokens that embedding models took, as they count them. */
  readonly embedTokens: number;
  /** Tokens that the hosted model took, which are among `embedTokens`. */
  readonly hostedTokens: number;
}

export const noMeter: Meter = {
  documents: 0,
  bytes: 0,
  cpuMs: 0,
  storeGets: 0,
  storeBytes: 0,
  embedTokens: 0,
  hostedTokens: 0,
};

export type ActorAnswerWire = [
  number,
  readonly (readonly [string, string])[],
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

export function actorAnswerToWire(answer: ActorAnswer): ActorAnswerWire {
  const { documents, bytes, cpuMs, storeGets, storeBytes, embedTokens, hostedTokens } = answer.meter;
  return [
    answer.status,
    answer.headers,
    documents,
    bytes,
    cpuMs,
    storeGets,
    storeBytes,
    embedTokens,
    hostedTokens,
  ];
}

export function actorAnswerFromWire(wire: unknown): ActorAnswer {
  const [status, headers, documents, bytes, cpuMs, storeGets, storeBytes, embedTokens, hostedTokens] =
    wire as ActorAnswerWire;
  return {
    status,
    headers,
    meter: { documents, bytes, cpuMs, storeGets, storeBytes, embedTokens, hostedTokens },
  };
}

/**
 * Makes what stands in place of an actor's answer where the data has moved to another server, by the placement that the actor knows, and
 * nothing was done. The call's body comes back with it.
 */
export function movedToWire(placement: number): readonly [moved: string, placement: number] {
  return [movedMark, placement];
}

/** The placement by which the data has moved; null for an answer. */
export function movedFromWire(wire: unknown): number | null {
  const [mark, placement] = wire as readonly [unknown, number];
  return mark === movedMark ? placement : null;
}

const movedMark = 'moved';

export const noCaller: CallerNote = {
  requestId: '',
  namespaces: [],
  createdBy: '',
  personId: 0,
  querySeconds: 0,
  storageQuotaBytes: null,
  readInflightBytes: null,
  owner: -1,
  weight: 1,
};

/** A request with an `Idempotency-Key`, as the tenant that the caller acts for knows it. */
export type BegunRequest = Pick<StoredAnswer, 'keyDigest' | 'requestDigest' | 'plannedId'>;

/** The header of an answer that was given before, to the first request with its `Idempotency-Key`. */
export const replayedHeader = ['idempotent-replayed', 'true'] as const;

export type BeganRequest =
  /** Do it, with this id; then end it. */
  | { readonly kind: 'begun'; readonly plannedId: number }
  /** It was done before, and this was the answer. */
  | { readonly kind: 'done'; readonly status: number; readonly answer: string };

export interface EndedRequest extends BegunRequest {
  readonly outcome:
    | { readonly kind: 'done'; readonly status: number; readonly text: string }
    /** Nothing was made: the key is free again. */
    | { readonly kind: 'refused' }
    /** Something may have been made: who repeats the request makes the same. */
    | { readonly kind: 'unknown' };
}

/** What a name that is not there yet is made with. */
export interface NewNamespace {
  /** The namespace's id, random, where something was stored for it already; left out, it is given one. */
  readonly namespaceId?: string;
  /** Null for text only. */
  readonly vector: VectorConfig | null;
  /** Null where texts are not embedded. */
  readonly embed: EmbedConfig | null;
}

/** Asks the owner of a namespace to have another one begin as it is. */
export interface ShareRequest {
  /** The new namespace, which has no name yet. */
  readonly holder: { readonly name: string; readonly namespaceId: string; readonly createdAt: string };
  /** The version to begin at; null for the present one. */
  readonly version: number | null;
}

/** What the new namespace begins with: the counters of its parent, and how long its manifest is. */
export interface SharedNamespace {
  readonly version: number;
  readonly docsWritten: number;
  readonly bytesWritten: number;
  readonly storedBytes: number;
}

/** The body of an import on its way to the actor: the file is the front's to delete. */
export interface ReceivedFile {
  readonly path: string;
  readonly bytes: number;
}

/** A namespace's embedding is changed. */
export interface EmbedChange {
  readonly namespaceId: string;
  readonly embed: EmbedConfig | null;
}

/** What `tenant.resolve` answers, or null where the name is free and was not to be made. */
export interface ResolvedNamespace {
  readonly namespaceId: string;
  readonly createdAt: string;
  /** Null for text only. */
  readonly vector: VectorConfig | null;
  /** Null where texts are not embedded. */
  readonly embed: EmbedConfig | null;
  /** True where this call made the name; it is not durable yet. */
  readonly created: boolean;
  /** Documents written so far, as the namespace reported last: it has a manifest where there were any. */
  readonly documentsKnown: number;
  /** The namespace that the name is a link to; null where it is no link. Only a link that stays at a version has an actor of its own. */
  readonly linked: LinkRecord | null;
  /** Whether it is a link whose source is gone. */
  readonly isDangling: boolean;
  /** The namespace that this one began as; null where it began empty. */
  readonly branched: BranchRecord | null;
}

/** What of a plan's allowances is used in the running period. */
export interface Used
  extends Pick<
    UsageCounters,
    'queries' | 'writes' | 'writeBytes' | 'storeGets' | 'outBytes' | 'cpuMs' | 'hostedTokens'
  > {
  readonly gbMonths: number;
}

/** A tenant and what it has used of the running period, as its actor knows it. */
export interface TenantStanding extends TenantRecord {
  /** From when until when, in milliseconds since 1970. */
  readonly period: { readonly startMs: number; readonly endMs: number };
  readonly used: Used;
}

/** What follows for a tenant from its subscription. */
export interface BillingChange extends Pick<TenantRecord, 'plan' | 'status'> {
  readonly billing: BillingStanding;
}

/** What is metered of a tenant, by UTC day, until a moment: no crash takes any of it back. */
export interface MeteredUsage {
  /** In milliseconds since 1970. */
  readonly untilMs: number;
  readonly days: readonly (readonly [day: string, usage: UsageCounters])[];
}

/** What a connection of an MCP client has used. */
export interface ConnectionUse {
  readonly id: number;
  /** Milliseconds since 1970. */
  readonly lastUsedAt: number;
}

/** A key and what it has used of the running period. */
export interface KeyStanding extends KeyRecord {
  /** `YYYY-MM`: caps are of calendar months, whatever the tenant's period. */
  readonly month: string;
  readonly usedQueries: number;
  readonly usedWrites: number;
}

/** actor ↔ log thread. */
export const logCalls = {
  /** call: [append, record head, epoch, owner, weight, whether it is urgent], body: payload → ['stored', slot, index] or ['refused', refusal]. */
  append: 'append',
  /** notice to the log: [flushed, tenantId, namespaceId, logId, slot, index]. */
  flushed: 'flushed',
  /** call: [hear] → [heard], after every notice that was sent before. */
  hear: 'hear',
  /**
   * call: [moved-away] → [[tenantId, namespace, namespaceId], …]: targets of this thread that other servers own now, and of which the log may have
   * records that no manifest has; `movedLookUpsMax` at most.
   */
  movedAway: 'moved-away',
  /** notice to the actor: [replay, record head, logId, slot, index, damage or null], body: payload. */
  replay: 'replay',
  /** call: [replay-target, tenantId, namespaceId] → [done], after replay notices with the target's records, or [failed]. */
  replayTarget: 'replay-target',
  /** call: [confirm-open] → ['open'], ['sealed'] where another process has ended the log, or ['failed']. */
  confirmOpen: 'confirm-open',
  /** call: [seen-open] → ['open', how many milliseconds before this call came the log was last surely open], or as confirm-open. */
  seenOpen: 'seen-open',
  /**
   * notice to the actor: [replay-begin, standing, owners from the last settled placement on]: records of targets that have come
   * since follow, and what was replayed of them before does not count.
   */
  replayBegin: 'replay-begin',
  /** notice to the actor: [replay-end, placement]: everything durable was replayed that has come by then. */
  replayEnd: 'replay-end',
  /** notice to the actor: [look-up, tenantId, namespace, namespaceId, logId]: how far of that log its manifest has; the answer is `flushed`. */
  lookUp: 'look-up',
  /** notice to the actor: [flush, tenantId, namespace, namespaceId]: its records hold up the log's floor. */
  flush: 'flush',
} as const;

/** An ApiError that crosses a thread. */
export interface ApiErrorWire {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly retryAfter?: number;
}

export function apiErrorToWire(error: ApiError): ApiErrorWire {
  return {
    code: error.code,
    message: error.message,
    ...(error.fields === undefined ? {} : { fields: error.fields }),
    ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
  };
}

export function apiErrorFromWire(wire: ApiErrorWire): ApiError {
  const { code, message, ...details } = wire;
  return new ApiError(code, message, details);
}
