import { type Column, type Dictionary, isDistinct, type Nulls, type Texts } from '../frame/column.ts';
import { asValues, asWide, type Values } from '../frame/column-forms.ts';
import { TextInterner } from '../intern/text-interner.ts';
import type { Bound } from '../plan/bound.ts';
import type { Room } from '../room.ts';

/**
 * What CASE and COALESCE choose among texts. Where all results of a frame are codes of one dictionary, the column has that dictionary. Otherwise it has
 * the expression's own, which gets a string when a row has it. An expression may change once from its own to the shared one, between two frames or when
 * an interrupted frame is evaluated again: a dictionary that a thread keeps may get a constant meanwhile, and loses no string.
 */
export class ChosenTexts {
  readonly #chosen = new Map<Bound, TextInterner>();
  readonly #room: Room;

  /** `room`: for as many texts as can come. */
  constructor(room: Room) {
    this.#room = room;
  }

  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#chosen.values()) sum += bytes;
    return sum;
  }

  /** Makes the texts of `bound`: in each row that of the result whose place in `results` is chosen there. */
  texts(bound: Bound, results: readonly Column[], chosen: Uint16Array): Column {
    const rowCount = chosen.length;
    const shared = sharedCodes(results);
    if (shared !== null) return { kind: 'texts', ...shared.chosen(chosen) };
    let known = this.#chosen.get(bound);
    if (known === undefined) {
      known = new TextInterner(this.#room);
      this.#chosen.set(bound, known);
    }
    const codes = new Int32Array(rowCount);
    const nulls = new Uint8Array(rowCount);
    const rows = new Int32Array(rowCount);
    const numbers = new Int32Array(rowCount);
    for (const [branch, result] of results.entries()) {
      let count = 0;
      for (let row = 0; row < rowCount; row++) {
        rows[count] = row;
        count += Number(chosen[row] === branch);
      }
      const own = rows.subarray(0, count);
      known.intern(result, own, rowCount, numbers);
      for (let i = 0; i < count; i++) {
        codes[own[i] as number] = numbers[i] as number;
        nulls[own[i] as number] = Number(numbers[i] === known.nullNumber);
      }
    }
    return { kind: 'texts', codes, dictionary: known.dictionary, nulls: nulls.includes(1) ? nulls : null };
  }
}

/** What a result has in each row: a code, or one of `codes`; NULL where `isNull`, or where `nulls` says so. */
interface Chooses {
  readonly codes: Texts['codes'] | null;
  readonly code: number;
  readonly nulls: Nulls;
  readonly isNull: boolean;
}

/** Results that are all codes of one dictionary: choosing among them looks at no string. */
class SharedCodes {
  readonly #dictionary: Dictionary;
  readonly #results: readonly Chooses[];

  constructor(dictionary: Dictionary, results: readonly Chooses[]) {
    this.#dictionary = dictionary;
    this.#results = results;
  }

  chosen(chosen: Uint16Array): Omit<Texts, 'kind'> {
    const codes = new Int32Array(chosen.length);
    const nulls = new Uint8Array(chosen.length);
    let someNull = 0;
    for (let row = 0; row < codes.length; row++) {
      const result = this.#results[chosen[row] as number] as Chooses;
      codes[row] = result.codes === null ? result.code : (result.codes[row] as number);
      const isNull = result.nulls === null ? Number(result.isNull) : (result.nulls[row] as number);
      nulls[row] = isNull;
      someNull |= isNull;
    }
    return { codes, dictionary: this.#dictionary, nulls: someNull === 0 ? null : nulls };
  }
}

/** Answers the results as codes of the dictionary that their columns share; null where they share none, or where it lacks a constant. */
function sharedCodes(results: readonly Column[]): SharedCodes | null {
  const dictionary = results.find((result) => result.kind === 'texts')?.dictionary;
  if (dictionary?.codeOf === undefined || !isDistinct(dictionary)) return null;
  const chooses: Chooses[] = [];
  for (const result of results) {
    if (result.kind === 'texts' && result.dictionary === dictionary) {
      chooses.push({ codes: result.codes, code: 0, nulls: result.nulls, isNull: false });
    } else if (result.kind === 'constant') {
      const { value } = result;
      const code = value === null ? 0 : dictionary.codeOf(Buffer.from(String(value)));
      if (code < 0) return null;
      chooses.push({ codes: null, code, nulls: null, isNull: value === null });
    } else {
      return null;
    }
  }
  return new SharedCodes(dictionary, chooses);
}

/** Makes a column of numbers: in each row that of the result whose place in `results` is chosen there. */
export function chooseNumbers(results: readonly Column[], chosen: Uint16Array): Column {
  const rowCount = chosen.length;
  const each = results.map((result) => asValues(result, rowCount));
  const nulls = new Uint8Array(rowCount);
  for (let row = 0; row < rowCount; row++)
    nulls[row] = (each[chosen[row] as number] as Values).nulls?.[row] ?? 0;
  const someNull = nulls.includes(1) ? nulls : null;
  if (each.some(({ kind }) => kind === 'wide')) {
    const wide = each.map(asWide);
    const values = new BigInt64Array(rowCount);
    for (let row = 0; row < rowCount; row++)
      values[row] = (wide[chosen[row] as number] as BigInt64Array)[row] as bigint;
    return { kind: 'wide', values, nulls: someNull };
  }
  const doubles = each.map((result) => result.values as Float64Array);
  const values = new Float64Array(rowCount);
  for (let row = 0; row < rowCount; row++)
    values[row] = (doubles[chosen[row] as number] as Float64Array)[row] as number;
  return { kind: 'numbers', values, nulls: someNull };
}
