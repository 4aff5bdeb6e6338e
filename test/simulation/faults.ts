import type { Chance } from './chance.ts';

/** What can happen to a call of the store on its way there, in it, and on its way back. */
export const storeFaults = [
  'dropped request',
  'dropped answer',
  'delayed up to 60 s',
  'delivered twice',
  'own retry refused (412)',
  'conflict (409)',
  'server error (500)',
  'throttled (503)',
  'stale list',
  'truncated read',
  'flipped bit',
] as const;
export type StoreFault = (typeof storeFaults)[number];

/** What can happen to a process. */
export const processFaults = [
  'crash',
  'pause beside its successor',
  'calls held beside its successor',
  'orderly stop',
  'clock jump',
  'store outage',
  'start again beside a running process',
] as const;
export type ProcessFault = (typeof processFaults)[number];

/** What can happen to one of several servers. */
export const clusterFaults = [
  'a server joins',
  'a server leaves',
  'a server joins and leaves at once',
  'a server crashes',
  'a server starts again beside itself',
  'a server is paused',
  'calls of a server are held',
  'a server is cut off from the store',
  'the clock of a server jumps',
  'the machine of a server sleeps',
  'a server is cut off from another one',
] as const;
export type ClusterFault = (typeof clusterFaults)[number];

/** What can happen to a call of one server to another. */
export const peerFaults = ['a forward is late', 'a forward comes twice'] as const;
export type PeerFault = (typeof peerFaults)[number];

type Fault = StoreFault | ProcessFault | ClusterFault | PeerFault;

export type FaultCounts = Map<Fault, number>;

export type StoreOperation = 'get' | 'create' | 'update' | 'delete' | 'list';

const faultsOf: Readonly<Record<StoreOperation, readonly StoreFault[]>> = {
  get: ['dropped request', 'dropped answer', 'delayed up to 60 s', 'server error (500)', 'throttled (503)'],
  list: ['dropped request', 'delayed up to 60 s', 'throttled (503)', 'stale list'],
  create: [
    'dropped request',
    'dropped answer',
    'delayed up to 60 s',
    'delivered twice',
    'own retry refused (412)',
    'conflict (409)',
    'server error (500)',
    'throttled (503)',
  ],
  update: [
    'dropped request',
    'dropped answer',
    'delayed up to 60 s',
    'delivered twice',
    'own retry refused (412)',
    'conflict (409)',
    'server error (500)',
    'throttled (503)',
  ],
  delete: ['dropped request', 'dropped answer', 'delayed up to 60 s', 'delivered twice', 'throttled (503)'],
};

/** The share of all calls of a seed that fail at most. */
const callFaultsMax = 0.12;
/** Damage closes actors and ends processes, so few reads meet it, in few seeds. */
const damagedReads = 0.015;
const seedsWithDamage = 0.3;
/** A new process has to get through a dozen calls, or there would be nothing but starts. */
const startDivisor = 4;

/**
 * Which call meets which fault. Every seed has rates and favourites of its own: some worlds only delay, some only lose
 * answers, some do everything.
 */
export class FaultPlan {
  readonly #chance: Chance;
  readonly #rate: number;
  readonly #damageRate: number;
  readonly #enabled: ReadonlySet<StoreFault>;
  readonly counts: FaultCounts = new Map();
  on = false;

  constructor(chance: Chance) {
    this.#chance = chance;
    this.#rate = chance.happens(0.15) ? 0 : chance.fraction() ** 2 * callFaultsMax;
    this.#damageRate = chance.happens(seedsWithDamage) ? damagedReads * chance.fraction() : 0;
    const share = chance.happens(0.5) ? 1 : chance.between(0.2, 0.8);
    this.#enabled = new Set(storeFaults.filter(() => chance.happens(share)));
  }

  /** The fault of one call, counted; null for most. */
  decide(operation: StoreOperation, isStarting: boolean): StoreFault | null {
    if (!this.on) return null;
    const divisor = isStarting ? startDivisor : 1;
    if (operation === 'get' && this.#chance.happens(this.#damageRate / divisor)) {
      return this.count(this.#chance.happens(0.5) ? 'truncated read' : 'flipped bit');
    }
    if (!this.#chance.happens(this.#rate / divisor)) return null;
    const fault = this.#chance.pick(faultsOf[operation]);
    return this.#enabled.has(fault) ? this.count(fault) : null;
  }

  count<Kind extends Fault>(fault: Kind): Kind {
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    return fault;
  }
}
