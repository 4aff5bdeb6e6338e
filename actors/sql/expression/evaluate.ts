import { limits } from '../../../protocol/limits.ts';
import { must } from '../../../src/base/assert.ts';
import { minuteOf, secondsOfDay, truncateTime } from '../dates.ts';
import {
  type Column,
  type Dictionary,
  dictionaryOf,
  falsy,
  isNullAt,
  type Nulls,
  startOf,
  type Texts,
  truthy,
  unknown,
} from '../frame/column.ts';
import { asTexts, asValues, asWide, type Values } from '../frame/column-forms.ts';
import type { Frame, NewReplacer, Replacer } from '../frame/frame.ts';
import { ByCodes } from '../intern/by-codes.ts';
import { TextInterner } from '../intern/text-interner.ts';
import { Interruption, type SqlTurns } from '../interruption.ts';
import { flipped } from '../parse/syntax.ts';
import type { Bound, SqlValue } from '../plan/bound.ts';
import type { Room } from '../room.ts';
import { SqlError } from '../sql-error.ts';
import { codesIn, codesThat, compareColumns, isIn } from './compare.ts';
import { type LikePattern, likePattern, matchDictionary } from './like.ts';

/**
 * Expressions over a frame, a column at a time. What depends on one text alone is made once for each string of its dictionary.
 * Patterns are compiled once for each evaluator.
 */
export class Evaluator {
  readonly #newReplacer: NewReplacer;
  readonly #room: Room;
  readonly #turns: SqlTurns;
  readonly #literals = new Map<Bound, Column>();
  readonly #chosen = new Map<Bound, TextInterner>();
  readonly #likes = new Map<Bound, LikePattern>();
  /** What was made of the last dictionary: frames share it. */
  readonly #byCode = new Map<Bound, JudgedCodes>();
  #judgedBytes = 0;
  readonly #replaced = new Map<Bound, Replaced>();
  readonly #replacedConstants = new Map<Bound, { readonly value: SqlValue; readonly column: Column }>();
  readonly #repeated: ReadonlySet<Bound>;
  /** Of `#known`. */
  #frame: Frame | null = null;
  /** What repeated expressions are in the frame. */
  readonly #known = new Map<Bound, Column>();

  /**
   * `repeated`: expressions that stand in several places, of which a frame keeps what they are. What would take longer than a
   * turn of `turns` throws an Interruption: its work done, the same is evaluated again.
   */
  constructor(
    newReplacer: NewReplacer,
    room: Room,
    { repeated, turns }: { readonly repeated: ReadonlySet<Bound>; readonly turns: SqlTurns },
  ) {
    this.#newReplacer = newReplacer;
    this.#room = room;
    this.#repeated = repeated;
    this.#turns = turns;
  }

  evaluate(bound: Bound, frame: Frame): Column {
    if (this.#repeated.size === 0 || !this.#repeated.has(bound)) return this.#evaluated(bound, frame);
    if (frame !== this.#frame) {
      this.#known.clear();
      this.#frame = frame;
    }
    let column = this.#known.get(bound);
    if (column === undefined) {
      column = this.#evaluated(bound, frame);
      this.#known.set(bound, column);
    }
    return column;
  }

  #evaluated(bound: Bound, frame: Frame): Column {
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
        const compared = this.#compareByCode(bound, left, right, { rowCount: frame.rowCount, of: bound });
        return compared ?? compareColumns(bound.operator, left, right, frame.rowCount);
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
        return this.#replaceIn(bound, frame);
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
  #literal(bound: Extract<Bound, { kind: 'literal' }>): Column {
    let column = this.#literals.get(bound);
    if (column === undefined) {
      column = { kind: 'constant', value: bound.value };
      this.#literals.set(bound, column);
    }
    return column;
  }

  /** A condition: a number is true where it is not 0. */
  truths(bound: Bound, frame: Frame): Uint8Array {
    const column = this.evaluate(bound, frame);
    if (column.kind === 'truths') return column.values;
    const truths = new Uint8Array(frame.rowCount);
    if (column.kind === 'constant') return truths.fill(truthOf(column.value));
    if (column.kind === 'texts') throw new TypeError('a condition of text');
    const { values, nulls } = column;
    for (let row = 0; row < truths.length; row++) {
      const isNull = nulls !== null && nulls[row] === 1;
      truths[row] = isNull ? unknown : Number(values[row]) === 0 ? falsy : truthy;
    }
    return truths;
  }

  #arithmetic(bound: Extract<Bound, { kind: 'arithmetic' }>, frame: Frame): Column {
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

  #logic({ operator, operands }: Extract<Bound, { kind: 'logic' }>, frame: Frame): Column {
    const both = operator === 'and' ? andTable : orTable;
    const values = Uint8Array.from(this.truths(must(operands[0], 'an operand'), frame));
    for (const operand of operands.slice(1)) {
      const other = this.truths(operand, frame);
      for (let row = 0; row < values.length; row++)
        values[row] = both[((values[row] as number) << 2) | (other[row] as number)] as number;
    }
    return { kind: 'truths', values };
  }

  #in(bound: Extract<Bound, { kind: 'in' }>, frame: Frame): Column {
    const operand = this.evaluate(bound.operand, frame);
    const values =
      operand.kind === 'texts'
        ? this.#truthsByCode(bound, operand, frame.rowCount, (some) => codesIn(some, bound.values))
        : isIn(operand, bound.values, frame.rowCount);
    const [found, absent] = bound.negated ? [falsy, truthy] : [truthy, falsy];
    for (let row = 0; row < values.length; row++) {
      if (values[row] === truthy) values[row] = found;
      // It may be what the NULL in the list stands for.
      else if (values[row] === falsy) values[row] = bound.hasNull ? unknown : absent;
    }
    return { kind: 'truths', values };
  }

  #like(bound: Extract<Bound, { kind: 'like' }>, frame: Frame): Column {
    const texts = asTexts(this.evaluate(bound.operand, frame), frame.rowCount);
    const pattern = this.#patternOf(bound);
    const judge = (some: Dictionary) => {
      const found = matchDictionary(pattern, some);
      return bound.negated ? found.map((isMatch) => 1 - isMatch) : found;
    };
    const bytesAtOnce = likeStepsAtOnce / pattern.stepsPerByte;
    const values = this.#truthsByCode(bound, texts, frame.rowCount, judge, bytesAtOnce);
    return { kind: 'truths', values };
  }

  #patternOf(bound: Extract<Bound, { kind: 'like' }>): LikePattern {
    let pattern = this.#likes.get(bound);
    if (pattern === undefined) {
      pattern = likePattern(bound.pattern, bound.escapedBy);
      this.#likes.set(bound, pattern);
    }
    return pattern;
  }

  /** Each string of a dictionary is judged once, with those beside it, when a row has one of them. */
  #truthsByCode(
    bound: Bound,
    { codes, nulls, dictionary }: Texts,
    rowCount: number,
    judge: (some: Dictionary) => Uint8Array,
    bytesAtOnce = Number.POSITIVE_INFINITY,
  ): Uint8Array {
    const judged = this.#judgedOf(bound, dictionary);
    const by: JudgedBy = { judge, bytesAtOnce };
    const truths = new Uint8Array(rowCount);
    let { truths: byCode, count } = judged;
    let isFar = false;
    for (let row = 0; row < rowCount; row++) {
      const code = codes[row] as number;
      if (code >= count) {
        if (code >= count + judgedAtOnce) {
          isFar = true;
          continue;
        }
        this.#judgeThrough(judged, code, by);
        ({ truths: byCode, count } = judged);
      }
      truths[row] = byCode[code] as number;
    }
    if (isFar) this.#judgeFar(judged, codes, truths, by);
    if (nulls !== null) for (let row = 0; row < rowCount; row++) if (nulls[row] === 1) truths[row] = unknown;
    return truths;
  }

  #judgedOf(bound: Bound, dictionary: Dictionary): JudgedCodes {
    const known = this.#byCode.get(bound);
    if (known?.dictionary === dictionary) return known;
    this.#judgedBytes += dictionary.count - (known?.truths.byteLength ?? 0);
    this.#room.hold(this.bytes);
    const judged = { dictionary, truths: new Uint8Array(dictionary.count), count: 0, far: new Map() };
    this.#byCode.set(bound, judged);
    return judged;
  }

  /** Judges the strings up to that code, and some more; throws an Interruption where a turn is over before. */
  #judgeThrough(judged: JudgedCodes, code: number, by: JudgedBy): void {
    this.#inTurns(
      by,
      () => judged.count > code,
      () => judgeNext(judged, by),
    );
  }

  /**
   * Fills in the rows whose strings lie far behind those that are known, because rows between were not looked at: judges these
   * strings alone, so that a frame costs no more than it has rows, and the next strings, so that what is known catches up.
   */
  #judgeFar(judged: JudgedCodes, codes: Texts['codes'], truths: Uint8Array, by: JudgedBy): void {
    const { far } = judged;
    judgeNext(judged, by);
    const missing = new Set<number>();
    for (let row = 0; row < truths.length; row++) {
      const code = codes[row] as number;
      if (code >= judged.count && !far.has(code)) missing.add(code);
    }
    const left = [...missing];
    this.#inTurns(
      by,
      () => left.length === 0,
      () => judgeApart(judged, left, by),
    );
    for (let row = 0; row < truths.length; row++) {
      const code = codes[row] as number;
      truths[row] = (code < judged.count ? judged.truths[code] : far.get(code)) as number;
    }
    far.clear();
  }

  /**
   * Does some of the work until all is done. Where strings are long to judge, an Interruption is thrown when a turn is over:
   * `mayInterrupt` says so of the expression.
   */
  #inTurns({ bytesAtOnce }: JudgedBy, isDone: () => boolean, work: () => void): void {
    const turns = this.#turns;
    while (!isDone()) {
      if (!Number.isFinite(bytesAtOnce) || !turns.due()) work();
      else
        throw new Interruption(async () => {
          while (!isDone() && !turns.timedOut) {
            await turns.giveWay();
            do work();
            while (!isDone() && !turns.due());
          }
        });
    }
  }

  /** Of a text with one that is known; null for all others. */
  #compareByCode(
    bound: Extract<Bound, { kind: 'compare' }>,
    left: Column,
    right: Column,
    { rowCount, of }: { readonly rowCount: number; readonly of: Bound },
  ): Column | null {
    if (left.kind === 'constant' && right.kind === 'texts')
      return this.#compareByCode({ ...bound, operator: flipped[bound.operator] }, right, left, {
        rowCount,
        of: bound,
      });
    if (left.kind !== 'texts' || right.kind !== 'constant' || typeof right.value !== 'string') return null;
    const { value } = right;
    const values = this.#truthsByCode(of, left, rowCount, (some) => codesThat(bound.operator, some, value));
    return { kind: 'truths', values };
  }

  #isNull({ operand, negated: isNot }: Extract<Bound, { kind: 'isNull' }>, frame: Frame): Column {
    const column = this.evaluate(operand, frame);
    const values = new Uint8Array(frame.rowCount);
    for (let row = 0; row < values.length; row++)
      values[row] = isNullAt(column, row) === isNot ? falsy : truthy;
    return { kind: 'truths', values };
  }

  #case(bound: Extract<Bound, { kind: 'case' }>, frame: Frame): Column {
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

  #coalesce(bound: Extract<Bound, { kind: 'coalesce' }>, frame: Frame): Column {
    const results = bound.operands.map((operand) => this.evaluate(operand, frame));
    // The last one where all are NULL.
    const chosen = new Uint16Array(frame.rowCount).fill(results.length - 1);
    for (let row = 0; row < chosen.length; row++) {
      const first = results.findIndex((result) => !isNullAt(result, row));
      if (first >= 0) chosen[row] = first;
    }
    return bound.type === 'text' ? this.#chooseTexts(bound, results, chosen) : chooseNumbers(results, chosen);
  }

  /** Of one dictionary for all of them, into which a string comes when a row has it. */
  #chooseTexts(bound: Bound, results: readonly Column[], chosen: Uint16Array): Column {
    const rowCount = chosen.length;
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

  /** Of a constant once: who evaluates an interrupted expression again must find the same dictionaries. */
  #replaceIn(bound: Extract<Bound, { kind: 'replace' }>, frame: Frame): Column {
    const operand = this.evaluate(bound.operand, frame);
    const replace = (texts: Texts, rows: FrameRows) => this.#replace(bound, texts, rows);
    if (operand.kind !== 'constant') return perText(operand, frame, replace);
    let made = this.#replacedConstants.get(bound);
    if (made?.value !== operand.value) {
      made = { value: operand.value, column: perText(operand, frame, replace) };
      this.#replacedConstants.set(bound, made);
    }
    return made.column;
  }

  /** Each string once for as long as its dictionary lasts, when a row has it. */
  #replace(bound: Extract<Bound, { kind: 'replace' }>, texts: Texts, { rows, rowCount }: FrameRows): Column {
    const replaced = this.#replacedOf(bound);
    const { dictionary, codes, nulls } = texts;
    const newCodes = new Int32Array(rowCount);
    let byCode = replaced.byCodes.of(dictionary, dictionary.count);
    const count = rows?.length ?? rowCount;
    const made = new MadeTexts(replaced.at);
    for (let i = 0; i < count; i++) {
      const row = rows === null ? i : (rows[i] as number);
      if (nulls !== null && nulls[row] === 1) continue;
      const code = codes[row] as number;
      if (byCode[code] === 0) {
        const result = this.#turns.due() ? null : replaced.replacer.quickly(textBytes(dictionary, code));
        if (result === null)
          throw new Interruption(() => this.#replaceSlowly(replaced, texts, { rows, rowCount, from: i }));
        made.add(result);
        byCode = noteReplaced(replaced, { dictionary, code, result });
      }
      newCodes[row] = (byCode[code] as number) - 1;
    }
    // Rows that do not matter have the first string, so there is one.
    if (replaced.results.count === 0) replaced.results.number(Buffer.alloc(0));
    return { kind: 'texts', codes: newCodes, nulls, dictionary: replaced.results.dictionary };
  }

  /** The strings of the rows from one on, others having their turns in between. */
  async #replaceSlowly(
    replaced: Replaced,
    { dictionary, codes, nulls }: Texts,
    { rows, rowCount, from }: FrameRows & { readonly from: number },
  ): Promise<void> {
    const turns = this.#turns;
    const made = new MadeTexts(replaced.at);
    const count = rows?.length ?? rowCount;
    for (let i = from; i < count; i++) {
      const row = rows === null ? i : (rows[i] as number);
      const code = codes[row] as number;
      if (nulls?.[row] === 1 || replaced.byCodes.of(dictionary, dictionary.count)[code] !== 0) continue;
      if (turns.due()) await turns.giveWay();
      if (turns.timedOut) return;
      // Of its own: what it is a part of may be used for something else while others have their turn.
      const text = Buffer.from(textBytes(dictionary, code));
      const result = replaced.replacer.quickly(text) ?? (await replaced.replacer.slowly(text));
      if (result === 'late') return;
      if (result === 'too-large') throw tooMuchReplaced(replaced.at);
      made.add(result);
      noteReplaced(replaced, { dictionary, code, result });
    }
  }

  #replacedOf(bound: Extract<Bound, { kind: 'replace' }>): Replaced {
    const known = this.#replaced.get(bound);
    if (known !== undefined) return known;
    const replacer = this.#newReplacer(bound);
    const replaced = {
      replacer,
      at: bound.at,
      results: new TextInterner(this.#room),
      byCodes: new ByCodes(this.#room),
    };
    this.#replaced.set(bound, replaced);
    return replaced;
  }

  /** What it holds, in bytes. */
  get bytes(): number {
    let sum = 0;
    for (const { results, byCodes } of this.#replaced.values()) sum += results.bytes + byCodes.bytes;
    for (const { bytes } of this.#chosen.values()) sum += bytes;
    return sum + this.#judgedBytes;
  }
}

/** One that decides wins over one that is unknown. By the first truth times 4, and the second. */
const andTable = Uint8Array.of(falsy, falsy, falsy, 0, falsy, truthy, unknown, 0, falsy, unknown, unknown, 0);
const orTable = Uint8Array.of(
  falsy,
  truthy,
  unknown,
  0,
  truthy,
  truthy,
  truthy,
  0,
  unknown,
  truthy,
  unknown,
  0,
);

/** What REGEXP_REPLACE makes of the rows of a frame. */
class MadeTexts {
  readonly #at: number;
  #bytes = 0;

  /** `at`: where the pattern stands. */
  constructor(at: number) {
    this.#at = at;
  }

  add({ length }: Buffer): void {
    this.#bytes += length;
    if (length > limits.sqlReplacedBytesMax || this.#bytes > limits.sqlReplacedChunkBytesMax)
      throw tooMuchReplaced(this.#at);
  }
}

function tooMuchReplaced(at: number): SqlError {
  return new SqlError(at, 'REGEXP_REPLACE makes more text than fits: replace fewer or shorter texts');
}

/** Answers the numbers of results by codes, which may be others than before. */
function noteReplaced(
  { byCodes, results }: Replaced,
  {
    dictionary,
    code,
    result,
  }: { readonly dictionary: Dictionary; readonly code: number; readonly result: Buffer },
): Int32Array {
  const byCode = byCodes.of(dictionary, dictionary.count);
  byCode[code] = results.number(result) + 1;
  return byCode;
}

interface Replaced {
  readonly at: number;
  readonly replacer: Replacer;
  /** Distinct ones. */
  readonly results: TextInterner;
  /** Their numbers by the codes of what they were made of. */
  readonly byCodes: ByCodes;
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

/** What is known of the first strings of a dictionary. */
interface JudgedCodes {
  readonly dictionary: Dictionary;
  truths: Uint8Array;
  count: number;
  /** Strings that were judged apart for the frame that is evaluated. */
  readonly far: Map<number, number>;
}

/** So many strings are judged at a time: fewer calls, and no long turn. */
const judgedAtOnce = 16_384;
/** LIKE looks at so many bytes at a time, divided by its steps for each, but for one string: about a millisecond. */
const likeStepsAtOnce = 1_000_000;

interface JudgedBy {
  readonly judge: (some: Dictionary) => Uint8Array;
  /** So many bytes at a time, but for one string. Infinite where judging is quick: then it is not interrupted. */
  readonly bytesAtOnce: number;
}

/** Judges the next strings, as many as are judged at once. */
function judgeNext(judged: JudgedCodes, { judge, bytesAtOnce }: JudgedBy): void {
  const { dictionary, count } = judged;
  if (count === dictionary.count) return;
  const end = someEnd(dictionary, count, bytesAtOnce);
  if (judged.truths.length < end) {
    const larger = new Uint8Array(Math.max(dictionary.count, judged.truths.length * 2));
    larger.set(judged.truths);
    judged.truths = larger;
  }
  judged.truths.set(judge(part(dictionary, count, end)), count);
  judged.count = end;
}

/** Judges some of these strings by themselves, and takes them from the list. */
function judgeApart(
  { dictionary, far }: JudgedCodes,
  codes: number[],
  { judge, bytesAtOnce }: JudgedBy,
): void {
  const some: number[] = [];
  for (let bytes = 0; codes.length > 0 && some.length < judgedAtOnce && bytes < bytesAtOnce; ) {
    const code = codes.pop() as number;
    some.push(code);
    bytes += (dictionary.ends[code] as number) - startOf(dictionary, code);
  }
  const truths = judge(dictionaryOf(some.map((code) => textBytes(dictionary, code))));
  for (const [at, code] of some.entries()) far.set(code, truths[at] as number);
}

/** Where the strings end that are judged together, the first of them being `from`. */
function someEnd(dictionary: Dictionary, from: number, bytesAtOnce: number): number {
  const start = startOf(dictionary, from);
  let [least, most] = [from + 1, Math.min(dictionary.count, from + judgedAtOnce)];
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if ((dictionary.ends[middle - 1] as number) - start <= bytesAtOnce) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** Strings from `from` to before `end`. */
function part(dictionary: Dictionary, from: number, end: number): Dictionary {
  if (from === 0 && end === dictionary.count) return dictionary;
  const start = startOf(dictionary, from);
  const ends = dictionary.ends.slice(from, end);
  for (let i = 0; i < ends.length; i++) ends[i] = (ends[i] as number) - start;
  return { count: end - from, bytes: dictionary.bytes.subarray(start, dictionary.ends[end - 1]), ends };
}

function lengths({ codes, nulls, dictionary }: Texts, { rowCount }: FrameRows): Column {
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
function perText(column: Column, rows: FrameRows, of: (texts: Texts, rows: FrameRows) => Column): Column {
  if (column.kind === 'texts') return of(column, rows);
  if (column.kind !== 'constant') throw new TypeError('no text');
  return column.value === null ? column : constantOf(of(asTexts(column, 1), { rows: null, rowCount: 1 }));
}

/** Of a column of one row. */
function constantOf(column: Column): Column {
  if (column.kind === 'texts')
    return {
      kind: 'constant',
      value: column.dictionary.bytes.toString('utf8', 0, column.dictionary.ends[0]),
    };
  return { kind: 'constant', value: BigInt((column as { values: Float64Array }).values[0] as number) };
}

function perNumber(column: Column, of: (value: number) => number): Column {
  switch (column.kind) {
    case 'numbers':
      return { kind: 'numbers', values: column.values.map(of), nulls: column.nulls };
    case 'wide':
      return {
        kind: 'numbers',
        values: Float64Array.from(column.values, (value) => of(Number(value))),
        nulls: column.nulls,
      };
    case 'constant':
      return column.value === null ? column : { kind: 'constant', value: of(Number(column.value)) };
    case 'truths':
      return perNumber(asValues(column, column.values.length), of);
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

function chooseNumbers(results: readonly Column[], chosen: Uint16Array): Column {
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
