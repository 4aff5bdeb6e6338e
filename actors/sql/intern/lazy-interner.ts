import { assert } from '../../../src/base/assert.ts';
import { type Column, type Dictionary, isDistinct, type Nulls, type Texts } from '../frame/column.ts';
import { codesOf, takenCodes } from '../frame/column-forms.ts';
import { allRows } from '../frame/frame.ts';
import type { Room } from '../room.ts';
import { ByCodes } from './by-codes.ts';
import { type Interner, internedFirst, nullsAmong } from './interner.ts';
import { NumberInterner } from './number-interner.ts';
import { TextInterner } from './text-interner.ts';

/**
 * An interner that looks at no value for as long as all values come as codes of the same distinct values: a code is as good as its
 * value then. The first column of other codes, or of none, makes it look at the values that came so far; they keep their numbers.
 */
export class LazyInterner implements Interner {
  readonly #isText: boolean;
  readonly #room: Room;
  /** Looks at values; null as long as codes suffice. */
  #inner: Interner | null = null;
  /** The distinct values that all codes so far belong to: a dictionary, or the interner of a column that is kept. */
  #of: object | null = null;
  readonly #byCodes: ByCodes;
  /** The code of each number. */
  #codes = new Int32Array(internedFirst);
  #count = 0;
  #nullNumber = -1;

  /** `room`: for as many values as can come. */
  constructor(isText: boolean, room: Room) {
    this.#isText = isText;
    this.#room = room;
    this.#byCodes = new ByCodes(room);
  }

  get count(): number {
    return this.#inner?.count ?? this.#count;
  }

  get bytes(): number {
    return (this.#inner?.bytes ?? 0) + this.#byCodes.bytes + this.#count * 4;
  }

  get nullNumber(): number {
    return this.#inner?.nullNumber ?? this.#nullNumber;
  }

  intern(column: Column, rows: Int32Array, rowCount: number, numbers: Int32Array): void {
    assert(
      rows.length <= numbers.length,
      () => `${rows.length} rows, and room for ${numbers.length} numbers`,
    );
    if (this.#inner === null) {
      const coded = distinctCodes(column);
      if (coded !== null && (this.#of === null || this.#of === coded.of)) {
        this.#of = coded.of;
        this.#internCodes(coded, rows, numbers);
        return;
      }
    }
    this.#look().intern(column, rows, rowCount, numbers);
  }

  valuesOf(numbers: Int32Array): Column {
    return this.#inner?.valuesOf(numbers) ?? this.#codedValues(numbers);
  }

  #internCodes({ codes, of, nulls, nullCode }: DistinctCodes, rows: Int32Array, numbers: Int32Array): void {
    // What is kept knows how many values there are: room for all of them is made once.
    let byCode = this.#byCodes.of(of, countOf(of));
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) {
        if (this.#nullNumber < 0) this.#nullNumber = this.#add(0);
        numbers[i] = this.#nullNumber;
        continue;
      }
      const code = codes[row] as number;
      if (code >= byCode.length) byCode = this.#byCodes.of(of, code + 1);
      let number = (byCode[code] as number) - 1;
      if (number < 0) {
        number = this.#add(code);
        byCode[code] = number + 1;
        if (code === nullCode) this.#nullNumber = number;
      }
      numbers[i] = number;
    }
    // NULL has a number of its own, and may have no code.
    assert(this.#count <= countOf(of) + 1, () => `${this.#count} numbers for ${countOf(of)} values`);
  }

  #add(code: number): number {
    if (this.#count === this.#codes.length) this.#codes = this.#room.grown(this.#codes, this.#count + 1);
    this.#codes[this.#count] = code;
    return this.#count++;
  }

  /** Answers the interner that looks at values, and gives it those that came so far: in their order, so that they get their numbers again. */
  #look(): Interner {
    if (this.#inner !== null) return this.#inner;
    const inner = newInterner(this.#isText, this.#room);
    const all = allRows(this.#count);
    if (this.#count > 0) inner.intern(this.#codedValues(all), all, this.#count, new Int32Array(this.#count));
    assert(
      inner.count === this.#count && inner.nullNumber === this.#nullNumber,
      () =>
        `${this.#count} values became ${inner.count}, and NULL's number ${this.#nullNumber} became ${inner.nullNumber}`,
    );
    this.#inner = inner;
    return inner;
  }

  #codedValues(numbers: Int32Array): Column {
    if (this.#of === null) return newInterner(this.#isText, this.#room).valuesOf(numbers);
    const codes = takenCodes(this.#codes, numbers);
    if (!this.#isText) return (this.#of as NumberInterner).valuesOf(codes);
    const nulls = nullsAmong(numbers, this.#nullNumber);
    return { kind: 'texts', codes, dictionary: this.#of as Dictionary, nulls };
  }
}

function newInterner(isText: boolean, room: Room): Interner {
  return isText ? new TextInterner(room) : new NumberInterner(room);
}

function countOf(of: object): number {
  return (of as Dictionary | NumberInterner).count;
}

interface DistinctCodes {
  readonly codes: Texts['codes'];
  /** The distinct values that the codes belong to: the same object wherever the codes mean the same. */
  readonly of: object;
  /** 1 for rows of texts that are NULL, whatever their code. */
  readonly nulls: Nulls;
  /** The code of NULL among numbers, or -1. */
  readonly nullCode: number;
}

/** A column's codes, if no two of them mean the same; null otherwise. */
function distinctCodes(column: Column): DistinctCodes | null {
  if (column.kind === 'texts')
    return isDistinct(column.dictionary)
      ? { codes: column.codes, of: column.dictionary, nulls: column.nulls, nullCode: -1 }
      : null;
  const coded = codesOf(column);
  if (coded === null || !(coded.of instanceof NumberInterner)) return null;
  return { codes: coded.codes, of: coded.of, nulls: null, nullCode: coded.of.nullNumber };
}
