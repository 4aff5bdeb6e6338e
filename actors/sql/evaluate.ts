import { limits } from '../../protocol/limits.ts';
import { must } from '../../src/base/assert.ts';
import type { Bound, SqlValue } from './bound.ts';
import { codesIn, codesThat, compareVectors, isIn } from './compare.ts';
import { minuteOf, secondsOfDay, truncateTime } from './dates.ts';
import type { Frame, NewReplacer, Replacer } from './frame.ts';
import { type LikePattern, likePattern, matchDictionary } from './like.ts';
import { SqlError } from './sql-error.ts';
import {
  type Codes,
  type Dictionary,
  dictionaryOf,
  falsy,
  isNullAt,
  type Nulls,
  startOf,
  type Texts,
  truthy,
  unknown,
  type Vector,
} from './vector.ts';
import { asTexts, asValues, asWide, type Values } from './vector-forms.ts';

/**
 * Expressions over a frame, a vector at a time. What depends on one text alone is made once for each string of its dictionary.
 * Patterns are compiled once for each evaluator.
 */
export class Evaluator {
  readonly #newReplacer: NewReplacer;
  readonly #literals = new Map<Bound, Vector>();
  readonly #joined = new Map<Bound, JoinedDictionaries>();
  readonly #likes = new Map<Bound, LikePattern>();
  /** What was made of the last dictionary: the frames of a chunk share it. */
  readonly #byCode = new Map<Bound, { readonly dictionary: Dictionary; readonly byCode: Uint8Array }>();
  readonly #replaced = new Map<Bound, Replaced>();

  constructor(newReplacer: NewReplacer) {
    this.#newReplacer = newReplacer;
  }

  evaluate(bound: Bound, frame: Frame): Vector {
    switch (bound.kind) {
      case 'literal':
        return this.#literal(bound);
      case 'column':
        return frame.column(bound.index);
      case 'slot':
        return frame.slot(bound.index);
      case 'textMatch':
        return { kind: 'truths', values: frame.textMatch(bound.index) };
      case 'compare': {
        const [left, right] = [this.evaluate(bound.left, frame), this.evaluate(bound.right, frame)];
        const compared = this.#compareByCode(bound, left, right, frame.rowCount);
        return compared ?? compareVectors(bound.operator, left, right, frame.rowCount);
      }
      case 'arithmetic':
        return this.#arithmetic(bound, frame);
      case 'logic':
        return this.#logic(bound, frame);
      case 'not':
        return { kind: 'truths', values: this.truths(bound.operand, frame).map(negated) };
      case 'in':
        return this.#in(bound, frame);
      case 'like':
        return this.#like(bound, frame);
      case 'isNull':
        return this.#isNull(bound, frame);
      case 'case':
        return this.#case(bound, frame);
      case 'coalesce':
        return this.#coalesce(bound, frame);
      case 'length':
        return perText(this.evaluate(bound.operand, frame), frame, lengths);
      case 'replace':
        return perText(this.evaluate(bound.operand, frame), frame, (texts, rows) =>
          this.#replace(bound, texts, rows),
        );
      case 'truncate':
        return perNumber(this.evaluate(bound.operand, frame), (seconds) => truncateTime(bound.unit, seconds));
      case 'minute':
        return perNumber(this.evaluate(bound.operand, frame), minuteOf);
      case 'convert':
        return perNumber(
          this.evaluate(bound.operand, frame),
          bound.type === 'time' ? (days) => days * secondsOfDay : (value) => value,
        );
    }
  }

  /** The same object each time: what is made of it is known by it. */
  #literal(bound: Extract<Bound, { kind: 'literal' }>): Vector {
    let vector = this.#literals.get(bound);
    if (vector === undefined) {
      vector = { kind: 'constant', value: bound.value };
      this.#literals.set(bound, vector);
    }
    return vector;
  }

  /** A condition: a number is true where it is not 0. */
  truths(bound: Bound, frame: Frame): Uint8Array {
    const vector = this.evaluate(bound, frame);
    if (vector.kind === 'truths') return vector.values;
    const truths = new Uint8Array(frame.rowCount);
    if (vector.kind === 'constant') return truths.fill(truthOf(vector.value));
    if (vector.kind === 'texts') throw new TypeError('a condition of text');
    const { values, nulls } = vector;
    for (let row = 0; row < truths.length; row++) {
      const isNull = nulls !== null && nulls[row] === 1;
      truths[row] = isNull ? unknown : Number(values[row]) === 0 ? falsy : truthy;
    }
    return truths;
  }

  #arithmetic(bound: Extract<Bound, { kind: 'arithmetic' }>, frame: Frame): Vector {
    const { operator, type, at } = bound;
    const left = asValues(this.evaluate(bound.left, frame), frame.rowCount);
    const right = asValues(this.evaluate(bound.right, frame), frame.rowCount);
    const nulls = eitherNull(left.nulls, right.nulls);
    if (left.kind === 'numbers' && right.kind === 'numbers') {
      const sums = new Float64Array(frame.rowCount);
      const [a, b] = [left.values, right.values];
      let largest = 0;
      const sign = operator === '+' ? 1 : -1;
      for (let row = 0; row < sums.length; row++) {
        const sum = (a[row] as number) + sign * (b[row] as number);
        sums[row] = sum;
        const size = sum < 0 ? -sum : sum;
        if (size > largest) largest = size;
      }
      if (type === 'float' || largest <= Number.MAX_SAFE_INTEGER)
        return { kind: 'numbers', values: sums, nulls };
    }
    return { kind: 'wide', values: wideSums(asWide(left), asWide(right), { operator, nulls, at }), nulls };
  }

  #logic({ operator, operands }: Extract<Bound, { kind: 'logic' }>, frame: Frame): Vector {
    // One that decides wins over one that is unknown.
    const deciding = operator === 'and' ? falsy : truthy;
    const values = Uint8Array.from(this.truths(must(operands[0], 'an operand'), frame));
    for (const operand of operands.slice(1)) {
      const other = this.truths(operand, frame);
      for (let row = 0; row < values.length; row++) {
        const [a, b] = [values[row] as number, other[row] as number];
        if (b === deciding || a === deciding) values[row] = deciding;
        else if (b === unknown) values[row] = unknown;
      }
    }
    return { kind: 'truths', values };
  }

  #in(bound: Extract<Bound, { kind: 'in' }>, frame: Frame): Vector {
    const operand = this.evaluate(bound.operand, frame);
    const values =
      operand.kind === 'texts'
        ? truthsByCode(
            operand,
            this.#of(bound, operand, () => codesIn(operand, bound.values)),
            frame.rowCount,
          )
        : isIn(operand, bound.values, frame.rowCount);
    const [found, absent] = bound.negated ? [falsy, truthy] : [truthy, falsy];
    for (let row = 0; row < values.length; row++) {
      if (values[row] === truthy) values[row] = found;
      // It may be what the NULL in the list stands for.
      else if (values[row] === falsy) values[row] = bound.hasNull ? unknown : absent;
    }
    return { kind: 'truths', values };
  }

  #like(bound: Extract<Bound, { kind: 'like' }>, frame: Frame): Vector {
    const texts = asTexts(this.evaluate(bound.operand, frame), frame.rowCount);
    const matches = this.#of(bound, texts, () => {
      const found = matchDictionary(this.#patternOf(bound), texts.dictionary);
      return bound.negated ? found.map((isMatch) => 1 - isMatch) : found;
    });
    return { kind: 'truths', values: truthsByCode(texts, matches, frame.rowCount) };
  }

  #patternOf(bound: Extract<Bound, { kind: 'like' }>): LikePattern {
    let pattern = this.#likes.get(bound);
    if (pattern === undefined) {
      pattern = likePattern(bound.pattern, bound.escapedBy);
      this.#likes.set(bound, pattern);
    }
    return pattern;
  }

  /** Made once for each dictionary. */
  #of(bound: Bound, { dictionary }: Texts, make: () => Uint8Array): Uint8Array {
    const known = this.#byCode.get(bound);
    if (known?.dictionary === dictionary) return known.byCode;
    const byCode = make();
    this.#byCode.set(bound, { dictionary, byCode });
    return byCode;
  }

  /** Of a text with one that is known; null for all others. */
  #compareByCode(
    bound: Extract<Bound, { kind: 'compare' }>,
    left: Vector,
    right: Vector,
    rowCount: number,
  ): Vector | null {
    if (left.kind !== 'texts' || right.kind !== 'constant' || typeof right.value !== 'string') return null;
    const { value } = right;
    const byCode = this.#of(bound, left, () => codesThat(bound.operator, left, value));
    return { kind: 'truths', values: truthsByCode(left, byCode, rowCount) };
  }

  #isNull({ operand, negated: isNot }: Extract<Bound, { kind: 'isNull' }>, frame: Frame): Vector {
    const vector = this.evaluate(operand, frame);
    const values = new Uint8Array(frame.rowCount);
    for (let row = 0; row < values.length; row++)
      values[row] = isNullAt(vector, row) === isNot ? falsy : truthy;
    return { kind: 'truths', values };
  }

  #case(bound: Extract<Bound, { kind: 'case' }>, frame: Frame): Vector {
    const { branches, otherwise, type } = bound;
    const { rowCount } = frame;
    const results = [...branches.map(({ result }) => result), otherwise].map((then) =>
      this.evaluate(then, frame),
    );
    // Which of the results is a row's: the first whose condition is true.
    const chosen = new Uint16Array(rowCount).fill(branches.length);
    const isOpen = new Uint8Array(rowCount).fill(1);
    for (const [branch, { when }] of branches.entries()) {
      const truths = this.truths(when, frame);
      for (let row = 0; row < rowCount; row++) {
        if (isOpen[row] === 0 || truths[row] !== truthy) continue;
        isOpen[row] = 0;
        chosen[row] = branch;
      }
    }
    return type === 'text' ? this.#chooseTexts(bound, results, chosen) : chooseNumbers(results, chosen);
  }

  #coalesce(bound: Extract<Bound, { kind: 'coalesce' }>, frame: Frame): Vector {
    const results = bound.operands.map((operand) => this.evaluate(operand, frame));
    // The last one where all are NULL.
    const chosen = new Uint16Array(frame.rowCount).fill(results.length - 1);
    for (let row = 0; row < chosen.length; row++) {
      const first = results.findIndex((result) => !isNullAt(result, row));
      if (first >= 0) chosen[row] = first;
    }
    return bound.type === 'text' ? this.#chooseTexts(bound, results, chosen) : chooseNumbers(results, chosen);
  }

  /** Of dictionaries that are joined once for all frames that share them. */
  #chooseTexts(bound: Bound, results: readonly Vector[], chosen: Uint16Array): Vector {
    const rowCount = chosen.length;
    const each = results.map((result) => asTexts(result, rowCount));
    let known = this.#joined.get(bound);
    if (known === undefined || known.of.some((dictionary, at) => dictionary !== each[at]?.dictionary)) {
      const of = each.map(({ dictionary }) => dictionary);
      known = { of, ...joined(of) };
      this.#joined.set(bound, known);
    }
    const codes: Codes = new Int32Array(rowCount);
    const nulls = new Uint8Array(rowCount);
    for (let row = 0; row < rowCount; row++) {
      const branch = chosen[row] as number;
      const texts = each[branch] as Texts;
      codes[row] = (known.firstCodes[branch] as number) + (texts.codes[row] as number);
      nulls[row] = texts.nulls === null ? 0 : (texts.nulls[row] as number);
    }
    const { dictionary } = known;
    return { kind: 'texts', codes, dictionary, nulls: nulls.includes(1) ? nulls : null };
  }

  /** Each string once for as long as its dictionary lasts, and of those the ones that the rows have. */
  #replace(bound: Extract<Bound, { kind: 'replace' }>, texts: Texts, { rows, rowCount }: FrameRows): Vector {
    const { results } = this.#replacedOf(bound, texts.dictionary);
    const { dictionary, codes, nulls } = texts;
    const parts: Uint8Array[] = [];
    const newCodes = new Int32Array(rowCount);
    const newCodeOf = new Map<number, number>();
    const count = rows?.length ?? rowCount;
    for (let i = 0; i < count; i++) {
      const row = rows === null ? i : (rows[i] as number);
      if (nulls !== null && nulls[row] === 1) continue;
      const code = codes[row] as number;
      let newCode = newCodeOf.get(code);
      if (newCode === undefined) {
        const known = results[code] ?? this.#replaceOne(bound, textBytes(dictionary, code));
        results[code] = known;
        newCode = parts.push(known) - 1;
        newCodeOf.set(code, newCode);
      }
      newCodes[row] = newCode;
    }
    // Rows that do not matter have the first string.
    const replaced = dictionaryOf(parts.length === 0 ? [''] : parts);
    return { kind: 'texts', codes: newCodes, nulls, dictionary: replaced };
  }

  #replaceOne(bound: Extract<Bound, { kind: 'replace' }>, text: Buffer): Buffer {
    const replaced = must(this.#replaced.get(bound), 'a replacer');
    const made = replaced.replace(text);
    replaced.bytes += made.length;
    if (made.length > limits.sqlReplacedBytesMax || replaced.bytes > limits.sqlReplacedChunkBytesMax)
      throw new SqlError(0, 'REGEXP_REPLACE makes more text than fits: replace fewer or shorter texts');
    return made;
  }

  #replacedOf(bound: Extract<Bound, { kind: 'replace' }>, dictionary: Dictionary): Replaced {
    const known = this.#replaced.get(bound);
    if (known?.dictionary === dictionary) return known;
    const replace = known?.replace ?? this.#newReplacer(bound.pattern, bound.replacement);
    const made: Replaced = { dictionary, replace, results: [], bytes: 0 };
    this.#replaced.set(bound, made);
    return made;
  }
}

interface Replaced {
  readonly dictionary: Dictionary;
  readonly replace: Replacer;
  /** By codes, as far as they were asked for. */
  readonly results: (Buffer | undefined)[];
  /** Of all results. */
  bytes: number;
}

function textBytes(dictionary: Dictionary, code: number): Buffer {
  return dictionary.bytes.subarray(startOf(dictionary, code), dictionary.ends[code]);
}

function negated(truth: number): number {
  return truth === unknown ? unknown : 1 - truth;
}

function truthOf(value: SqlValue): number {
  return value === null ? unknown : Number(value) === 0 ? falsy : truthy;
}

function truthsByCode({ codes, nulls }: Texts, byCode: Uint8Array, rowCount: number): Uint8Array {
  const truths = new Uint8Array(rowCount);
  for (let row = 0; row < rowCount; row++) truths[row] = byCode[codes[row] as number] as number;
  if (nulls !== null) for (let row = 0; row < rowCount; row++) if (nulls[row] === 1) truths[row] = unknown;
  return truths;
}

function lengths({ codes, nulls, dictionary }: Texts, { rowCount }: FrameRows): Vector {
  const values = new Float64Array(rowCount);
  const { ends } = dictionary;
  for (let row = 0; row < rowCount; row++) {
    const code = codes[row] as number;
    values[row] = (ends[code] as number) - (code === 0 ? 0 : (ends[code - 1] as number));
  }
  return { kind: 'numbers', values, nulls };
}

type FrameRows = Pick<Frame, 'rows' | 'rowCount'>;

/** Of a constant once. */
function perText(vector: Vector, rows: FrameRows, of: (texts: Texts, rows: FrameRows) => Vector): Vector {
  if (vector.kind === 'texts') return of(vector, rows);
  if (vector.kind !== 'constant') throw new TypeError('no text');
  return vector.value === null ? vector : constantOf(of(asTexts(vector, 1), { rows: null, rowCount: 1 }));
}

/** Of a vector of one row. */
function constantOf(vector: Vector): Vector {
  if (vector.kind === 'texts')
    return {
      kind: 'constant',
      value: vector.dictionary.bytes.toString('utf8', 0, vector.dictionary.ends[0]),
    };
  return { kind: 'constant', value: BigInt((vector as { values: Float64Array }).values[0] as number) };
}

function perNumber(vector: Vector, of: (value: number) => number): Vector {
  switch (vector.kind) {
    case 'numbers':
      return { kind: 'numbers', values: vector.values.map(of), nulls: vector.nulls };
    case 'wide':
      return {
        kind: 'numbers',
        values: Float64Array.from(vector.values, (value) => of(Number(value))),
        nulls: vector.nulls,
      };
    case 'constant':
      return vector.value === null ? vector : { kind: 'constant', value: of(Number(vector.value)) };
    case 'truths':
      return perNumber(asValues(vector, vector.values.length), of);
    case 'texts':
      throw new TypeError('no number');
  }
}

function eitherNull(a: Nulls, b: Nulls): Nulls {
  if (a === null || b === null) return a ?? b;
  return a.map((isNull, row) => isNull | (b[row] as number));
}

function wideSums(
  left: BigInt64Array,
  right: BigInt64Array,
  { operator, nulls, at }: { readonly operator: '+' | '-'; readonly nulls: Nulls; readonly at: number },
): BigInt64Array {
  const sums = new BigInt64Array(left.length);
  for (let row = 0; row < sums.length; row++) {
    if (nulls?.[row] === 1) continue;
    const [a, b] = [left[row] as bigint, right[row] as bigint];
    const sum = operator === '+' ? a + b : a - b;
    if (BigInt.asIntN(64, sum) !== sum) throw new SqlError(at, `${a} ${operator} ${b} does not fit 64 bits`);
    sums[row] = sum;
  }
  return sums;
}

function chooseNumbers(results: readonly Vector[], chosen: Uint16Array): Vector {
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
  const values = new Float64Array(rowCount);
  for (let row = 0; row < rowCount; row++)
    values[row] = ((each[chosen[row] as number] as Values).values as Float64Array)[row] as number;
  return { kind: 'numbers', values, nulls: someNull };
}

interface JoinedDictionaries {
  readonly of: readonly Dictionary[];
  readonly dictionary: Dictionary;
  readonly firstCodes: readonly number[];
}

/** All dictionaries, one after the other. */
function joined(dictionaries: readonly Dictionary[]): {
  readonly dictionary: Dictionary;
  readonly firstCodes: number[];
} {
  const count = dictionaries.reduce((sum, each) => sum + each.count, 0);
  const ends = new Uint32Array(count);
  const firstCodes: number[] = [];
  let next = 0;
  let bytes = 0;
  for (const each of dictionaries) {
    firstCodes.push(next);
    for (let code = 0; code < each.count; code++) ends[next++] = bytes + (each.ends[code] as number);
    bytes += each.count === 0 ? 0 : (each.ends[each.count - 1] as number);
  }
  const parts = dictionaries.map(({ bytes: all, ends: each, count: length }) =>
    all.subarray(0, length === 0 ? 0 : each[length - 1]),
  );
  return { dictionary: { count, ends, bytes: Buffer.concat(parts) }, firstCodes };
}
