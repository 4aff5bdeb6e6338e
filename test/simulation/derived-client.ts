import type { Chance } from './chance.ts';
import { type Place, patienceMs, type Request } from './clients.ts';
import type { Derived, DerivedKind, DerivedPlaces } from './derived-places.ts';
import type { SimulatedProcess } from './process.ts';
import type { World } from './world.ts';

/** The share of a client's requests that have to do with links and branches. */
const share = 0.3;
const weights = { follow: 1, pin: 2, branch: 2, read: 9, drop: 0.7 };
/** Whoever has made a branch or a pin looks at it until it shows something, so often at most. */
const looksMax = 60;
const lookAgainMs = 400;

/** What a client does with links and branches. */
export class DerivedClient {
  readonly #world: World;
  readonly #derived: DerivedPlaces;
  readonly #chance: Chance;

  constructor(world: World, derived: DerivedPlaces, chance: Chance) {
    this.#world = world;
    this.#derived = derived;
    this.#chance = chance;
  }

  /** False where it does nothing this time. */
  async askOnce(process: SimulatedProcess, token: string): Promise<boolean> {
    const chance = this.#chance;
    if (!chance.happens(share)) return false;
    const kind = chance.weighted(weights);
    if (kind === 'read' || kind === 'drop') return this.#use(process, token, kind);
    if (this.#derived.isFull) return false;
    await this.#make(process, token, kind);
    return true;
  }

  async #use(process: SimulatedProcess, token: string, kind: 'read' | 'drop'): Promise<boolean> {
    const derived = this.#derived.pick(this.#chance);
    if (derived === null || (kind === 'read' && derived.kind === 'branch')) return false;
    if (kind === 'read') await this.look(process, token, derived);
    else {
      const { tenantId, namespace } = derived;
      const asked = { tenantId, argument: namespace };
      const request = {
        operation: 'deleteNamespace',
        namespace: '',
        asked,
        change: { kind: 'drop' },
      } as const;
      await this.#world.ask({ process, place: derived, token, request, patienceMs });
    }
    return true;
  }

  async #make(process: SimulatedProcess, token: string, kind: DerivedKind): Promise<void> {
    const chance = this.#chance;
    const from = this.#derived.pickSource(chance);
    const { tenantId } = from;
    const version = await this.#versionFor(process, token, from, kind);
    const place: Place = { tenantId, namespace: this.#derived.nextName(kind) };
    const body = { source: from.namespace, ...(version === null ? {} : { version }) };
    const request: Request = {
      operation: kind === 'branch' ? 'branchNamespace' : 'linkNamespace',
      namespace: '',
      asked: { tenantId, argument: place.namespace, body },
      change: null,
    };
    const { scheduler } = this.#world;
    const startMs = scheduler.nowMs;
    const answer = await this.#world.ask({ process, place, token, request, patienceMs });
    const heard = { process, place, token, request, startMs, endMs: scheduler.nowMs, answer };
    const made = this.#derived.made(heard, kind, from);
    if (made === null || made.kind === 'follow') return;
    for (let looks = 0; made.content === null && looks < looksMax; looks++) {
      const asked = looks === 0 && process.serving ? process : this.#world.processFor(chance);
      if (asked !== null) await this.look(asked, `${token}-look${looks}`, made);
      if (made.content === null) await scheduler.sleep(lookAgainMs);
    }
  }

  /** The version that is there now, or one that somebody holds; null for whatever is there. */
  async #versionFor(
    process: SimulatedProcess,
    token: string,
    from: Place,
    kind: DerivedKind,
  ): Promise<number | null> {
    if (kind === 'follow') return null;
    const chance = this.#chance;
    if (chance.happens(0.3)) return this.#derived.heldVersion(from, chance);
    if (kind === 'branch') return null;
    const { tenantId, namespace } = from;
    const request: Request = { operation: 'count', namespace, asked: { tenantId, body: {} }, change: null };
    const derived = this.#derived.all.find(
      (each) => each.tenantId === tenantId && each.namespace === namespace,
    );
    const answer = await this.#world.ask({
      process,
      place: from,
      token,
      request,
      patienceMs,
      ...(derived === undefined || derived.kind === 'branch' ? {} : { derived }),
    });
    return answer?.status === 200 ? answer.body.version : null;
  }

  async look(process: SimulatedProcess, token: string, derived: Derived): Promise<void> {
    const { tenantId, namespace } = derived;
    const chance = this.#chance;
    const isFirst = derived.kind !== 'follow' && derived.content === null;
    const operation = isFirst || chance.happens(0.6) ? 'search' : chance.pick(['count', 'getDocument']);
    const asked =
      operation === 'getDocument'
        ? { tenantId, argument: `s${chance.integer(0, 6)}` }
        : { tenantId, body: operation === 'count' ? {} : { limit: 1_000 } };
    const request: Request = { operation, namespace, asked, change: null };
    await this.#world.ask({ process, place: derived, token, request, patienceMs, derived });
  }
}
