import { assert } from '../../../../src/base/assert.ts';
import type { Room } from '../../room.ts';

/** Pairs that one step looks at, which takes some hundred microseconds, and longer where the memory that it writes to is new. */
const pairsPerStep = 32_768;
/** Numbers of an array that one step goes through in their order. */
const numbersPerStep = 262_144;
const nothing = new Int32Array(0);

/**
 * Pairs of a group and the number of a value, kept as they come. Once all are in, `count` says how many different values each group has: it sorts the
 * pairs by their groups, and of a group notes at each value that the group had it. Each pair takes three accesses to arrays; in a table
 * of all pairs it takes a place that no cache of the processor has, and the table must grow. It is meant for pairs of which many come only once.
 */
export class PairsByGroup {
  readonly #room: Room;
  #numbers = nothing;
  #groups = nothing;
  #length = 0;

  /** `room`: for as many pairs as can come. */
  constructor(room: Room) {
    this.#room = room;
  }

  /** Bytes that the pairs take. */
  get bytes(): number {
    return this.#length * 8;
  }

  /** Keeps a copy of pairs; there are as many groups as numbers, or more. */
  add(numbers: Int32Array, groups: Int32Array): void {
    const end = this.#length + numbers.length;
    this.#numbers = this.#room.grown(this.#numbers, end);
    this.#groups = this.#room.grown(this.#groups, end);
    this.#numbers.set(numbers, this.#length);
    this.#groups.set(groups.subarray(0, numbers.length), this.#length);
    this.#length = end;
  }

  /**
   * Replaces the count of each group by how many different values it has, in steps between which others may have their turn. `valueCount`: the numbers of
   * values are below it, as those of groups are below the length of `counts`.
   */
  *count(counts: Float64Array, valueCount: number): Generator<undefined, void, void> {
    const groupCount = counts.length;
    const groups = this.#groups;
    // One entry more, so that each may be written to the place behind its group.
    const places = this.#room.grown(nothing, groupCount + 1);
    yield* zeroed(places);
    for (const [from, end] of stepsOf(this.#length, pairsPerStep)) {
      for (let at = from; at < end; at++) (places[(groups[at] as number) + 1] as number)++;
      yield;
    }
    for (const [from, end] of stepsOf(groupCount, numbersPerStep)) {
      for (let group = from; group < end; group++) (places[group + 1] as number) += places[group] as number;
      yield;
    }
    assert(places[groupCount] === this.#length, () => `${places[groupCount]} of ${this.#length} pairs`);
    const numbers = this.#numbers;
    const sorted = this.#room.grown(nothing, this.#length);
    for (const [from, end] of stepsOf(this.#length, pairsPerStep)) {
      for (let at = from; at < end; at++) {
        const group = groups[at] as number;
        const place = places[group] as number;
        sorted[place] = numbers[at] as number;
        places[group] = place + 1;
      }
      yield;
    }
    // Each place has moved from where its group begins to where it ends.
    const ends = places;
    /** The last group that had a value, plus one, by the value's number. */
    const hadBy = this.#room.grown(nothing, valueCount);
    yield* zeroed(hadBy);
    yield* zeroed(counts);
    let group = 0;
    for (const [from, end] of stepsOf(this.#length, pairsPerStep)) {
      for (let at = from; at < end; at++) {
        while (at === ends[group]) group++;
        const number = sorted[at] as number;
        if (hadBy[number] === group + 1) continue;
        hadBy[number] = group + 1;
        (counts[group] as number)++;
      }
      yield;
    }
    for (const array of [places, sorted, hadBy, this.#numbers, this.#groups]) this.#room.giveBack(array);
    this.#numbers = this.#groups = nothing;
    this.#length = 0;
  }
}

function* zeroed(array: Int32Array | Float64Array): Generator<undefined, void, void> {
  for (const [from, end] of stepsOf(array.length, numbersPerStep)) {
    array.fill(0, from, end);
    yield;
  }
}

function* stepsOf(
  length: number,
  atOnce: number,
): Generator<readonly [from: number, end: number], void, void> {
  for (let from = 0; from < length; from += atOnce) yield [from, Math.min(from + atOnce, length)];
}
