import { type Column, compareBytes, type Dictionary, isDistinct, startOf } from '../../frame/column.ts';
import { asTexts } from '../../frame/column-forms.ts';
import { allRows } from '../../frame/frame.ts';
import { ByCodes } from '../../intern/by-codes.ts';
import type { Room } from '../../room.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';

/** What a string takes that a group holds, beside its bytes. */
const heldBytes = 100;

/** Strings of a dictionary for each row of a frame, at most, so that the groups of strings are noted. */
const stringsPerRowMax = 1_024;

/** MIN(x) and MAX(x) of texts, in the order of their bytes. */
export class TextExtreme implements Aggregate {
  readonly #isMax: boolean;
  /** A dictionary of a group's one string, copied, by group; null where no value came. */
  readonly #held: (Dictionary | null)[] = [];
  #bytes = 0;
  /**
   * The last group that a string was held against, plus one, by the string's code: most strings come again with the same group. Null where
   * that is not noted.
   */
  readonly #judged: ByCodes | null;

  /** `room`: for as many strings as can come; null where their groups are not to be noted, which takes memory for each of them. */
  constructor(name: 'min' | 'max', room: Room | null) {
    this.#isMax = name === 'max';
    this.#judged = room === null ? null : new ByCodes(room);
  }

  get bytes(): number {
    return this.#bytes + this.#held.length * 8 + (this.#judged?.bytes ?? 0);
  }

  add({ column, rows, rowCount, groups, groupCount }: GroupedRows): void {
    if (column === null) return;
    while (this.#held.length < groupCount) this.#held.push(null);
    const { codes, dictionary, nulls } = asTexts(column, rowCount);
    // The best of these rows, by their codes: a string is copied once it is known to stay.
    const best = new Int32Array(groupCount).fill(-1);
    const judged = this.#judgedOf(dictionary, rows.length);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const group = groups[i] as number;
      const code = codes[row] as number;
      if (judged !== null) {
        if (judged[code] === group + 1) continue;
        judged[code] = group + 1;
      }
      const before = best[group] as number;
      if (before === code) continue;
      if (before < 0 || this.#isBetter(dictionary, code, dictionary, before)) best[group] = code;
    }
    for (let group = 0; group < groupCount; group++) {
      const code = best[group] as number;
      const before = this.#held[group] ?? null;
      if (code < 0 || (before !== null && !this.#isBetter(dictionary, code, before, 0))) continue;
      this.#held[group] = copied(dictionary, code);
      this.#bytes += heldBytes + (this.#held[group]?.bytes.length ?? 0) - (before?.bytes.length ?? 0);
    }
  }

  /** Answers the array in which the groups of a dictionary's strings are noted; null where the dictionary does not last for many frames, or few of its strings come. */
  #judgedOf(dictionary: Dictionary, rowCount: number): Int32Array | null {
    const { count } = dictionary;
    const isWorthIt = isDistinct(dictionary) && count <= rowCount * stringsPerRowMax;
    return isWorthIt ? (this.#judged?.of(dictionary, count) ?? null) : null;
  }

  #isBetter(a: Dictionary, codeA: number, b: Dictionary, codeB: number): boolean {
    const order = compareBytes(a, codeA, b, codeB);
    return this.#isMax ? order > 0 : order < 0;
  }

  values(from: number, end: number): Column {
    const count = end - from;
    const codes = allRows(count);
    const nulls = new Uint8Array(count);
    const ends = new Uint32Array(count);
    const parts: Buffer[] = [];
    let bytes = 0;
    for (let i = 0; i < count; i++) {
      const held = this.#held[from + i] ?? null;
      if (held === null) nulls[i] = 1;
      else parts.push(held.bytes);
      bytes += held?.bytes.length ?? 0;
      ends[i] = bytes;
    }
    return {
      kind: 'texts',
      codes,
      nulls,
      dictionary: { count, bytes: Buffer.concat(parts), ends },
    };
  }
}

function copied(dictionary: Dictionary, code: number): Dictionary {
  const own = Buffer.from(dictionary.bytes.subarray(startOf(dictionary, code), dictionary.ends[code]));
  return { count: 1, bytes: own, ends: Uint32Array.of(own.length) };
}
