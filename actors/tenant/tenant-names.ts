import { ApiError, invalidField, noSuchNamespace } from '../../protocol/errors.ts';
import type { EmbedChange, NewNamespace, ResolvedNamespace } from '../../protocol/messages.ts';
import type { Namespace } from '../../protocol/namespace.ts';
import type { LinkRecord, NameEntry } from '../../protocol/stored-tenant.ts';
import { dayOf } from '../../src/accounts/usage.ts';
import { assert, must } from '../../src/base/assert.ts';
import { randomHex } from '../../src/base/random.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Remembering } from './idempotent-requests.ts';
import { dropWaitMs } from './keep-dropping.ts';
import type { TenantAccount } from './tenant-account.ts';
import type { TenantDrops } from './tenant-drops.ts';
import type { TenantLog } from './tenant-log.ts';
import { entryOf, isDeleting } from './tenant-state.ts';
import { createdOn } from './tenant-usage.ts';

type Components = Pick<ActorComponents, 'clock' | 'random' | 'directory'>;

interface NamesParts {
  readonly log: TenantLog;
  readonly drops: TenantDrops;
  readonly account: TenantAccount;
}

/** What a name is made with. */
interface NewName extends NewNamespace {
  /** Null where the name is a namespace of its own. */
  readonly linked: LinkRecord | null;
}

interface PendingName extends NewName {
  readonly namespaceId: string;
  readonly createdAt: string;
  readonly durable: Promise<void>;
}

/** A link that was made, with what its source has of vectors. */
export interface MadeLink extends Pick<NameEntry, 'createdAt' | 'vector' | 'embed'> {
  readonly linked: LinkRecord;
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

  /** Answers at once, also where the name is only being made: `confirm` waits until it is durable. */
  async resolve(name: string, create: NewNamespace | null): Promise<ResolvedNamespace | null> {
    const { state } = this.#parts.log;
    // Nothing may be opened any more of what is being deleted.
    if (isDeleting(state)) return null;
    const known = this.#names.get(name);
    if (known !== undefined) return resolved(known, { created: false, documentsKnown: known.docsWritten });
    const pending = this.#pending.get(name);
    if (pending !== undefined) {
      if (create === null) await this.#known(pending);
      return resolved(pending, { created: false });
    }
    if (create === null || state.tenant === null) return null;
    return resolved(this.#make(name, { ...create, linked: null }), { created: true });
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
    this.#refuseTaken(name);
    const pending = this.#make(name, { ...options, linked: null }, remembering);
    await this.#parts.log.confirmed(pending.durable);
    return resolved(pending, { created: true });
  }

  /**
   * Makes a link. Its source is the namespace of that name or, where that is a link itself, the source of that one: so no link
   * leads to a link, and none to itself.
   */
  async link(
    name: string,
    source: string,
    remembering: Remembering<MadeLink> | null = null,
  ): Promise<MadeLink> {
    if (name === source)
      throw invalidField('source', 'a link needs another namespace as its source, and this is its own name');
    this.#refuseTaken(name);
    const target = await this.#targetOf(source);
    const { log } = this.#parts;
    const version = await this.#components.directory.versionOf(log.tenantId, target.name, target.namespaceId);
    const entry = entryOf(log.state, target);
    if (version === null || entry === undefined) throw noSuchNamespace(source);
    // Another request may have made the name meanwhile.
    this.#refuseTaken(name);
    const { vector, embed } = entry;
    const linked = { source: target.name, sourceId: target.namespaceId, version, follows: true };
    const show = remembering === null ? null : withLink(remembering, { linked, vector, embed });
    const { createdAt, durable } = this.#make(name, { vector: null, embed: null, linked }, show);
    await log.confirmed(durable);
    return { createdAt, linked, vector, embed };
  }

  async #targetOf(source: string): Promise<{ readonly name: string; readonly namespaceId: string }> {
    const found = await this.resolve(source, null);
    if (found === null) throw noSuchNamespace(source);
    const { linked, namespaceId } = found;
    return linked === null
      ? { name: source, namespaceId }
      : { name: linked.source, namespaceId: linked.sourceId };
  }

  #refuseTaken(name: string): void {
    if (!this.#names.has(name) && !this.#pending.has(name)) return;
    throw new ApiError('conflict', `a namespace named "${name}" exists already`, {
      fields: { name: 'exists already' },
    });
  }

  /** The link as an answer shows it: one that follows is at the version that the tenant has heard of last. */
  shownLink({ linked }: NameEntry): Namespace['linked'] {
    if (linked === undefined) return undefined;
    const { source, sourceId, version, follows } = linked;
    const heard = follows
      ? entryOf(this.#parts.log.state, { name: source, namespaceId: sourceId })
      : undefined;
    return { source, version: Math.max(version, heard?.writes ?? 0), follows };
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
      .then(() => settledWithin(clock, drops.dropSoon(namespaceId, name), dropWaitMs));
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

  #make(
    name: string,
    { vector, embed, namespaceId: given, linked }: NewName,
    remembering: Remembering<{ readonly createdAt: string }> | null = null,
  ): PendingName {
    this.#refusePastLimits();
    const { clock, random } = this.#components;
    const namespaceId = given ?? randomHex(random, 16);
    const isFree = !this.#names.has(name) && !this.#pending.has(name);
    assert(isFree, () => `the name of namespace ${namespaceId} is taken`);
    const createdAt = new Date(clock.now()).toISOString();
    const answer = remembering?.answer({ createdAt }) ?? null;
    const durable = this.#parts.log
      .append({
        kind: 'namespace-created',
        name,
        namespaceId,
        createdAt,
        vector,
        embed,
        answer,
        ...(linked === null ? {} : { linked }),
      })
      .finally(() => this.#pending.delete(name));
    remembering?.run.holdUntil(durable);
    durable.catch(() => {});
    const pending = { namespaceId, createdAt, vector, embed, linked, durable };
    this.#pending.set(name, pending);
    return pending;
  }

  /** Throws 402 `namespace_limit`. */
  #refusePastLimits(): void {
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
  }: Pick<NameEntry, 'namespaceId' | 'createdAt' | 'vector' | 'embed'> & {
    readonly linked?: LinkRecord | null | undefined;
  },
  { created, documentsKnown = 0 }: { readonly created: boolean; readonly documentsKnown?: number },
): ResolvedNamespace {
  return { namespaceId, createdAt, vector, embed, created, documentsKnown, linked: linked ?? null };
}

/** What is known of a link when its name is made; when that was is known last. */
function withLink(
  { run, answer }: Remembering<MadeLink>,
  link: Omit<MadeLink, 'createdAt'>,
): Remembering<{ readonly createdAt: string }> {
  return { run, answer: ({ createdAt }) => answer({ createdAt, ...link }) };
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
