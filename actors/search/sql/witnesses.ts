import { kindBound } from '../../columns/value-kinds.ts';

/** What a chunk remembers of its live rows, by key, from one query to the next (`live-keys.ts`). */
export class Witnesses {
  readonly #ofKeys = new Map<string, Witness>();

  of(key: string): Witness {
    let witness = this.#ofKeys.get(key);
    if (witness === undefined) {
      witness = { rows: new Int32Array(kindBound).fill(unknownRow), age: 0 };
      this.#ofKeys.set(key, witness);
    }
    return witness;
  }
}

/** Rows that stand for the kinds of one key's values. */
export interface Witness {
  /** A row of the chunk that has a value of the kind, by kind; for `missing`, the first live row that has the key. */
  readonly rows: Int32Array;
  /** What was known at this age is true of all greater ones. */
  age: number;
}

/** Nobody has looked for a row of the kind. */
export const unknownRow = -1;
/** No live row has the kind. */
export const noRow = -2;
