/**
 * Links to namespaces and branches of them. A link that follows its source is a name and nothing else. A link that stays at a version, and
 * a branch, begin as their source was (namespace/share-namespace.ts): the owner of the source pins what they need and stores
 * their manifest, and then the name is made here.
 */
import { ApiError, invalidField, noSuchNamespace } from '../../protocol/errors.ts';
import type { SharedNamespace } from '../../protocol/messages.ts';
import type { BranchRecord, LinkRecord, NameEntry } from '../../protocol/stored-tenant.ts';
import { describeError } from '../../src/base/log.ts';
import { randomHex } from '../../src/base/random.ts';
import type { ActorComponents } from '../actor/components.ts';
import { refuseDangling } from '../actor/directory.ts';
import type { Remembering } from './idempotent-requests.ts';
import type { TenantLog } from './tenant-log.ts';
import type { NewName, TenantNames } from './tenant-names.ts';
import { entryOf } from './tenant-state.ts';

type Components = Pick<ActorComponents, 'clock' | 'random' | 'directory' | 'logger'>;

/** What a client wants to link to, or to begin with. */
export interface Wanted {
  readonly source: string;
  readonly version?: number | undefined;
}

/** A link or branch that was made. */
export interface MadeOf extends Pick<NameEntry, 'createdAt' | 'vector' | 'embed'> {
  readonly begins: NewName['begins'];
  readonly linked: LinkRecord | null;
  readonly branched: BranchRecord | null;
}

interface Named {
  readonly name: string;
  readonly namespaceId: string;
}

/** What the name of a source leads to, which is never a link that follows another one. */
interface Origin {
  /** The namespace that answers call the source. */
  readonly source: Named;
  /** The version of the link that was named as the source; null where it does not stay at one. */
  readonly stays: number | null;
  /** Who has the documents: the source, or the link that stays. */
  readonly from: Named;
  readonly entry: NameEntry;
}

/** Others that may be at a version that the source has left: a link is, a branch that was not written to is. */
const holdersAskedMax = 8;

export class TenantLinks {
  readonly #components: Components;
  readonly #log: TenantLog;
  readonly #names: TenantNames;

  constructor(
    components: Components,
    { log, names }: { readonly log: TenantLog; readonly names: TenantNames },
  ) {
    this.#components = components;
    this.#log = log;
    this.#names = names;
  }

  async link(name: string, wanted: Wanted, remembering: Remembering<MadeOf> | null): Promise<MadeOf> {
    const origin = await this.#begin(name, wanted);
    const { source, entry } = origin;
    const { vector, embed } = entry;
    const to = { source: source.name, sourceId: source.namespaceId };
    if (wanted.version !== undefined || origin.stays !== null) {
      const linkedAt = (version: number) => ({ linked: { ...to, version, follows: false }, branched: null });
      return this.#share(name, wanted, { origin, kindAt: linkedAt, remembering });
    }
    const { directory } = this.#components;
    const version = await directory.versionOf(this.#log.tenantId, source.name, source.namespaceId);
    if (version === null) throw noSuchNamespace(wanted.source);
    const linked = { ...to, version, follows: true };
    const made = { vector, embed, linked, branched: null, begins: null };
    const pending = this.#names.make(
      name,
      { ...made, vector: null, embed: null },
      withMade(remembering, made),
    );
    await this.#log.confirmed(pending.durable);
    return { ...made, createdAt: pending.createdAt };
  }

  async branch(name: string, wanted: Wanted, remembering: Remembering<MadeOf> | null): Promise<MadeOf> {
    const origin = await this.#begin(name, wanted);
    const { source } = origin;
    const branchedAt = (version: number) => ({
      linked: null,
      branched: { source: source.name, sourceId: source.namespaceId, version },
    });
    return this.#share(name, wanted, { origin, kindAt: branchedAt, remembering });
  }

  /** Refuses what can't be made before anything is. */
  async #begin(name: string, { source, version }: Wanted): Promise<Origin> {
    if (name === source)
      throw invalidField('source', 'must be another namespace than the one that is to be made');
    this.#names.refuseTaken(name);
    this.#names.refusePastLimits();
    const origin = await this.#originOf(source);
    if (origin.stays !== null && version !== undefined && version !== origin.stays) throw notHeld(version);
    return origin;
  }

  async #originOf(name: string): Promise<Origin> {
    const found = refuseDangling(name, await this.#names.resolve(name, null));
    if (found === null) throw noSuchNamespace(name);
    const { linked, namespaceId } = found;
    const source =
      linked === null ? { name, namespaceId } : { name: linked.source, namespaceId: linked.sourceId };
    const stays = linked === null || linked.follows ? null : linked.version;
    const from = stays === null ? source : { name, namespaceId };
    const entry = entryOf(this.#log.state, from);
    if (entry === undefined) throw noSuchNamespace(name);
    return { source, stays, from, entry };
  }

  async #share(
    name: string,
    wanted: Wanted,
    {
      origin,
      kindAt,
      remembering,
    }: {
      readonly origin: Origin;
      readonly kindAt: (version: number) => Pick<MadeOf, 'linked' | 'branched'>;
      readonly remembering: Remembering<MadeOf> | null;
    },
  ): Promise<MadeOf> {
    const { clock, random } = this.#components;
    const createdAt = new Date(clock.now()).toISOString();
    const holder = { name, namespaceId: randomHex(random, 16), createdAt };
    const { vector, embed } = origin.entry;
    try {
      const { version, ...taken } = await this.#beginAs(origin, wanted, holder);
      const made = { vector, embed, begins: { writes: version, ...taken }, ...kindAt(version) };
      // Another request may have made the name meanwhile.
      this.#names.refuseTaken(name);
      const making = { ...made, namespaceId: holder.namespaceId, createdAt };
      const pending = this.#names.make(name, making, withMade(remembering, made));
      await this.#log.confirmed(pending.durable);
      return { ...made, createdAt };
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'write_unknown') this.#abandon(holder);
      throw error;
    }
  }

  async #beginAs(
    origin: Origin,
    { source, version }: Wanted,
    holder: Named & { readonly createdAt: string },
  ): Promise<SharedNamespace> {
    const { directory } = this.#components;
    const others = version === undefined ? [] : this.#holdersOf(origin.source, version);
    for (const { name, namespaceId } of [origin.from, ...others]) {
      const request = { holder, version: version ?? null };
      const shared = await directory.share(this.#log.tenantId, name, namespaceId, request);
      if (shared !== null) return shared;
    }
    throw version === undefined ? noSuchNamespace(source) : notHeld(version);
  }

  /** Finds the namespaces that began at that version of the source: links first, because they are still at it. */
  #holdersOf({ namespaceId }: Named, version: number): Named[] {
    const links: Named[] = [];
    const branches: Named[] = [];
    for (const [name, { namespaceId: id, linked, branched }] of this.#log.state.names) {
      const isAt = (record: LinkRecord | BranchRecord | undefined) =>
        record?.sourceId === namespaceId && record.version === version;
      if (isAt(linked) && linked?.follows === false) links.push({ name, namespaceId: id });
      else if (isAt(branched)) branches.push({ name, namespaceId: id });
    }
    return [...links, ...branches].slice(0, holdersAskedMax);
  }

  /** Deletes what was pinned and stored for a namespace whose name was not made. What can't go now is found by the sweep. */
  #abandon({ name, namespaceId }: Named): void {
    const { directory, logger } = this.#components;
    directory.drop(this.#log.tenantId, name, namespaceId).catch((error: unknown) =>
      logger.info('what was begun for a name that was not made is left to the sweep', {
        namespaceId,
        error: describeError(error),
      }),
    );
  }
}

/** Makes what is remembered of a link or a branch from the time of its name's making, which is known last. */
function withMade(
  remembering: Remembering<MadeOf> | null,
  made: Omit<MadeOf, 'createdAt'>,
): Remembering<{ readonly createdAt: string }> | null {
  if (remembering === null) return null;
  const { run, answer } = remembering;
  return { run, answer: ({ createdAt }) => answer({ ...made, createdAt }) };
}

function notHeld(version: number): ApiError {
  return invalidField(
    'version',
    `${version} is neither the present version nor one that another link or branch holds: leave it out for the present one`,
  );
}
