import { must } from '../../../src/base/assert.ts';
import { minuteOf, secondsOfDay, truncateTime } from '../dates.ts';
import {
  type Column,
  type Dictionary,
  falsy,
  isNullAt,
  type Texts,
  truthy,
  unknown,
} from '../frame/column.ts';
import { asTexts } from '../frame/column-forms.ts';
import type { Frame, FrameRows } from '../frame/frame.ts';
import { Interruption, type SqlTurns } from '../interruption.ts';
import { flipped } from '../parse/syntax.ts';
import type { Bound } from '../plan/bound.ts';
import { boundParts } from '../plan/bound-parts.ts';
import type { SqlValue } from '../plan/value-list.ts';
import type { Room } from '../room.ts';
import { added } from './arithmetic.ts';
import { ChosenTexts, chooseNumbers } from './choose.ts';
import { codesIn, codesThat, compareColumns, isIn } from './compare.ts';
import { JudgedTexts } from './judged-texts.ts';
import { type LikePattern, likePattern, matchDictionary } from './like.ts';
import { lengths, perNumber, perText } from './per-value.ts';
import { ReplacedTexts } from './replaced-texts.ts';
import type { NewReplacer } from './replacer.ts';

/** How many bytes LIKE looks at in a turn, times its steps for each, but for one long string: about a millisecond. */
const likeStepsAtOnce = 1_000_000;

/**
 * Evaluates expressions over frames, a column at a time. What depends on one text alone is made once for each string of its
 * dictionary. Patterns are compiled once for each evaluator.
 */
export class Evaluator {
  readonly #literals = new Map<Bound, Column>();
  readonly #likes = new Map<Bound, LikePattern>();
  readonly #chosen: ChosenTexts;
  readonly #judged: JudgedTexts;
  readonly #replaced: ReplacedTexts;
  readonly #madeOfConstants = new Map<Bound, { readonly value: SqlValue; readonly column: Column }>();
  readonly #repeated: ReadonlySet<Bound>;
  /** Null where a frame's expressions take less than a turn together. */
  readonly #turnsOfParts: SqlTurns | null;
  /** The columns of a frame that are asked for again: repeated expressions; where parts are done in turns, all whose whole is not done. */
  readonly #known = new WeakMap<Frame, Map<Bound, Column>>();
  /** The frame whose expressions are evaluated; its own may ask for parts of others meanwhile. Null between two. */
  #frame: Frame | null = null;

  /**
   * `room`: for as many values as can come. `repeated`: expressions that stand in several places, so that a frame keeps what they
   * are. `hasManyParts`: whether the expressions are so many that others have their turn between two of them. What would take longer
   * than a turn of `turns` throws an Interruption: once its work is done, the same is evaluated again, over the same frame.
   */
  constructor(
    newReplacer: NewReplacer,
    room: Room,
    {
      repeated,
      hasManyParts,
      turns,
    }: {
      readonly repeated: ReadonlySet<Bound>;
      readonly hasManyParts: boolean;
      readonly turns: SqlTurns;
    },
  ) {
    this.#repeated = repeated;
    this.#turnsOfParts = hasManyParts ? turns : null;
    this.#chosen = new ChosenTexts(room);
    this.#judged = new JudgedTexts(turns, () => room.hold(this.bytes));
    this.#replaced = new ReplacedTexts(newReplacer, room, turns);
  }

  /** Whether evaluating may be interrupted at any of a frame's expressions. */
  get hasManyParts(): boolean {
    return this.#turnsOfParts !== null;
  }

  /** Bytes that it holds between frames, about. */
  get bytes(): number {
    return this.#replaced.bytes + this.#chosen.bytes + this.#judged.bytes;
  }

  /** Answers what an expression is in the rows of a frame. */
  evaluate(bound: Bound, frame: Frame): Column {
    if (this.#turnsOfParts !== null) return this.#inTurns(bound, frame, this.#turnsOfParts);
    if (this.#repeated.size === 0 || !this.#repeated.has(bound)) return this.#evaluated(bound, frame);
    const known = this.#knownOf(frame);
    let column = known.get(bound);
    if (column === undefined) {
      column = this.#evaluated(bound, frame);
      known.set(bound, column);
    }
    return column;
  }

  #knownOf(frame: Frame): Map<Bound, Column> {
    let known = this.#known.get(frame);
    if (known === undefined) {
      known = new Map();
      this.#known.set(frame, known);
    }
    return known;
  }

  /**
   * Evaluates an expression whose parts take longer than a turn together. What is known of the frame is found again after an
   * interruption, so that each brings it on; parts that no other expression needs are forgotten when what they are parts of is known.
   */
  #inTurns(bound: Bound, frame: Frame, turns: SqlTurns): Column {
    const { kind } = bound;
    if (kind === 'literal' || kind === 'column' || kind === 'textMatch') return this.#evaluated(bound, frame);
    const known = this.#knownOf(frame);
    const column = known.get(bound);
    if (column !== undefined) return column;
    const outer = this.#frame;
    this.#frame = outer ?? frame;
    try {
      known.set(bound, this.#evaluated(bound, frame));
    } finally {
      this.#frame = outer;
    }
    for (const part of boundParts(bound)) if (!this.#repeated.has(part)) known.delete(part);
    // A slot's frame has frames of its own, for keys that are made of others: these are new after an interruption.
    if ((outer === null || outer === frame) && turns.due()) throw othersFirst(turns);
    return must(known.get(bound), 'what was evaluated');
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
        return added(this.evaluate(bound.left, frame), this.evaluate(bound.right, frame), {
          operator: bound.operator,
          isFloat: bound.type === 'float',
          rowCount: frame.rowCount,
          at: bound.at,
        });
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
        return this.#perText(bound, frame, lengths);
      case 'replace':
        return this.#perText(bound, frame, (texts, rows) => this.#replaced.replace(bound, texts, rows));
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

  /** Answers a literal's column, the same object each time: what is made of it is known by it. */
  #literal(bound: Extract<Bound, { kind: 'literal' }>): Column {
    let column = this.#literals.get(bound);
    if (column === undefined) {
      column = { kind: 'constant', value: bound.value };
      this.#literals.set(bound, column);
    }
    return column;
  }

  /** Answers whether a condition holds in the rows of a frame: `falsy`, `truthy` or `unknown`. A number is true where it is not 0. */
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

  #logic({ operator, operands }: Extract<Bound, { kind: 'logic' }>, frame: Frame): Column {
    const both = operator === 'and' ? andTable : orTable;
    // All are evaluated first: whoever begins again after an interruption finds them, and looks at no row twice.
    const [first, ...others] = operands.map((operand) => this.truths(operand, frame));
    const values = Uint8Array.from(must(first, 'an operand'));
    for (const other of others)
      for (let row = 0; row < values.length; row++)
        values[row] = both[((values[row] as number) << 2) | (other[row] as number)] as number;
    return { kind: 'truths', values };
  }

  #in(bound: Extract<Bound, { kind: 'in' }>, frame: Frame): Column {
    const operand = this.evaluate(bound.operand, frame);
    const values =
      operand.kind === 'texts'
        ? this.#judged.truths(bound, operand, frame.rowCount, {
            judge: (some) => codesIn(some, bound.list),
            bytesAtOnce: Number.POSITIVE_INFINITY,
          })
        : isIn(operand, bound.list, frame.rowCount);
    const [found, absent] = bound.negated ? [falsy, truthy] : [truthy, falsy];
    for (let row = 0; row < values.length; row++) {
      if (values[row] === truthy) values[row] = found;
      // The value may be the one that the NULL in the list stands for.
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
    const values = this.#judged.truths(bound, texts, frame.rowCount, { judge, bytesAtOnce });
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

  /** Compares texts with one that is known, by their codes; answers null for all other comparisons. */
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
    const values = this.#judged.truths(of, left, rowCount, {
      judge: (some) => codesThat(bound.operator, some, value),
      bytesAtOnce: Number.POSITIVE_INFINITY,
    });
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
    const conditions = branches.map(({ when }) => this.truths(when, frame));
    // Which of the results is a row's: the first whose condition is true.
    const chosen = new Uint16Array(rowCount).fill(branches.length);
    const isOpen = new Uint8Array(rowCount).fill(1);
    for (const [branch, truths] of conditions.entries()) {
      for (let row = 0; row < rowCount; row++) {
        if (isOpen[row] === 0 || truths[row] !== truthy) continue;
        isOpen[row] = 0;
        chosen[row] = branch;
      }
    }
    return type === 'text' ? this.#chosen.texts(bound, results, chosen) : chooseNumbers(results, chosen);
  }

  #coalesce(bound: Extract<Bound, { kind: 'coalesce' }>, frame: Frame): Column {
    const results = bound.operands.map((operand) => this.evaluate(operand, frame));
    // Where all are NULL, the last one is chosen.
    const chosen = new Uint16Array(frame.rowCount).fill(results.length - 1);
    for (let row = 0; row < chosen.length; row++) {
      const first = results.findIndex((result) => !isNullAt(result, row));
      if (first >= 0) chosen[row] = first;
    }
    return bound.type === 'text'
      ? this.#chosen.texts(bound, results, chosen)
      : chooseNumbers(results, chosen);
  }

  /**
   * Evaluates a function of one text, by `make`. Where the text is a constant, it is made once, and the same column is answered each
   * time: who evaluates an interrupted expression again must find the same dictionary.
   */
  #perText(bound: OfOne, frame: Frame, make: (texts: Texts, rows: FrameRows) => Column): Column {
    const operand = this.evaluate(bound.operand, frame);
    if (operand.kind !== 'constant') return perText(operand, frame, make);
    let made = this.#madeOfConstants.get(bound);
    if (made?.value !== operand.value) {
      made = { value: operand.value, column: perText(operand, frame, make) };
      this.#madeOfConstants.set(bound, made);
    }
    return made.column;
  }
}

/** An expression that is made of one other. */
type OfOne = Extract<Bound, { readonly operand: Bound }>;

function othersFirst(turns: SqlTurns): Interruption {
  return new Interruption(() => turns.giveWay());
}

/** What two truths are together, at the first one times 4 plus the second: one that decides wins over one that is unknown. */
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

function negated(truth: number): number {
  return truth === unknown ? unknown : 1 - truth;
}

function truthOf(value: SqlValue): number {
  return value === null ? unknown : Number(value) === 0 ? falsy : truthy;
}
