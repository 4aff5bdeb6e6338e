/**
 * Ways to damage bytes, for the tests that damage what the server has stored. Each is named, and changes something
 * wherever there is anything to change.
 */
export type Random = () => number;

export interface Damage {
  readonly name: string;
  readonly apply: (bytes: Buffer, random: Random) => Buffer;
}

const at = (length: number, random: Random) => Math.floor(random() * length);

/** A range of up to a page, somewhere in the bytes. */
function someRange(bytes: Buffer, random: Random): [number, number] {
  const from = at(bytes.length, random);
  return [from, Math.min(bytes.length, from + 1 + at(4096, random))];
}

export const flipBits: Damage = {
  name: 'flipped bits',
  apply(bytes, random) {
    const damaged = Buffer.from(bytes);
    if (damaged.length === 0) return damaged;
    // Odd, so that flips of one bit can't all cancel out.
    for (let flips = 1 + 2 * at(4, random); flips > 0; flips--) {
      const place = at(damaged.length, random);
      damaged[place] = (damaged[place] ?? 0) ^ (1 << at(8, random));
    }
    return damaged;
  },
};

export const truncate: Damage = {
  name: 'truncated',
  apply: (bytes, random) => Buffer.from(bytes.subarray(0, random() < 0.2 ? 0 : at(bytes.length, random))),
};

export const zeroRange: Damage = {
  name: 'zeroed range',
  apply(bytes, random) {
    const damaged = Buffer.from(bytes);
    if (damaged.length > 0) damaged.fill(0, ...someRange(damaged, random));
    return damaged;
  },
};

export const randomRange: Damage = {
  name: 'random bytes',
  apply(bytes, random) {
    const damaged = Buffer.from(bytes);
    if (damaged.length === 0) return damaged;
    const [from, to] = someRange(damaged, random);
    for (let place = from; place < to; place++) damaged[place] = at(256, random);
    return damaged;
  },
};

export const appendGarbage: Damage = {
  name: 'appended garbage',
  apply: (bytes, random) =>
    Buffer.concat([bytes, Buffer.from(Array.from({ length: 1 + at(300, random) }, () => at(256, random)))]),
};

/** What happened to each kind of thing under each damage, as a table. */
export class DamageTable {
  readonly #counts = new Map<string, Map<string, number>>();

  add(kind: string, damage: string, outcome: string): void {
    const row = `${kind} × ${damage}`;
    const outcomes = this.#counts.get(row) ?? new Map<string, number>();
    this.#counts.set(row, outcomes);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }

  /** A line for each kind and damage, sorted. */
  lines(): string[] {
    const width = Math.max(...[...this.#counts.keys()].map((row) => row.length));
    return [...this.#counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([row, outcomes]) => {
        const shown = [...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', ');
        return `${row.padEnd(width)} → ${shown}`;
      });
  }
}
