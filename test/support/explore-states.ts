/**
 * Breadth-first search of every state that a model can reach. A state is a few bytes; all of them lie in one growing
 * buffer, found again by a hash table, so that a million states take seconds and tens of megabytes. Breadth first: the
 * trace of a violation is a shortest one.
 */
export interface StateModel {
  readonly initial: Uint8Array;
  /** Calls `branch` for each step that can be taken; the change is made to a copy. Labels are small whole numbers. */
  readonly steps: (state: Uint8Array, branch: Branch) => void;
  /** A sentence where the state must not be. */
  readonly violation: (state: Uint8Array) => string | null;
}

export type Branch = (label: number, change: (state: Uint8Array) => void) => void;

export interface Exploration {
  readonly states: number;
  /** Steps from the first state to the furthest. */
  readonly depth: number;
  /** How many of the found states each label led to first. */
  readonly taken: ReadonlyMap<number, number>;
  readonly violation: { readonly problem: string; readonly trace: readonly number[] } | null;
}

/** Throws where there are more states: the model is then not bounded as it was meant to be. */
export function exploreStates(model: StateModel, statesMax: number): Exploration {
  const found = new StateSet(model.initial.length, statesMax);
  const depths: number[] = [0];
  const scratch = new Uint8Array(model.initial.length);
  const taken = new Map<number, number>();
  found.add(model.initial, 0, 0);
  let problem: string | null = model.violation(model.initial);
  let from = 0;
  const branch: Branch = (label, change) => {
    if (problem !== null) return;
    found.read(from, scratch);
    change(scratch);
    if (!found.add(scratch, from, label)) return;
    depths.push((depths[from] ?? 0) + 1);
    taken.set(label, (taken.get(label) ?? 0) + 1);
    problem = model.violation(scratch);
  };
  const state = new Uint8Array(model.initial.length);
  for (; from < found.size && problem === null; from++) {
    found.read(from, state);
    model.steps(state, branch);
  }
  const violation = problem === null ? null : { problem, trace: found.trace(found.size - 1) };
  return { states: found.size, depth: depths.at(-1) ?? 0, taken, violation };
}

/** States by number, in the order in which they were found, each with the step that led to it. */
class StateSet {
  readonly #stateBytes: number;
  readonly #statesMax: number;
  size = 0;
  #bytes = new Uint8Array(1 << 20);
  #cameFrom = new Int32Array(1 << 14);
  #labels = new Uint16Array(1 << 14);
  /** Open addressing; 0 is free, otherwise the state's number plus one. Never more than half full. */
  #table = new Int32Array(1 << 16);

  constructor(stateBytes: number, statesMax: number) {
    this.#stateBytes = stateBytes;
    this.#statesMax = statesMax;
  }

  read(index: number, into: Uint8Array): void {
    const start = index * this.#stateBytes;
    for (let i = 0; i < this.#stateBytes; i++) into[i] = this.#bytes[start + i] as number;
  }

  /** False where it was there already. */
  add(state: Uint8Array, cameFrom: number, label: number): boolean {
    const place = this.#find(state, hashOf(state, 0, this.#stateBytes));
    if (this.#table[place] !== 0) return false;
    if (this.size >= this.#statesMax) throw new Error(`the model has more than ${this.#statesMax} states`);
    this.#makeRoom();
    this.#bytes.set(state, this.size * this.#stateBytes);
    this.#cameFrom[this.size] = cameFrom;
    this.#labels[this.size] = label;
    this.#table[place] = ++this.size;
    if (this.size * 2 > this.#table.length) this.#rehash();
    return true;
  }

  /** The labels on the way to a state. */
  trace(index: number): number[] {
    const labels: number[] = [];
    for (let at = index; at > 0; at = this.#cameFrom[at] as number) labels.push(this.#labels[at] as number);
    return labels.reverse();
  }

  #find(state: Uint8Array, hash: number): number {
    const mask = this.#table.length - 1;
    let place = hash & mask;
    for (; this.#table[place] !== 0; place = (place + 1) & mask)
      if (this.#isAt(state, (this.#table[place] as number) - 1)) break;
    return place;
  }

  #isAt(state: Uint8Array, index: number): boolean {
    const start = index * this.#stateBytes;
    for (let i = 0; i < this.#stateBytes; i++) if (this.#bytes[start + i] !== state[i]) return false;
    return true;
  }

  #makeRoom(): void {
    if ((this.size + 1) * this.#stateBytes > this.#bytes.length) this.#bytes = doubled(this.#bytes);
    if (this.size < this.#labels.length) return;
    this.#cameFrom = doubled(this.#cameFrom);
    this.#labels = doubled(this.#labels);
  }

  #rehash(): void {
    this.#table = new Int32Array(this.#table.length * 2);
    const mask = this.#table.length - 1;
    for (let index = 0; index < this.size; index++) {
      let place = hashOf(this.#bytes, index * this.#stateBytes, this.#stateBytes) & mask;
      while (this.#table[place] !== 0) place = (place + 1) & mask;
      this.#table[place] = index + 1;
    }
  }
}

/** FNV-1a, mixed once more because the table looks at the low bits alone. */
function hashOf(bytes: Uint8Array, start: number, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < start + length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

function doubled<T extends Uint8Array | Uint16Array | Int32Array>(array: T): T {
  const larger = new (array.constructor as new (length: number) => T)(array.length * 2);
  larger.set(array);
  return larger;
}
