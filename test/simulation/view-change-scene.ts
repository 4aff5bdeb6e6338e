import { limits } from '../../protocol/limits.ts';
import { placementKey } from '../../protocol/placement.ts';
import { must } from '../../src/base/assert.ts';
import { isOwn } from '../../src/base/owners.ts';
import { type ClusterView, ownersOf } from '../../src/cluster/view.ts';
import { paths } from '../../src/object-store/paths.ts';
import { Chance } from './chance.ts';
import { FaultPlan, type StoreOperation } from './faults.ts';
import { IdleObjects, idleName, idleTenant } from './idle-objects.ts';
import { PeerNetwork } from './peer-network.ts';
import { type Answer, answerInTime, SimulatedProcess } from './process.ts';
import { Scheduler } from './scheduler.ts';
import { SimulatedServer } from './simulated-server.ts';

const seed = 1;
const commitMs = 250;
const namespacesOfIdleTenant = 1_000;
const namespacesOfActiveTenant = 10;
/** From a change on it is counted so long: by then an eviction is over, and who waited has been answered. */
export const windowMs = 12_000;
const probeEveryMs = 200;
const patienceMs = 15_000;
const eventsMax = 100_000_000;
const idleLookedAt = 20;
/** Between two measurements. */
const settleMs = 5_000;
const lookEveryMs = 5;
const untilMsMax = 120_000;

interface Cost {
  gets: number;
  bytesRead: number;
  puts: number;
  bytesWritten: number;
  deletes: number;
  lists: number;
  /** Polls of the view and of leases, which are there without a change too. */
  polls: number;
}

const nothing: Cost = { gets: 0, bytesRead: 0, puts: 0, bytesWritten: 0, deletes: 0, lists: 0, polls: 0 };

/** What one change cost, and how those fared who wrote meanwhile. */
export interface ViewChange {
  readonly servers: number;
  readonly idle: number;
  readonly change: string;
  readonly cost: Cost;
  readonly idleRead: number;
  /** Active namespaces that got another owner. */
  readonly moved: number;
  /** Until every server knew the view, and until every active namespace was ready at its owner. */
  readonly knownMs: number;
  readonly readyMs: number;
  /** The longest wait of each active namespace's writers, sorted. */
  readonly waitsMs: readonly number[];
  readonly refused: number;
}

interface Change {
  readonly name: string;
  readonly begin: () => void;
  readonly isDone: (view: ClusterView) => boolean;
}

interface Place {
  readonly tenantId: number;
  readonly namespace: string;
}

/** How writers fared: of each namespace the longest time until a write that was asked for then, or a later one, was answered. */
interface Probed {
  readonly waitsMs: readonly number[];
  readonly refused: number;
}

/** Servers in a world without faults, with idle namespaces in their store: what a join, an eviction and a leave cost. */
export class ViewChangeScene {
  readonly scheduler = new Scheduler(eventsMax);
  readonly #objects = new IdleObjects(() => this.scheduler.nowMs);
  readonly #chance = new Chance(seed, 0);
  readonly #faults = new FaultPlan(new Chance(seed, 1));
  readonly #network = new PeerNetwork(this.scheduler, new Chance(seed, 2), this.#faults);
  readonly #servers: readonly SimulatedServer[];
  readonly #newcomer: SimulatedServer;
  readonly #active: Place[] = [];
  readonly #idle: number;
  #processes = 0;
  #writes = 0;
  #cost: Cost = { ...nothing };

  constructor(servers: number, idle: number) {
    this.#servers = Array.from({ length: servers }, (_, number) => this.#server(number));
    this.#newcomer = this.#server(servers);
    this.#idle = idle;
  }

  async run(active: number): Promise<ViewChange[]> {
    const [first, ...rest] = this.#servers;
    await this.#makeIdle(must(first, 'a server'));
    await this.#makeActive(must(first, 'a server'), active);
    for (const server of rest) await server.startNext();
    await this.#untilKnown(({ members }) => members.every(({ state }) => state === 'active'));
    const quiet = await this.#allChanges(false);
    const probed = await this.#allChanges(true);
    await this.#lookAtIdle();
    return quiet.map((row, at) => {
      const { waitsMs, refused } = must(probed[at], 'the same change again');
      return { ...row, waitsMs, refused };
    });
  }

  /** The newcomer joins and is killed, joins again and leaves. */
  async #allChanges(isProbed: boolean): Promise<ViewChange[]> {
    const newcomer = this.#newcomer;
    const isMember = ({ members }: ClusterView) => members.some(({ serverId }) => serverId === newcomer.id);
    const isActive = ({ members }: ClusterView) =>
      members.some(({ serverId, state }) => serverId === newcomer.id && state === 'active');
    const joins = () => {
      newcomer.supervised = true;
      void newcomer.startNext();
    };
    const ends = (end: (process: SimulatedProcess) => void) => () => {
      newcomer.supervised = false;
      end(must(newcomer.current, 'the newcomer'));
    };
    const rows = [
      await this.#measure({ name: 'nothing happens', begin: () => {}, isDone: () => true }, isProbed),
      await this.#measure({ name: 'one joins', begin: joins, isDone: isActive }, isProbed),
      await this.#measure(
        {
          name: 'one is killed',
          begin: ends((process) => process.kill()),
          isDone: (view) => !isMember(view),
        },
        isProbed,
      ),
    ];
    joins();
    await this.#untilKnown(isActive);
    const leaves: Change = {
      name: 'one leaves',
      begin: ends((process) => void process.drain()),
      isDone: (view) => !isMember(view),
    };
    return [...rows, await this.#measure(leaves, isProbed)];
  }

  async #measure({ name, begin, isDone }: Change, isProbed: boolean): Promise<ViewChange> {
    const { scheduler } = this;
    await scheduler.sleep(settleMs);
    // What waits for its flush when owners change is what a change has to do with.
    await Promise.all(this.#active.map((place) => this.#write(place)));
    const before = this.#owners();
    this.#cost = { ...nothing };
    const idleBefore = this.#objects.idleRead;
    const startMs = scheduler.nowMs;
    const probing = isProbed ? this.#probeAll(startMs + windowMs) : null;
    begin();
    await this.#untilKnown(isDone);
    const knownMs = scheduler.nowMs - startMs;
    await this.#untilReady();
    const readyMs = scheduler.nowMs - startMs;
    await scheduler.sleep(startMs + windowMs - scheduler.nowMs);
    const cost = this.#cost;
    const after = this.#owners();
    const { waitsMs, refused } = (await probing) ?? { waitsMs: [], refused: 0 };
    return {
      servers: this.#servers.length,
      idle: this.#idle,
      change: name,
      cost,
      idleRead: this.#objects.idleRead - idleBefore,
      moved: this.#active.filter((_, at) => before[at] !== after[at]).length,
      knownMs,
      readyMs,
      waitsMs,
      refused,
    };
  }

  /** Writes to every active namespace all the time, each through any server. */
  async #probeAll(untilMs: number): Promise<Probed> {
    let refused = 0;
    const waitsMs = await Promise.all(
      this.#active.map(async (place) => {
        const waiting: Promise<{ askedMs: number; answeredMs: number } | null>[] = [];
        await this.scheduler.sleep(this.#chance.fraction() * probeEveryMs);
        for (; this.scheduler.nowMs < untilMs; await this.scheduler.sleep(probeEveryMs)) {
          const askedMs = this.scheduler.nowMs;
          waiting.push(
            this.#write(place).then((answer) => {
              if (answer !== null && answer.status < 300)
                return { askedMs, answeredMs: this.scheduler.nowMs };
              refused++;
              return { askedMs, answeredMs: Number.POSITIVE_INFINITY };
            }),
          );
        }
        const probes = (await Promise.all(waiting)).flatMap((probe) => probe ?? []);
        // Who was refused waits for the next that is not.
        let servedMs = Number.POSITIVE_INFINITY;
        let longestMs = 0;
        for (const { askedMs, answeredMs } of probes.toReversed()) {
          servedMs = Math.min(servedMs, answeredMs);
          longestMs = Math.max(longestMs, servedMs - askedMs);
        }
        return longestMs;
      }),
    );
    return { waitsMs: waitsMs.sort((a, b) => a - b), refused };
  }

  /** Through any server that serves; null where no answer comes. */
  async #write({ tenantId, namespace }: Place): Promise<Answer | null> {
    const process = this.#chance.pick(this.#serving);
    const docs = [{ id: `d${++this.#writes % 10}`, text: 'the tide comes in' }];
    const answering = process.ask('putDocuments', namespace, { tenantId, body: { docs } });
    return answerInTime(process, answering, { scheduler: this.scheduler, patienceMs });
  }

  /** One namespace of one tenant, made and flushed by a server; all that are idle are like it. */
  async #makeIdle(first: SimulatedServer): Promise<void> {
    const like = { tenantId: 1, namespace: 'like' };
    await first.startNext();
    const process = must(first.current, 'a server that runs');
    await process.createTenant(like.tenantId);
    await this.#write(like);
    first.supervised = false;
    await process.drain();
    first.supervised = true;
    await first.startNext();
    const tenants = this.#idle / namespacesOfIdleTenant;
    this.#objects.addIdle({ tenants, namespacesEach: namespacesOfIdleTenant }, like);
  }

  async #makeActive(first: SimulatedServer, active: number): Promise<void> {
    const process = must(first.current, 'a server that runs');
    for (let number = 0; number < active; number++) {
      const tenantId = 10 + Math.floor(number / namespacesOfActiveTenant);
      if (number % namespacesOfActiveTenant === 0) await process.createTenant(tenantId);
      this.#active.push({ tenantId, namespace: `n${number}` });
    }
    await Promise.all(this.#active.map((place) => this.#write(place)));
  }

  /** Idle namespaces are what a server takes for namespaces. */
  async #lookAtIdle(): Promise<void> {
    for (let look = 0; look < idleLookedAt; look++) {
      const tenantId = idleTenant(this.#chance.integer(0, this.#idle / namespacesOfIdleTenant - 1));
      const namespace = idleName(this.#chance.integer(0, namespacesOfIdleTenant - 1));
      const { status, body } = await this.#chance
        .pick(this.#serving)
        .ask('search', namespace, { tenantId, body: { limit: 10 } });
      if (status !== 200 || body.hits.length !== 1)
        throw new Error(`${tenantId}/${namespace} answered ${status}: ${JSON.stringify(body)}`);
    }
  }

  get #serving(): readonly SimulatedProcess[] {
    return [...this.#servers, this.#newcomer].flatMap(({ current }) =>
      current?.serving === true ? [current] : [],
    );
  }

  /** The server that owns each active namespace, as the first one knows it. */
  #owners(): readonly string[] {
    const { view } = this.#membersOf(must(this.#serving[0], 'a server that serves'));
    const servers = view.members.map(({ serverId }) => serverId);
    return this.#active.map(({ tenantId, namespace }) => {
      const key = placementKey(tenantId, namespace);
      return servers.find((self) => isOwn(ownersOf(view, self), key)) ?? '';
    });
  }

  #membersOf(process: SimulatedProcess) {
    return must(process.composed?.follower, 'a server that follows the view');
  }

  /** Resolves when every server that serves knows such a view. */
  async #untilKnown(isDone: (view: ClusterView) => boolean): Promise<void> {
    await this.#until(() => this.#serving.every((process) => isDone(this.#membersOf(process).view)));
  }

  async #untilReady(): Promise<void> {
    await this.#until(() => {
      const owners = this.#owners();
      return this.#active.every(({ tenantId, namespace }, at) => {
        const owner = this.#serving.find(({ serverId }) => serverId === owners[at]);
        return owner?.composed?.components.ownership.isReady(placementKey(tenantId, namespace)) === true;
      });
    });
  }

  async #until(isSo: () => boolean): Promise<void> {
    const untilMs = this.scheduler.nowMs + untilMsMax;
    while (!isSo()) {
      if (this.scheduler.nowMs > untilMs) throw new Error(`not so after ${untilMsMax} ms`);
      await this.scheduler.sleep(lookEveryMs);
    }
  }

  #server(number: number): SimulatedServer {
    return new SimulatedServer(`server-${String(number).padStart(3, '0')}`, {
      scheduler: this.scheduler,
      makeProcess: (server) => this.#process(server),
      tell: () => {},
      startFailed: (_, error) => {
        throw error;
      },
      onStuck: () => {},
    });
  }

  #process({ id }: SimulatedServer): SimulatedProcess {
    const number = ++this.#processes;
    return new SimulatedProcess({
      number,
      serverId: id,
      network: this.#network,
      scheduler: this.scheduler,
      storeNetwork: {
        scheduler: this.scheduler,
        objects: this.#objects,
        chance: new Chance(seed, 1_000 + number),
        faults: this.#faults,
        note: () => {},
        count: (...counted) => this.#count(...counted),
      },
      chance: new Chance(seed, 100_000 + number),
      commitMs,
      limits,
      preparesMoves: true,
    });
  }

  #count(operation: StoreOperation, key: string, bytes: number): void {
    const cost = this.#cost;
    if (key === paths.view && operation === 'get') cost.polls++;
    else if (key.startsWith(paths.lease(''))) cost.polls++;
    else if (operation === 'get') {
      cost.gets++;
      cost.bytesRead += bytes;
    } else if (operation === 'list') cost.lists++;
    else if (operation === 'delete') cost.deletes++;
    else {
      cost.puts++;
      cost.bytesWritten += bytes;
    }
  }
}

/** A change may cost this much more with many idle namespaces: times of day differ, and with them who flushes when. */
const growthMax = 1.1;
const slackOf = { gets: 20, bytesRead: 20_000, puts: 20, bytesWritten: 20_000, lists: 5 } as const;

/** What is wrong with a change beside the same one with fewer idle namespaces; null where nothing is. */
export function faultOf(row: ViewChange, rows: readonly ViewChange[]): string | null {
  if (row.idleRead > 0) return `${row.idleRead} objects of idle namespaces were read`;
  const fewer = rows.find(
    ({ servers, idle, change }) => servers === row.servers && change === row.change && idle < row.idle,
  );
  if (fewer === undefined) return null;
  for (const what of ['gets', 'bytesRead', 'puts', 'bytesWritten', 'lists'] as const)
    if (row.cost[what] > fewer.cost[what] * growthMax + slackOf[what])
      return `${what}: ${row.cost[what]}, and ${fewer.cost[what]} with ${fewer.idle} idle namespaces`;
  return null;
}
