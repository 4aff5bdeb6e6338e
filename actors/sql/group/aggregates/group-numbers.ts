import { assert } from '../../../../src/base/assert.ts';
import type { Room } from '../../room.ts';

/** A number for each group, 0 at first, in one array that grows with the groups. */
export class GroupNumbers {
  /** A number for each group. Read it anew after `makeRoom`, which may replace it; behind the groups there may be anything. */
  values: Float64Array = new Float64Array(0);
  #count = 0;
  readonly #room: Room;

  constructor(room: Room) {
    this.#room = room;
  }

  get bytes(): number {
    return this.#count * 8;
  }

  /** Makes room for so many groups at least. */
  makeRoom(groupCount: number): void {
    if (groupCount <= this.#count) return;
    this.values = this.#room.grown(this.values, groupCount);
    this.values.fill(0, this.#count, groupCount);
    this.#count = groupCount;
  }

  /** The numbers of all groups so far. */
  get all(): Float64Array {
    return this.values.subarray(0, this.#count);
  }

  /** The numbers of the groups from `from` to before `end`, 0 for groups that nothing was added to; not to be changed. */
  part(from: number, end: number): Float64Array {
    assert(0 <= from && from <= end, () => `groups from ${from} to before ${end}`);
    this.makeRoom(end);
    return this.values.subarray(from, end);
  }
}

/** Makes a column's nulls of groups' counts: 1 where a count is 0. */
export function nullsOfCounts(counts: Float64Array): Uint8Array {
  const nulls = new Uint8Array(counts.length);
  for (let i = 0; i < nulls.length; i++) nulls[i] = Number(counts[i] === 0);
  return nulls;
}
