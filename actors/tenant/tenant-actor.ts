import { ApiError } from '../../protocol/errors.ts';
import type { KeyId, TenantId } from '../../protocol/ids.ts';
import type {
  BeganRequest,
  BegunRequest,
  EmbedChange,
  EndedRequest,
  KeyLimitsRecord,
  KeyRecord,
  KeyStanding,
  NamespaceReport,
  NewNamespace,
  ProviderKeyRecord,
  ResolvedNamespace,
  StoredAnswer,
  TenantRecord,
  TenantStanding,
  UsageNote,
} from '../../protocol/messages.ts';
import { usedUp, usedUpSentence } from '../../src/accounts/allowance.ts';
import { makeApiKey } from '../../src/accounts/api-keys.ts';
import { writeKeyClaim } from '../../src/accounts/key-claim.ts';
import type { Plan } from '../../src/accounts/plans.ts';
import { dayOf, periodOf } from '../../src/accounts/usage.ts';
import { must } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { randomHex, randomId48 } from '../../src/base/random.ts';
import { Serial } from '../../src/base/serial.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { paths } from '../../src/object-store/paths.ts';
import { type ActorComponents, isGoneLog, refuseNewerOwner } from '../components.ts';
import type { KeyedProvider } from '../embedding/embedding-models.ts';
import { confirmedInTime } from '../log/confirmed-in-time.ts';
import { isNotWritten } from '../log/log-client.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { MemoryAccount } from '../memory-budget.ts';
import type { LogWatermark } from '../storage/manifest.ts';
import { ActorClosed, type Committed, commit, loadCommitted } from '../storage/manifest-store.ts';
import { sealedAfterTrial } from './embedding-keys.ts';
import { IdempotentRequests, type IdempotentRun } from './idempotent-requests.ts';
import { deleteKeyClaims, dropEach } from './remove-tenant.ts';
import {
  applyTenantEvent,
  copyOfState,
  decodeTenantEvent,
  emptyTenant,
  encodeTenantEvent,
  type NameEntry,
  type TenantEvent,
  type TenantManifest,
  type TenantState,
  tenantManifestCodec,
  tombstoneOf,
} from './tenant-state.ts';
import { countStored, createdOn, keyUse, meterWrites, usedNow } from './tenant-usage.ts';
import type { UsageOfTenant } from './usage-answers.ts';

/**
 * One tenant, one writer: its keys and the names of its namespaces. Every change is an event in the log; it is applied
 * once durable, in log order. A name that is being made is known as pending, so that two writers who race to make it
 * get one namespace.
 *
 * A tenant that is deleted goes in this order:
 *
 * 1. the event that says so is durable, and every front has forgotten the tenant: from here on it answers like one that never
 *    was, and takes no further event;
 * 2. the objects of its namespaces and the claims of its keys are deleted;
 * 3. its manifest becomes a tombstone (`tombstoneOf`), and only then may the log forget the event.
 *
 * So after a crash anywhere between, the replay of the event opens this actor and has it flushed, which does the rest.
 */
export interface NewKeyRequest {
  readonly name: string;
  readonly scope: KeyRecord['scope'];
  readonly namespaces: readonly string[];
  readonly ratePerSecond: number | null;
  readonly capQueries: number | null;
  readonly capWrites: number | null;
  readonly createdBy: string;
  readonly personId: number;
}

export interface NewKey {
  readonly key: string;
  readonly record: KeyRecord;
}

/** How a request with an `Idempotency-Key` is to be remembered, once its answer is known. */
export interface Remembering<Made> {
  readonly run: IdempotentRun;
  answer(made: Made): StoredAnswer;
}

/** How long a deletion is answered later for its objects to be gone with it. */
const dropWaitMs = 5_000;
/** Pauses double: about four minutes of a store's trouble. */
const dropTriesMax = 10;
const dropPauseMs = 250;

interface PendingName extends NewNamespace {
  readonly namespaceId: string;
  readonly createdAt: string;
  readonly durable: Promise<void>;
}

/** After a flush of a namespace was reported, the tenant is flushed too, so that its lists are right after a crash. */
const ledgerFlushMs = 10_000;
/** Resident bytes of the actor, of a key and of a name, with the maps that hold them. Measured like those of a namespace. */
const openTenantBytes = 4_000;
const keyBytes = 900;
const nameBytes = 500;

export class TenantActor {
  readonly tenantId: number;
  readonly #components: ActorComponents;
  readonly #applies = new Serial();
  readonly #flushes = new Serial();
  readonly #pendingNames = new Map<string, PendingName>();
  readonly #applied = new Map<string, LogWatermark>();
  /** Namespaces whose name is gone and whose objects may not be: by id, with what is known of them. The log is held until they are. */
  readonly #drops = new Map<string, { readonly name: string; known: NameEntry }>();
  /** Digests of keys that are revoked and whose claims may be there. They let nobody in, so they go with the next flush. */
  readonly #claims = new Set<string>();
  /** Requests that may be repeated. */
  readonly requests: IdempotentRequests;
  /** Its own end, from the moment it was asked for. */
  #removal: Promise<void> | null = null;
  #state: TenantState = emptyTenant();
  #committed: Committed<TenantManifest> | null = null;
  #submittedVersion = 0;
  /** Higher than those of every earlier actor of this tenant, whose last one the log may have refused. */
  #epoch: number;
  #closed = false;
  #draining = false;
  #sortedNames: readonly string[] | null = null;
  #unflushed = false;
  /** Sum of the ledger. */
  #storedBytes = 0;
  /** Reports have come that its manifest does not contain. */
  #ledgerChanged = false;
  #ledgerFlushArmed = false;
  readonly #account: MemoryAccount;

  private constructor(components: ActorComponents, tenantId: number) {
    this.#components = components;
    this.#account = new MemoryAccount(components.memory);
    this.tenantId = tenantId;
    this.requests = new IdempotentRequests(components, { tenantId, answers: () => this.#state.answers });
    this.#epoch = Math.floor(components.clock.now() * 1_000);
  }

  /** From its manifest and what was replayed; a tenant without either does not exist (yet). */
  static async open(
    components: ActorComponents,
    tenantId: number,
    replayed: readonly ReplayedRecord[],
  ): Promise<TenantActor> {
    const actor = new TenantActor(components, tenantId);
    actor.#committed = await loadCommitted(
      components.store,
      paths.tenantManifest(tenantId),
      tenantManifestCodec,
    );
    if (actor.#committed !== null) {
      refuseNewerOwner(components, actor.#committed.value.owner);
      actor.#adopt(actor.#committed.value);
    }
    for (const record of replayed) actor.#replay(record);
    actor.#submittedVersion = actor.#state.version;
    actor.#measure();
    return actor;
  }

  #adopt(manifest: TenantManifest): void {
    this.#state = copyOfState(manifest.state);
    for (const [logId, watermark] of manifest.applied)
      if (!isGoneLog(this.#components, manifest.owner, logId)) this.#applied.set(logId, watermark);
    for (const { storedBytes } of manifest.state.names.values()) this.#storedBytes += storedBytes;
  }

  /** Whether nothing is under way in it. */
  get isIdle(): boolean {
    return this.#applies.waiting === 0 && this.#flushes.waiting === 0;
  }

  /** Whether its manifest contains all that it knows. */
  get isFlushed(): boolean {
    return !this.#unflushed && !this.#ledgerChanged;
  }

  get residentBytes(): number {
    return this.#account.bytes;
  }

  /** A flush alone gives nothing back. */
  readonly flushableBytes = 0;

  /** It takes no further work; the next one begins from its manifest. */
  close(): void {
    this.#closed = true;
    this.#account.release();
  }

  #measure(): void {
    const { keys, names, providerKeys, answers } = this.#state;
    // The manifest is kept for the next commit, with maps of its own.
    const keyCount = keys.size + providerKeys.size + answers.size;
    this.#account.set('tenants', openTenantBytes + keyCount * keyBytes + names.size * nameBytes);
  }

  get exists(): boolean {
    return this.#state.tenant !== null;
  }

  /** Whether another one must be opened in its place: its state is not that of the log or the store any more. */
  get closed(): boolean {
    return this.#closed;
  }

  get tenant(): TenantRecord | null {
    return this.#state.tenant;
  }

  key(keyId: number): KeyRecord | null {
    return this.#state.keys.get(keyId) ?? null;
  }

  /** Newest first. */
  keys(): KeyRecord[] {
    return [...this.#state.keys.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  }

  /** Creating the same tenant again is success. */
  async create(tenant: TenantRecord, firstKey: KeyRecord | null): Promise<void> {
    if (this.exists) return;
    await this.#confirmed(this.#append({ kind: 'tenant-created', tenant, firstKey }));
  }

  /** Durable and known to every front when it resolves. */
  async verifyOwner(): Promise<void> {
    // Whoever verifies an address tells all the tenants of a list, in which one that is deleted stays until the end.
    await this.#removal?.catch(() => {});
    if (!this.exists || this.#isDeleting || this.#state.tenant?.ownerVerified === true) return;
    await this.#confirmed(this.#appendAndForget({ kind: 'owner-verified' }));
  }

  /** Durable and known to every front when it resolves. Nobody comes back from `deleting`. */
  async setStatus(status: TenantRecord['status']): Promise<void> {
    if (this.tenant === null) throw noSuchTenant();
    if (status === 'deleting') return this.#remove();
    this.#refuseLeaving();
    if (this.tenant.status === status) return this.#components.directory.forget(this.tenantId);
    await this.#confirmed(this.#appendAndForget({ kind: 'tenant-status', status }));
  }

  /** Its end is its last event: what came after it would be lost with all the rest. */
  #refuseLeaving(): void {
    if (this.#isDeleting) throw noSuchTenant();
    if (this.#removal !== null) throw new ApiError('conflict', 'the tenant is being deleted');
  }

  get #isDeleting(): boolean {
    return this.#state.tenant?.status === 'deleting';
  }

  /** Resolves when it is gone durably, and mostly with all its objects: those that are left go as soon as they can. */
  async #remove(): Promise<void> {
    // The thread of the actor that began it may have ended before the fronts had heard.
    if (this.#isDeleting && this.#removal === null) return this.#components.directory.forget(this.tenantId);
    this.#removal ??= this.#appendAndForget({ kind: 'tenant-status', status: 'deleting' }).then(
      () => settledWithin(this.#components.clock, this.#flushSoon(), dropWaitMs),
      (error: unknown) => {
        this.#removal = null;
        throw error;
      },
    );
    await this.#confirmed(this.#removal);
  }

  async #flushSoon(): Promise<void> {
    const { clock, logger } = this.#components;
    for (let tries = 1; ; tries++) {
      try {
        return await this.flush();
      } catch (error) {
        const fields = { tenantId: this.tenantId, error: describeError(error) };
        logger.error('a deleted tenant has objects that are still there', fields);
      }
      if (tries === dropTriesMax || this.#draining || this.#closed) return;
      await clock.sleep(dropPauseMs * 2 ** (tries - 1));
    }
  }

  async createKey(request: NewKeyRequest, remembering: Remembering<NewKey> | null = null): Promise<NewKey> {
    this.#refuseLeaving();
    const made = makeApiKey(this.#components.random);
    const record: KeyRecord = {
      ...request,
      id: randomId48(this.#components.random),
      prefix: made.prefix,
      digest: made.digest,
      createdAt: this.#nowText(),
    };
    const answered = { key: made.key, record };
    // The claim comes first: a claim without its key leads nowhere, a key without its claim could never be revoked.
    const claim = { tenantId: this.tenantId as TenantId, keyId: record.id as KeyId };
    await writeKeyClaim(this.#components.store, this.#components.clock, made.digest, claim);
    const answer = remembering?.answer(answered) ?? null;
    const durable = this.#append({ kind: 'key-created', key: record, answer }).catch(
      async (error: unknown) => {
        // Nothing was written: nobody would ever delete the claim, for no record names it.
        if (error instanceof ApiError)
          await deleteKeyClaims(this.#components.store, [made.digest]).catch(() => {});
        throw error;
      },
    );
    remembering?.run.holdUntil(durable);
    await this.#confirmed(durable);
    return answered;
  }

  /** Durable and forgotten by every front when it resolves. */
  async replaceKeyLimits(keyId: number, limits: KeyLimitsRecord): Promise<void> {
    if (!this.#state.keys.has(keyId)) throw noSuchKey();
    await this.#confirmed(this.#appendAndForget({ kind: 'key-limits', keyId, limits }));
  }

  /** Durable and forgotten by every front when it resolves. */
  async revokeKey(keyId: number): Promise<void> {
    if (!this.#state.keys.has(keyId)) {
      // The thread of the actor that revoked it may have ended before the fronts had heard.
      await this.#components.directory.forget(this.tenantId);
      throw noSuchKey();
    }
    await this.#confirmed(this.#appendAndForget({ kind: 'key-revoked', keyId }));
  }

  /** Fronts forget also where the client was told by then that nobody knows: a revoked key must not live on in a cache. */
  #appendAndForget(event: TenantEvent): Promise<void> {
    return this.#append(event).then(() => this.#components.directory.forget(this.tenantId));
  }

  /** A request that the front does itself: before it does anything. */
  async beginRequest(request: BegunRequest): Promise<BeganRequest> {
    const begun = this.requests.begin(request);
    if ('done' in begun) return begun.done;
    const plannedId = begun.plannedId ?? request.plannedId;
    try {
      const stored = this.requests.stored({ ...request, plannedId }, null);
      if (begun.plannedId === null)
        await this.#confirmed(this.#append({ kind: 'answer-stored', answer: stored }));
    } catch (error) {
      begun.letGo();
      throw error;
    }
    return { kind: 'begun', plannedId };
  }

  async endRequest({ outcome, ...request }: EndedRequest): Promise<void> {
    const { keyDigest } = request;
    try {
      if (outcome.kind === 'unknown') return;
      const event: TenantEvent =
        outcome.kind === 'done'
          ? { kind: 'answer-stored', answer: this.requests.stored(request, outcome) }
          : { kind: 'answer-forgotten', keyDigest };
      await this.#confirmed(this.#append(event));
    } finally {
      this.requests.ended(keyDigest);
    }
  }

  /** By provider. */
  providerKeys(): ProviderKeyRecord[] {
    return [...this.#state.providerKeys.values()].sort((a, b) => (a.provider < b.provider ? -1 : 1));
  }

  providerKey(provider: string): ProviderKeyRecord | null {
    return this.#state.providerKeys.get(provider) ?? null;
  }

  /** Tried and sealed, and stored in place of the one before. Answers it, and the tokens that trying it took. */
  async storeProviderKey(
    provider: KeyedProvider,
    body: Uint8Array,
  ): Promise<{ readonly record: ProviderKeyRecord; readonly tokens: number }> {
    const owner = { tenantId: this.tenantId, provider };
    const sealed = await sealedAfterTrial(this.#components, owner, body, this.providerKey(provider));
    await this.#confirmed(this.#append({ kind: 'provider-key-stored', record: sealed.record }));
    return sealed;
  }

  async forgetProviderKey(provider: KeyedProvider): Promise<void> {
    if (this.providerKey(provider) === null)
      throw new ApiError('not_found', `there is no stored key of ${provider}`);
    await this.#confirmed(this.#append({ kind: 'provider-key-forgotten', provider }));
  }

  /** Of a name that is another namespace's by now, nothing changes. */
  async setEmbed(name: string, { namespaceId, embed }: EmbedChange): Promise<void> {
    await this.confirm(name, namespaceId);
    await this.#confirmed(this.#append({ kind: 'namespace-embedding', name, namespaceId, embed }));
  }

  async createNamespace(
    name: string,
    options: NewNamespace,
    remembering: Remembering<{ readonly createdAt: string }> | null = null,
  ): Promise<ResolvedNamespace> {
    if (this.#state.names.has(name) || this.#pendingNames.has(name)) {
      throw new ApiError('conflict', `a namespace named "${name}" exists already`, {
        fields: { name: 'exists already' },
      });
    }
    const pending = this.#makeName(name, options, remembering);
    await this.#confirmed(pending.durable);
    return resolved(pending, { created: true });
  }

  /** Answers at once, also where the name is only being made: `confirm` waits until it is durable. */
  async resolve(name: string, create: NewNamespace | null): Promise<ResolvedNamespace | null> {
    // Nothing may be opened any more of what is being deleted.
    if (this.#isDeleting) return null;
    const known = this.#state.names.get(name);
    if (known !== undefined) return resolved(known, { created: false, documentsKnown: known.docsWritten });
    const pending = this.#pendingNames.get(name);
    if (pending !== undefined) {
      if (create === null) await this.#known(pending);
      return resolved(pending, { created: false });
    }
    if (create === null || !this.exists) return null;
    return resolved(this.#makeName(name, create), { created: true });
  }

  async confirm(name: string, namespaceId: string): Promise<void> {
    const pending = this.#pendingNames.get(name);
    if (pending?.namespaceId === namespaceId) return pending.durable;
    if (this.#state.names.get(name)?.namespaceId !== namespaceId) {
      throw new ApiError('not_found', `there is no namespace named "${name}"`);
    }
  }

  async deleteNamespace(name: string): Promise<void> {
    const pending = this.#pendingNames.get(name);
    if (pending !== undefined) await this.#known(pending);
    const known = this.#state.names.get(name);
    if (known === undefined) throw new ApiError('not_found', `there is no namespace named "${name}"`);
    const { namespaceId } = known;
    const { writes, docsWritten, bytesWritten } = known;
    const dropped = this.#append({
      kind: 'namespace-deleted',
      name,
      namespaceId,
      taken: { writes, docsWritten, bytesWritten },
      day: dayOf(this.#components.clock.now()),
    }).then(() => settledWithin(this.#components.clock, this.#dropSoon(namespaceId, name), dropWaitMs));
    await this.#confirmed(dropped);
  }

  /**
   * The name is gone durably, so the deletion has happened whatever becomes of the objects: while the store does not
   * answer they are asked for again, at last by the flush.
   */
  async #dropSoon(namespaceId: string, name: string): Promise<void> {
    const { clock, logger } = this.#components;
    for (let tries = 1; this.#drops.has(namespaceId); tries++) {
      try {
        return await this.#drop(namespaceId, name);
      } catch (error) {
        logger.error('objects of a deleted namespace are still there', {
          namespaceId,
          error: describeError(error),
        });
      }
      if (tries === dropTriesMax || this.#draining) return;
      await clock.sleep(dropPauseMs * 2 ** (tries - 1));
    }
  }

  async #drop(namespaceId: string, name: string): Promise<void> {
    await this.#components.directory.drop(this.tenantId, name, namespaceId);
    this.#drops.delete(namespaceId);
  }

  /** For who finds a name that is being made: until it is there or not. */
  async #known(pending: PendingName): Promise<void> {
    try {
      await this.#confirmed(pending.durable);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'write_unknown') throw error;
      const sentence = 'this namespace is being made, and object storage does not answer; nothing was done';
      throw new ApiError('unavailable', sentence, { retryAfter: 1 });
    }
  }

  #confirmed<T>(work: Promise<T>): Promise<T> {
    return confirmedInTime(this.#components.clock, work);
  }

  /** What all its namespaces take in the store, in bytes, as far as they have reported it. */
  get storedBytes(): number {
    return this.#storedBytes;
  }

  report(name: string, report: NamespaceReport): void {
    const named = this.#state.names.get(name);
    const dropped = this.#drops.get(report.namespaceId);
    const known = named?.namespaceId === report.namespaceId ? named : dropped?.known;
    // The last words of an actor that was put away may come after its successor's first.
    if (known === undefined || report.docsWritten < known.docsWritten || report.writes < known.writes) return;
    const { writes, docsWritten, bytesWritten, storedBytes, flushed } = report;
    if (writes !== known.writes || storedBytes !== known.storedBytes) {
      meterWrites(this.#state.usage, known, report);
      const next = { ...known, writes, docsWritten, bytesWritten, storedBytes };
      this.#ledgerChanged = true;
      if (known === named) {
        this.#state.names.set(name, next);
        this.#addStoredBytes(storedBytes - known.storedBytes);
      } else if (dropped !== undefined) dropped.known = next;
    }
    // What is not flushed is reported again by whoever replays it: only what is has to be kept here.
    if (flushed && this.#ledgerChanged) this.#armLedgerFlush();
  }

  #addStoredBytes(change: number): void {
    this.#countStored();
    this.#storedBytes += change;
  }

  #countStored(): void {
    // A tombstone counts nothing.
    if (this.#isDeleting) return;
    countStored(this.#state.usage, this.#components.clock.now(), this.#storedBytes);
  }

  /** Counted by fronts: durable when it resolves. */
  async noteUsage(notes: readonly UsageNote[]): Promise<void> {
    // What a tenant used before it was deleted is asked for by nobody.
    if (!this.exists || this.#isDeleting) return;
    await this.#confirmed(this.#append({ kind: 'usage-noted', notes }));
  }

  /** The tenant and what it has used of this period; null where there is none. */
  standing(): TenantStanding | null {
    const { tenant, usage } = this.#state;
    if (tenant === null) return null;
    this.#countStored();
    return { ...tenant, used: usedNow(usage, this.#components.clock.now()) };
  }

  keyStanding(keyId: number): KeyStanding | null {
    const key = this.key(keyId);
    if (key === null) return null;
    const { queries, writes } = this.keyUse(keyId);
    return { ...key, usedQueries: queries, usedWrites: writes };
  }

  /** What a key has used of this period. */
  keyUse(keyId: number): ReturnType<typeof keyUse> {
    return keyUse(this.#state.usage, keyId, this.#components.clock.now());
  }

  usage(): UsageOfTenant {
    const tenant = must(this.#state.tenant, 'the tenant of a credential');
    this.#countStored();
    return {
      tenant,
      plan: this.#plan,
      usage: this.#state.usage,
      storedBytes: this.#storedBytes,
      nowMs: this.#components.clock.now(),
    };
  }

  /** Throws 402 where the allowance of the hosted embedding model is used up. */
  admitHosted(): void {
    const { plan, tenant, usage, nowMs } = this.usage();
    const up = usedUp(plan, tenant, usedNow(usage, nowMs), 'hosted-tokens');
    if (up !== null)
      throw new ApiError(
        up.unverified ? 'email_unverified' : 'payment_required',
        usedUpSentence(up, plan, periodOf(nowMs).end),
      );
  }

  get #plan(): Plan {
    return this.#components.plans[this.#state.tenant?.plan ?? 'free'];
  }

  #armLedgerFlush(): void {
    if (this.#ledgerFlushArmed) return;
    this.#ledgerFlushArmed = true;
    this.#components.clock.after(ledgerFlushMs, () => {
      this.#ledgerFlushArmed = false;
      this.flush().catch((error: unknown) => {
        const fields = { tenantId: this.tenantId, error: describeError(error) };
        this.#components.logger.error('the ledger of a tenant was not flushed', fields);
      });
    });
  }

  /** Names after `after`, in byte order, with one more than `limit` where there are more. */
  list(options: {
    readonly after: string;
    readonly limit: number;
    readonly allowed: (name: string) => boolean;
  }) {
    this.#sortedNames ??= [...this.#state.names.keys()].sort();
    const page: { readonly name: string; readonly entry: NameEntry }[] = [];
    for (let i = firstAfter(this.#sortedNames, options.after); i < this.#sortedNames.length; i++) {
      const name = must(this.#sortedNames[i], 'a name');
      if (!options.allowed(name)) continue;
      page.push({ name, entry: must(this.#state.names.get(name), name) });
      if (page.length > options.limit) break;
    }
    return page;
  }

  /**
   * Puts everything applied into the manifest, and tells the log. Not before the objects of deleted namespaces are
   * deleted: once the log has forgotten the deletion, nothing would lead to them.
   */
  flush(): Promise<void> {
    return this.#flushes.run(async () => {
      // Until there is none: what is deleted meanwhile would be in this manifest too.
      while (this.#drops.size + this.#claims.size > 0) {
        for (const [namespaceId, { name }] of [...this.#drops]) await this.#drop(namespaceId, name);
        await this.#dropClaims([...this.#claims]);
      }
      if (this.#isDeleting && !(await this.#dropAll())) return;
      if (this.isFlushed || this.#closed) return;
      this.#countStored();
      this.#unflushed = false;
      this.#ledgerChanged = false;
      const { log, random } = this.#components;
      const applied = new Map(this.#applied);
      const next: TenantManifest = {
        version: (this.#committed?.value.version ?? 0) + 1,
        nonce: randomHex(random, 16),
        owner: { logId: log.logId, view: log.viewVersion },
        applied,
        state: copyOfState(this.#state),
      };
      const key = paths.tenantManifest(this.tenantId);
      try {
        this.#committed = await commit(this.#components, tenantManifestCodec, {
          key,
          next,
          current: this.#committed,
        });
      } catch (error) {
        // Another process, or the actor before this one, has flushed since this one was opened.
        this.#unflushed = true;
        this.#closed = true;
        throw error;
      }
      for (const [logId, { seq, index }] of applied) {
        log.flushed({ tenantId: this.tenantId, namespaceId: '' }, { logId, seq, index });
      }
    });
  }

  /**
   * Step 2 of a deleted tenant's end. False where the process ends before it is done: what is left is then the next one's, for the
   * log still holds the event.
   */
  async #dropAll(): Promise<boolean> {
    // Once more: the thread of the actor that took the event may have ended before the fronts had heard.
    await this.#components.directory.forget(this.tenantId);
    const names = [...this.#state.names].map(([name, { namespaceId }]) => ({ name, namespaceId }));
    const isDone = await dropEach(names, async ({ name, namespaceId }) => {
      if (this.#draining || this.#closed) return false;
      await this.#components.directory.drop(this.tenantId, name, namespaceId);
      return true;
    });
    if (!isDone) return false;
    await this.#dropClaims([...this.#state.keys.values()].map(({ digest }) => digest));
    this.#state = tombstoneOf(this.#state);
    this.#sortedNames = null;
    this.#storedBytes = 0;
    this.#measure();
    return true;
  }

  async #dropClaims(digests: readonly string[]): Promise<void> {
    if (digests.length === 0) return;
    await deleteKeyClaims(this.#components.store, digests);
    for (const digest of digests) this.#claims.delete(digest);
  }

  async drain(): Promise<void> {
    this.#draining = true;
    await this.#applies.whenIdle();
    await this.flush();
  }

  #makeName(
    name: string,
    { vector, embed, namespaceId: given }: NewNamespace,
    remembering: Remembering<{ readonly createdAt: string }> | null = null,
  ): PendingName {
    this.#refusePastLimits();
    const namespaceId = given ?? randomHex(this.#components.random, 16);
    const createdAt = this.#nowText();
    const answer = remembering?.answer({ createdAt }) ?? null;
    const event = { kind: 'namespace-created', name, namespaceId, createdAt, vector, embed, answer } as const;
    const durable = this.#append(event).finally(() => this.#pendingNames.delete(name));
    remembering?.run.holdUntil(durable);
    durable.catch(() => {});
    const pending = { namespaceId, createdAt, vector, embed, durable };
    this.#pendingNames.set(name, pending);
    return pending;
  }

  /** Throws 402 `namespace_limit`. */
  #refusePastLimits(): void {
    const { max_namespaces, max_creates_day, name } = this.#plan;
    const pending = this.#pendingNames.size;
    if (max_namespaces !== null && this.#state.names.size + pending >= max_namespaces) {
      throw new ApiError(
        'namespace_limit',
        `the ${name} plan has at most ${max_namespaces} namespaces: delete some or upgrade to pro`,
      );
    }
    const today = dayOf(this.#components.clock.now());
    if (max_creates_day !== null && createdOn(this.#state.usage, today) + pending >= max_creates_day) {
      throw new ApiError(
        'namespace_limit',
        `the ${name} plan lets ${max_creates_day} namespaces a day be made: wait until tomorrow (UTC) or upgrade to pro`,
      );
    }
  }

  /** Resolves once the event is durable and applied. */
  async #append(event: TenantEvent): Promise<void> {
    if (this.#closed) throw new ActorClosed(`the actor of tenant ${this.tenantId} has closed`);
    this.#refuseLeaving();
    const epoch = this.#epoch;
    const head = {
      tenantId: this.tenantId,
      namespace: '',
      namespaceId: '',
      version: ++this.#submittedVersion,
      blob: null,
      detail: null,
    };
    const durable = this.#components.log.append(head, encodeTenantEvent(event), epoch);
    durable.catch(() => {});
    return this.#applies.run(async () => {
      try {
        const { logId, seq, index } = await durable;
        this.#apply(event, logId, { seq, index });
      } catch (error) {
        if (!isNotWritten(error)) {
          this.#closed = true;
          throw error;
        }
        if (epoch === this.#epoch) {
          this.#epoch++;
          this.#submittedVersion = this.#state.version;
        }
        throw error.refusal === 'busy'
          ? new ApiError('write_busy', 'the log has no room; nothing was written', { retryAfter: 1 })
          : new ApiError('unavailable', 'the log could not take this change; nothing was written', {
              retryAfter: 1,
            });
      }
    });
  }

  #replay(record: ReplayedRecord): void {
    const { logId, seq, index } = record.position;
    const watermark = this.#applied.get(logId);
    this.#unflushed = true;
    if (
      watermark !== undefined &&
      (seq < watermark.seq || (seq === watermark.seq && index <= watermark.index))
    )
      return;
    if (record.damage !== undefined) throw record.damage;
    this.#apply(decodeTenantEvent(record.payload), logId, { seq, index });
  }

  #apply(event: TenantEvent, logId: string, watermark: LogWatermark): void {
    if (event.kind === 'namespace-deleted') this.#beginDrop(event);
    if (event.kind === 'key-revoked') {
      const gone = this.#state.keys.get(event.keyId);
      if (gone !== undefined) this.#claims.add(gone.digest);
    }
    applyTenantEvent(this.#state, event);
    this.#applied.set(logId, watermark);
    this.#sortedNames = null;
    this.#unflushed = true;
    this.#measure();
  }

  #beginDrop({ name, namespaceId, taken }: Extract<TenantEvent, { kind: 'namespace-deleted' }>): void {
    const gone = this.#state.names.get(name);
    if (gone?.namespaceId !== namespaceId) return;
    this.#addStoredBytes(-gone.storedBytes);
    this.#drops.set(namespaceId, { name, known: gone.writes < taken.writes ? { ...gone, ...taken } : gone });
  }

  #nowText(): string {
    return new Date(this.#components.clock.now()).toISOString();
  }
}

function resolved(
  {
    namespaceId,
    createdAt,
    vector,
    embed,
  }: Pick<NameEntry, 'namespaceId' | 'createdAt' | 'vector' | 'embed'>,
  { created, documentsKnown = 0 }: { readonly created: boolean; readonly documentsKnown?: number },
): ResolvedNamespace {
  return { namespaceId, createdAt, vector, embed, created, documentsKnown };
}

function noSuchKey(): ApiError {
  return new ApiError('not_found', 'there is no such key');
}

function noSuchTenant(): ApiError {
  return new ApiError('not_found', 'There is no such tenant.');
}

function firstAfter(sorted: readonly string[], after: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
