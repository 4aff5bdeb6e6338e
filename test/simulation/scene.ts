import { placementKey } from '../../protocol/placement.ts';
import { must } from '../../src/base/assert.ts';
import { isOwn } from '../../src/base/owners.ts';
import { type ClusterView, decodeView } from '../../src/cluster/view.ts';
import { paths } from '../../src/object-store/paths.ts';
import { Chance } from './chance.ts';
import { FaultPlan } from './faults.ts';
import { PeerNetwork } from './peer-network.ts';
import { type Answer, answerInTime, SimulatedProcess } from './process.ts';
import { Scheduler } from './scheduler.ts';
import { SimulatedServer } from './simulated-server.ts';
import type { Met, StoreCall } from './simulated-store.ts';
import { StoredObjects } from './stored-objects.ts';

const seed = 1;
const commitMs = 20;
const lookEveryMs = 5;
const untilMsMax = 60_000;
const patienceMs = 20_000;
/** So many are tried for one that belongs to a server. */
const numbersTried = 1_000;

/**
 * A directed world: production servers as in every simulated one, without chance. What each call to the store meets is decided by the
 * scene, so that one order of events happens which worlds hardly meet.
 */
export class Scene {
  readonly scheduler = new Scheduler();
  readonly objects = new StoredObjects(() => this.scheduler.nowMs);
  readonly #faults = new FaultPlan(new Chance(seed, 1));
  readonly network = new PeerNetwork(this.scheduler, new Chance(seed, 2), this.#faults);
  readonly servers: readonly SimulatedServer[];
  readonly #rules: { readonly serverId: string; readonly rule: (call: StoreCall) => Met | null }[] = [];
  #processes = 0;
  /** The tenant that everything is asked of. */
  tenantId = 1;

  constructor(...ids: readonly string[]) {
    this.servers = ids.map((id) => this.#server(id));
  }

  /** Runs the scene to its end, in virtual time. */
  static run(ids: readonly string[], play: (scene: Scene) => Promise<void>): Promise<void> {
    const scene = new Scene(...ids);
    return scene.scheduler.run(play(scene));
  }

  server(id: string): SimulatedServer {
    return must(
      this.servers.find((server) => server.id === id),
      'a server of the scene',
    );
  }

  process(id: string): SimulatedProcess {
    return must(this.server(id).current, 'a process that serves');
  }

  /** Starts them one after the other, each until it is active and everybody knows. The first one makes the tenant. */
  async start(...ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await this.server(id).startNext();
      if (this.serving.length === 1) await this.process(id).createTenant(this.tenantId);
      await this.until(`${id} is active, and known so`, () =>
        this.serving.every((process) => isActive(viewOf(process), id)),
      );
    }
  }

  get serving(): readonly SimulatedProcess[] {
    return this.servers.flatMap(({ current }) => (current?.serving === true ? [current] : []));
  }

  /** From now on calls of the server's processes to the store meet what the rule says; the answer ends that. */
  meets(serverId: string, rule: (call: StoreCall) => Met | null): () => void {
    const added = { serverId, rule };
    this.#rules.push(added);
    return () => void this.#rules.splice(this.#rules.indexOf(added), 1);
  }

  /** Nothing goes between the server and the others; the answer ends that. */
  isolate(id: string): () => void {
    const others = this.servers.filter((other) => other.id !== id);
    const joined = others.map((other) => this.network.isolate(id, other.id));
    return () => {
      for (const join of joined) join();
    };
  }

  /** The view that is stored. */
  get view(): ClusterView {
    return decodeView(must(this.objects.find(paths.view), 'a view').bytes);
  }

  /** A name that belongs to the owner of each of these, where the servers beside it, and no others, own something. */
  nameOf(...owners: readonly Ownership[]): string {
    return `n${numberWhere((number) => owners.every((each) => owns(each, this.tenantId, `n${number}`)))}`;
  }

  /** Has a tenant that belongs to the owner of each of these. Before anything is started. */
  useTenantOf(...owners: readonly Ownership[]): void {
    this.tenantId = numberWhere((number) => number > 0 && owners.every((each) => owns(each, number, '')));
  }

  /** Null where no answer comes in time. */
  ask(
    process: SimulatedProcess,
    operation: string,
    namespace: string,
    asked: object,
  ): Promise<Answer | null> {
    const answering = process.ask(operation, namespace, { tenantId: this.tenantId, ...asked });
    return answerInTime(process, answering, { scheduler: this.scheduler, patienceMs });
  }

  write(process: SimulatedProcess, namespace: string, id: string, text: string): Promise<Answer | null> {
    return this.ask(process, 'putDocuments', namespace, { body: { docs: [{ id, text }] } });
  }

  /** The text of a document; null where it is not there, and undefined where nobody says so. */
  async read(process: SimulatedProcess, namespace: string, id: string): Promise<string | null | undefined> {
    const answer = await this.ask(process, 'getDocument', namespace, { argument: id });
    if (answer?.status === 200) return answer.body.text;
    return answer?.status === 404 ? null : undefined;
  }

  async until(what: string, isSo: () => boolean, withinMs = untilMsMax): Promise<void> {
    const untilMs = this.scheduler.nowMs + withinMs;
    while (!isSo()) {
      if (this.scheduler.nowMs > untilMs) throw new Error(`not within ${withinMs} ms: ${what}`);
      await this.scheduler.sleep(lookEveryMs);
    }
  }

  #server(id: string): SimulatedServer {
    return new SimulatedServer(id, {
      scheduler: this.scheduler,
      makeProcess: () => this.#process(id),
      tell: () => {},
      startFailed: (_, error) => {
        throw error;
      },
      onStuck: () => {},
    });
  }

  #process(serverId: string): SimulatedProcess {
    const number = ++this.#processes;
    return new SimulatedProcess({
      number,
      serverId,
      network: this.network,
      scheduler: this.scheduler,
      storeNetwork: {
        scheduler: this.scheduler,
        objects: this.objects,
        chance: new Chance(seed, 1_000 + number),
        faults: this.#faults,
        note: () => {},
        meets: (call) => {
          for (const each of this.#rules) {
            const met = each.serverId === serverId ? each.rule(call) : null;
            if (met !== null) return met;
          }
          return null;
        },
      },
      chance: new Chance(seed, 100_000 + number),
      commitMs,
      preparesMoves: false,
    });
  }
}

/** The view as a process knows it. */
export function viewOf(process: SimulatedProcess): ClusterView {
  return must(process.composed?.follower, 'a process that follows the view').view;
}

export function isActive({ members }: Pick<ClusterView, 'members'>, id: string): boolean {
  return members.some(({ serverId, state }) => serverId === id && state === 'active');
}

/** Who owns something where these servers do. */
export interface Ownership {
  readonly owner: string;
  readonly among: readonly string[];
}

function owns({ owner, among }: Ownership, tenantId: number, namespace: string): boolean {
  return isOwn({ servers: among, self: owner }, placementKey(tenantId, namespace));
}

function numberWhere(isSo: (number: number) => boolean): number {
  for (let number = 0; number < numbersTried; number++) if (isSo(number)) return number;
  throw new Error('nothing belongs to them');
}
