import { internalCallList } from '../../protocol/internal-calls.ts';
import { limits } from '../../protocol/limits.ts';

/**
 * Who asks, as calls between servers are budgeted: what a client asked for may wait for what namespaces and tenants ask of each other, so
 * each kind has places of its own, and none waits for a place. A client's flood shuts out neither what ends begun work nor
 * the look-up of a credential.
 */
export const callKinds = ['client', 'front', 'namespace', 'tenant'] as const;
export type CallKind = (typeof callKinds)[number];

const kindsByName: ReadonlyMap<string, CallKind> = new Map(
  internalCallList.map(({ name, from }) => [name, from === 'any actor' ? 'namespace' : from]),
);

export function callKindOf(operation: string): CallKind {
  return kindsByName.get(operation) ?? 'client';
}

/** What calls of one kind may have under way at once. */
export interface KindLimits {
  readonly callsMax: number;
  readonly bytesMax: number;
}

/** The limits of calls to one other server, and of calls from one. */
export function limitsToPeer(kind: CallKind): KindLimits {
  return kind === 'client'
    ? { callsMax: limits.forwardsToPeerMax, bytesMax: limits.forwardBytesToPeerMax }
    : { callsMax: limits.insideCallsToPeerMax, bytesMax: limits.insideBytesToPeerMax };
}

interface UnderWay {
  calls: number;
  bytes: number;
}

/** Callers of one kind that are remembered before those without a call under way are forgotten. */
const idleKept = 64;

/** Counts calls that are under way, by whose they are (a server's log, say) and by kind. */
export class CallBudgets {
  readonly #limitsOf: (kind: CallKind) => KindLimits;
  /** Calls under way, by kind and by whose they are. Callers without any are forgotten once there are many. */
  readonly #underWay = new Map(callKinds.map((kind) => [kind, new Map<string, UnderWay>()]));
  #total = 0;

  constructor(limitsOf: (kind: CallKind) => KindLimits) {
    this.#limitsOf = limitsOf;
  }

  /** All that are under way. */
  get total(): number {
    return this.#total;
  }

  /** False where the call may not begin. Otherwise it is counted until `release` with the same words. */
  take(whose: string, kind: CallKind, bytes: number): boolean {
    const { callsMax, bytesMax } = this.#limitsOf(kind);
    const ofKind = this.#of(kind);
    const now = ofKind.get(whose);
    if (now === undefined) {
      if (ofKind.size >= idleKept)
        for (const [other, { calls }] of ofKind) if (calls === 0) ofKind.delete(other);
      ofKind.set(whose, { calls: 1, bytes });
    } else if (now.calls === 0) {
      now.calls = 1;
      now.bytes = bytes;
    } else {
      if (now.calls >= callsMax || now.bytes + bytes > bytesMax) return false;
      now.calls++;
      now.bytes += bytes;
    }
    this.#total++;
    return true;
  }

  release(whose: string, kind: CallKind, bytes: number): void {
    const ofKind = this.#of(kind);
    const now = ofKind.get(whose);
    if (now === undefined || now.calls === 0) throw new Error('a call that was not counted ends');
    this.#total--;
    now.calls--;
    now.bytes -= bytes;
  }

  #of(kind: CallKind): Map<string, UnderWay> {
    return this.#underWay.get(kind) as Map<string, UnderWay>;
  }
}
