import type { BoundOrder, Output } from './bound.ts';
import type { Evaluator } from './evaluate.ts';
import type { Frame } from './frame.ts';
import { ByCodes } from './interner.ts';
import type { Room } from './room.ts';
import { type Dictionary, isNullAt, jsonOf, startOf, type Vector, valueAt } from './vector.ts';

/**
 * The first rows of an answer, in the order that was asked for; among rows that are alike, those that came first. A row is made
 * into JSON when it is known to be among the first of those seen so far, and twice as many are kept as are wanted, so that they
 * are seldom sorted.
 */
type Key = number | bigint | Buffer | null;

interface Kept {
  readonly keys: readonly Key[];
  readonly number: number;
  readonly json: string;
}

/** Of a row beside its JSON. */
const rowBytes = 200;

export class TopRows {
  readonly #outputs: readonly Output[];
  readonly #orderBy: readonly BoundOrder[];
  readonly #evaluator: Evaluator;
  readonly #wanted: number;
  #kept: Kept[] = [];
  #bytes = 0;
  /** The last of those wanted, once there are enough. */
  #worst: Kept | null = null;
  #seen = 0;
  readonly #late: ByCodes;

  /** `wanted`: how many, all in all. */
  constructor(
    { outputs, orderBy }: { readonly outputs: readonly Output[]; readonly orderBy: readonly BoundOrder[] },
    wanted: number,
    evaluator: Evaluator,
    room: Room,
  ) {
    this.#late = new ByCodes(room);
    this.#outputs = outputs;
    this.#orderBy = orderBy;
    this.#wanted = wanted;
    this.#evaluator = evaluator;
  }

  get bytes(): number {
    return this.#bytes + this.#late.bytes;
  }

  /** No further row can be among them. */
  get isComplete(): boolean {
    return this.#orderBy.length === 0 && this.#kept.length >= this.#wanted;
  }

  /** How many further rows can be among them. */
  get room(): number {
    return this.#orderBy.length === 0 ? this.#wanted - this.#kept.length : Number.POSITIVE_INFINITY;
  }

  add(frame: Frame, rows: Int32Array): void {
    if (this.#wanted === 0) return;
    const orders = this.#orderBy.map(({ expression }) => this.#evaluator.evaluate(expression, frame));
    let outputs: readonly Vector[] | null = null;
    for (let i = 0; i < rows.length && !this.isComplete; i++) {
      const row = rows[i] as number;
      this.#seen++;
      if (this.#worst !== null && !this.#isBetterThan(orders, row, this.#worst)) continue;
      outputs ??= this.#outputs.map(({ expression }) => this.#evaluator.evaluate(expression, frame));
      this.#keep(orders, outputs, row);
    }
  }

  /** In order, as JSON arrays. */
  rows(): readonly string[] {
    this.#cut();
    return this.#kept.map(({ json }) => json);
  }

  #keep(orders: readonly Vector[], outputs: readonly Vector[], row: number): void {
    const cells = outputs.map((vector, at) => {
      const type = (this.#outputs[at] as Output).expression.type;
      return jsonOf(valueAt(vector, row, type), type);
    });
    const json = `[${cells.join(',')}]`;
    this.#bytes += rowBytes + json.length;
    this.#kept.push({ keys: orders.map((vector) => keyAt(vector, row)), number: this.#seen, json });
    if (this.#orderBy.length > 0 && this.#kept.length >= 2 * this.#wanted + 100) this.#cut();
  }

  #cut(): void {
    if (this.#orderBy.length > 0) this.#kept.sort((a, b) => this.#compare(a, b));
    if (this.#kept.length < this.#wanted) return;
    this.#kept.length = this.#wanted;
    this.#worst = this.#orderBy.length > 0 ? (this.#kept.at(-1) ?? null) : null;
    this.#bytes = this.#kept.reduce((sum, { json }) => sum + rowBytes + json.length, 0);
  }

  #compare(a: Kept, b: Kept): number {
    for (let at = 0; at < this.#orderBy.length; at++) {
      const order = this.#orderBy[at] as BoundOrder;
      const compared = compareKeys(a.keys[at] as Key, b.keys[at] as Key, order);
      if (compared !== 0) return compared;
    }
    return a.number - b.number;
  }

  /** A string that once came too late as the first key does so for ever: the last of those wanted only comes sooner. */
  #compareText(
    { dictionary }: Extract<Vector, { kind: 'texts' }>,
    code: number,
    { other, at, order }: { readonly other: Buffer; readonly at: number; readonly order: BoundOrder },
  ): number {
    if (at > 0) return compareText(dictionary, code, other, order);
    const late = this.#late.of(dictionary, dictionary.count);
    if (late[code] === 1) return 1;
    const compared = compareText(dictionary, code, other, order);
    if (compared > 0) late[code] = 1;
    return compared;
  }

  /** Hot: of most rows the first key says that they are not. An iterator would be garbage of each row. */
  #isBetterThan(orders: readonly Vector[], row: number, worst: Kept): boolean {
    for (let at = 0; at < this.#orderBy.length; at++) {
      const order = this.#orderBy[at] as BoundOrder;
      const vector = orders[at] as Vector;
      const other = worst.keys[at] as Key;
      if (
        vector.kind === 'numbers' &&
        typeof other === 'number' &&
        (vector.nulls === null || vector.nulls[row] === 0)
      ) {
        const difference = (vector.values[row] as number) - other;
        if (difference !== 0) return order.descending ? difference > 0 : difference < 0;
        continue;
      }
      const compared =
        vector.kind === 'texts' &&
        other instanceof Buffer &&
        (vector.nulls === null || vector.nulls[row] === 0)
          ? this.#compareText(vector, vector.codes[row] as number, { other, at, order })
          : compareKeys(keyAt(vector, row), other, order);
      if (compared !== 0) return compared < 0;
    }
    // It came later.
    return false;
  }
}

function keyAt(vector: Vector, row: number): Key {
  if (isNullAt(vector, row)) return null;
  switch (vector.kind) {
    case 'constant':
      return typeof vector.value === 'string' ? Buffer.from(vector.value) : vector.value;
    case 'numbers':
    case 'truths':
      return vector.values[row] as number;
    case 'wide':
      return vector.values[row] as bigint;
    case 'texts': {
      const { dictionary, codes } = vector;
      const code = codes[row] as number;
      return Buffer.from(dictionary.bytes.subarray(startOf(dictionary, code), dictionary.ends[code]));
    }
  }
}

function compareText(
  dictionary: Dictionary,
  code: number,
  other: Buffer,
  { descending }: BoundOrder,
): number {
  const order = dictionary.bytes.compare(
    other,
    0,
    other.length,
    startOf(dictionary, code),
    dictionary.ends[code],
  );
  return descending ? -order : order;
}

function compareKeys(a: Key, b: Key, { descending, nullsFirst }: BoundOrder): number {
  if (a === null || b === null) {
    if (a === b) return 0;
    return (a === null) === nullsFirst ? -1 : 1;
  }
  const order =
    a instanceof Buffer ? a.compare(b as Buffer) : compareNumbers(a as number | bigint, b as number | bigint);
  return descending ? -order : order;
}

function compareNumbers(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
