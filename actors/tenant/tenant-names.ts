import { ApiError, noSuchNamespace } from '../../protocol/errors.ts';
import type { EmbedChange, NewNamespace, ResolvedNamespace } from '../../protocol/messages.ts';
import type { BranchRecord, LinkRecord, NameEntry, TenantEvent } from '../../protocol/stored-tenant.ts';
import { dayOf } from '../../src/accounts/usage.ts';
import { assert, must } from '../../src/base/assert.ts';
import { randomHex } from '../../src/base/random.ts';
import type { namespaceJson } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Remembering } from './idempotent-requests.ts';
import type { TenantAccount } from './tenant-account.ts';
import type { TenantDrops } from './tenant-drops.ts';
import type { TenantLog } from './tenant-log.ts';
import { entryOf, isDangling, isDeleting, linksAt } from './tenant-state.ts';
import { createdOn } from './tenant-usage.ts';

type Components = Pick<ActorComponents, 'clock' | 'random'>;

interface NamesParts {
  readonly log: TenantLog;
  readonly drops: TenantDrops;
  readonly account: TenantAccount;
}

/** What a name is made with. */
export interface NewName extends NewNamespace {
  /** Null where the name is a namespace of its own. */
  readonly linked: LinkRecord | null;
  /** Null where it begins empty, and then with nothing. */
  readonly branched: BranchRecord | null;
  readonly begins: Extract<TenantEvent, { kind: 'namespace-created' }>['begins'] | null;
  /** Left out: now. */
  readonly createdAt?: string;
}

const ofItsOwn = { linked: null, branched: null, begins: null };

export interface PendingName extends NewName {
  readonly namespaceId: string;
  readonly createdAt: string;
  readonly durable: Promise<void>;
}

/**
 * The names of a tenant's namespaces. A name that is being made is known as pending, so that two writers who race to make it
 * get one namespace.
 */
export class TenantNames {
  readonly #components: Components;
  readonly #parts: NamesParts;
  readonly #pending = new Map<string, PendingName>();
  #sorted: readonly string[] | null = null;

  constructor(components: Components, parts: NamesParts) {
    this.#components = components;
    this.#parts = parts;
  }

  get #names(): Map<string, NameEntry> {
    return this.#parts.log.state.names;
  }

  /** The state's names are others from this turn on. */
  changed(): void {
    this.#sorted = null;
  }

  /** Answers whoever makes the name at once: `confirm` waits until it is durable. All others wait here. */
  async resolve(name: string, create: NewNamespace | null): Promise<ResolvedNamespace | null> {
    const { state } = this.#parts.log;
    // Nothing may be opened any more of what is being deleted.
    if (isDeleting(state)) return null;
    const known = this.#names.get(name);
    if (known !== undefined) {
      const documentsKnown = known.docsWritten;
      return resolved(known, { created: false, documentsKnown, isDangling: isDangling(state, known) });
    }
    const pending = this.#pending.get(name);
    if (pending !== undefined) {
      // Who did not make it asks for no confirmation: the tenant may move away before its record is in the log, and the name with it.
      await this.#known(pending);
      return resolved(pending, { created: false });
    }
    if (create === null || state.tenant === null) return null;
    return resolved(this.make(name, { ...create, ...ofItsOwn }), { created: true });
  }

  async confirm(name: string, namespaceId: string): Promise<void> {
    const pending = this.#pending.get(name);
    if (pending?.namespaceId === namespaceId) return pending.durable;
    if (entryOf(this.#parts.log.state, { name, namespaceId }) === undefined) throw noSuchNamespace(name);
  }

  async create(
    name: string,
    options: NewNamespace,
    remembering: Remembering<{ readonly createdAt: string }> | null = null,
  ): Promise<ResolvedNamespace> {
    this.refuseTaken(name);
    const pending = this.make(name, { ...options, ...ofItsOwn }, remembering);
    await this.#parts.log.confirmed(pending.durable);
    return resolved(pending, { created: true });
  }

  /** Throws 409 where the name is taken, or is being made. */
  refuseTaken(name: string): void {
    if (!this.#names.has(name) && !this.#pending.has(name)) return;
    throw new ApiError('conflict', `a namespace named "${name}" exists already`, {
      fields: { name: 'exists already' },
    });
  }

  /** The Namespace resource, as far as the tenant knows it: a link that follows is at the version that was heard of last. */
  shown(name: string, entry: NameEntry): Parameters<typeof namespaceJson>[0] {
    const { linked, ...rest } = entry;
    if (linked === undefined) return { name, ...rest };
    const { source, sourceId, version, follows } = linked;
    const nothingWritten = { name, ...rest, docsWritten: 0, bytesWritten: 0 };
    const heard = follows
      ? entryOf(this.#parts.log.state, { name: source, namespaceId: sourceId })
      : undefined;
    const gone = isDangling(this.#parts.log.state, entry) ? { gone: true } : {};
    const shownLink = { source, version: Math.max(version, heard?.writes ?? 0), follows, ...gone };
    const { vector, embed } = heard ?? entry;
    return { ...nothingWritten, vector, embed, linked: shownLink };
  }

  /** Changes the model of the namespace. Nothing changes where the name is another namespace's by now. */
  async setEmbed(name: string, { namespaceId, embed }: EmbedChange): Promise<void> {
    const { log } = this.#parts;
    await this.confirm(name, namespaceId);
    await log.confirmed(log.append({ kind: 'namespace-embedding', name, namespaceId, embed }));
  }

  async delete(name: string): Promise<void> {
    const { log, drops } = this.#parts;
    const { clock } = this.#components;
    const pending = this.#pending.get(name);
    if (pending !== undefined) await this.#known(pending);
    const known = this.#names.get(name);
    if (known === undefined) throw noSuchNamespace(name);
    const { namespaceId, writes, docsWritten, bytesWritten } = known;
    const dropped = log
      .append({
        kind: 'namespace-deleted',
        name,
        namespaceId,
        taken: { writes, docsWritten, bytesWritten },
        day: dayOf(clock.now()),
      })
      // Links that were being made when this began are in the log before it, and end with it.
      .then(() => drops.dropInTime([{ name, namespaceId }, ...linksAt(log.state, namespaceId)]));
    await log.confirmed(dropped);
  }

  /** Names after `after`, in byte order, with one more than `limit` where there are more. */
  list(options: {
    readonly after: string;
    readonly limit: number;
    readonly allowed: (name: string) => boolean;
  }) {
    this.#sorted ??= [...this.#names.keys()].sort();
    const page: { readonly name: string; readonly entry: NameEntry }[] = [];
    for (let i = firstAfter(this.#sorted, options.after); i < this.#sorted.length; i++) {
      const name = must(this.#sorted[i], 'a name');
      if (!options.allowed(name)) continue;
      page.push({ name, entry: must(this.#names.get(name), name) });
      if (page.length > options.limit) break;
    }
    return page;
  }

  /** Waits until a name that is being made is there or not. */
  async #known(pending: PendingName): Promise<void> {
    try {
      await this.#parts.log.confirmed(pending.durable);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'write_unknown') throw error;
      const sentence = 'this namespace is being made, and object storage does not answer; nothing was done';
      throw new ApiError('unavailable', sentence, { retryAfter: 1 });
    }
  }

  /** Makes a name, which is pending until its event is durable. Throws where it is one too many. */
  make(
    name: string,
    { vector, embed, namespaceId: given, linked, branched, begins, createdAt: givenAt }: NewName,
    remembering: Remembering<{ readonly createdAt: string }> | null = null,
  ): PendingName {
    this.refusePastLimits();
    this.#parts.drops.refuseEnding(name);
    const { clock, random } = this.#components;
    const namespaceId = given ?? randomHex(random, 16);
    const isFree = !this.#names.has(name) && !this.#pending.has(name);
    assert(isFree, () => `the name of namespace ${namespaceId} is taken`);
    const createdAt = givenAt ?? new Date(clock.now()).toISOString();
    const answer = remembering?.answer({ createdAt }) ?? null;
    const durable = this.#parts.log
      .append(
        {
          kind: 'namespace-created',
          name,
          namespaceId,
          createdAt,
          vector,
          embed,
          answer,
          ...(linked === null ? {} : { linked }),
          ...(branched === null ? {} : { branched }),
          ...(begins === null || begins === undefined ? {} : { begins }),
        },
        // Two manifests were stored for it by now: its name does not wait for a group that is not due.
        { isUrgent: begins !== null && begins !== undefined },
      )
      .finally(() => this.#pending.delete(name));
    remembering?.run.holdUntil(durable);
    durable.catch(() => {});
    const pending = { namespaceId, createdAt, vector, embed, linked, branched, begins, durable };
    this.#pending.set(name, pending);
    return pending;
  }

  /** Throws 402 `namespace_limit`. */
  refusePastLimits(): void {
    const { log, account } = this.#parts;
    const { max_namespaces, max_creates_day, name } = account.plan;
    const pending = this.#pending.size;
    if (max_namespaces !== null && this.#names.size + pending >= max_namespaces) {
      throw new ApiError(
        'namespace_limit',
        `the ${name} plan has at most ${max_namespaces} namespaces: delete some or upgrade to pro`,
      );
    }
    const today = dayOf(this.#components.clock.now());
    if (max_creates_day !== null && createdOn(log.state.usage, today) + pending >= max_creates_day) {
      throw new ApiError(
        'namespace_limit',
        `the ${name} plan lets ${max_creates_day} namespaces a day be made: wait until tomorrow (UTC) or upgrade to pro`,
      );
    }
  }
}

function resolved(
  {
    namespaceId,
    createdAt,
    vector,
    embed,
    linked,
    branched,
  }: Pick<NameEntry, 'namespaceId' | 'createdAt' | 'vector' | 'embed'> & {
    readonly linked?: LinkRecord | null | undefined;
    readonly branched?: BranchRecord | null | undefined;
  },
  {
    created,
    documentsKnown = 0,
    isDangling = false,
  }: { readonly created: boolean; readonly documentsKnown?: number; readonly isDangling?: boolean },
): ResolvedNamespace {
  const kind = { linked: linked ?? null, isDangling, branched: branched ?? null };
  return { namespaceId, createdAt, vector, embed, created, documentsKnown, ...kind };
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
