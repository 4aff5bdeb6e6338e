import { limits } from '../../../protocol/limits.ts';
import { bytesOf, type Dictionary, type Texts } from '../frame/column.ts';
import type { FrameRows } from '../frame/frame.ts';
import { ByCodes } from '../intern/by-codes.ts';
import { TextInterner } from '../intern/text-interner.ts';
import { Interruption, type SqlTurns } from '../interruption.ts';
import { type TextMaker, textMakerName } from '../plan/bound-parts.ts';
import type { Room } from '../room.ts';
import { SqlError } from '../sql-error.ts';
import type { NewReplacer, Replacer } from './replacer.ts';

/** How long texts may be replaced, with one more at the end, until it is asked again whether the turn is over: asking takes as long as most texts. */
const unaskedNanosecondsMax = 100_000;
/** What each call of a replacer takes, whatever its text is. */
const callNanoseconds = 2_000;
/** What it takes to keep a byte of a result, which is written, hashed and copied. */
const nanosecondsPerByteMade = 4;

/** What the expressions of a statement make of texts, such as REGEXP_REPLACE: patterns are compiled once, and results are kept. */
export class ReplacedTexts {
  readonly #replaced = new Map<TextMaker, Replaced>();
  readonly #newReplacer: NewReplacer;
  readonly #room: Room;
  readonly #turns: SqlTurns;

  /** `room`: for as many texts as can come. */
  constructor(newReplacer: NewReplacer, room: Room, turns: SqlTurns) {
    this.#newReplacer = newReplacer;
    this.#room = room;
    this.#turns = turns;
  }

  get bytes(): number {
    let sum = 0;
    for (const { results, byCodes } of this.#replaced.values()) sum += results.bytes + byCodes.bytes;
    return sum;
  }

  /**
   * Makes the column of replaced texts. A string is replaced once for as long as its dictionary lasts, when a row has it. Throws an
   * Interruption where a text takes longer than a turn, and `SqlError` where the results take too much memory.
   */
  replace(bound: TextMaker, texts: Texts, { rows, rowCount }: FrameRows): Texts {
    const replaced = this.#replacedOf(bound);
    const { dictionary, codes, nulls } = texts;
    const newCodes = new Int32Array(rowCount);
    let byCode = replaced.byCodes.of(dictionary, dictionary.count);
    const count = rows?.length ?? rowCount;
    const made = new MadeTexts(replaced.bound);
    let unasked = 0;
    let isDue = this.#turns.due();
    for (let i = 0; i < count; i++) {
      const row = rows === null ? i : (rows[i] as number);
      if (nulls !== null && nulls[row] === 1) continue;
      const code = codes[row] as number;
      if (byCode[code] === 0) {
        const text = bytesOf(dictionary, code);
        if (unasked >= unaskedNanosecondsMax) {
          isDue = this.#turns.due();
          unasked = 0;
        }
        const result = isDue ? null : replaced.replacer.quickly(text);
        unasked += replaced.replacer.nanosecondsFor(text.length) + callNanoseconds;
        unasked += (result?.length ?? 0) * nanosecondsPerByteMade;
        if (result === null || replaced.results.isLongToGrow(result.length))
          throw new Interruption(() => this.#replaceSlowly(replaced, texts, { rows, rowCount, from: i }));
        made.add(result);
        byCode = noteReplaced(replaced, { dictionary, code, result });
      }
      newCodes[row] = (byCode[code] as number) - 1;
    }
    // Rows that do not matter have code 0, so there must be one string.
    if (replaced.results.count === 0) replaced.results.number(Buffer.alloc(0));
    return { kind: 'texts', codes: newCodes, nulls, dictionary: replaced.results.dictionary };
  }

  /** Replaces in the strings of the rows from `from` on; others have their turns in between. */
  async #replaceSlowly(
    replaced: Replaced,
    { dictionary, codes, nulls }: Texts,
    { rows, rowCount, from }: FrameRows & { readonly from: number },
  ): Promise<void> {
    const turns = this.#turns;
    const made = new MadeTexts(replaced.bound);
    const count = rows?.length ?? rowCount;
    for (let i = from; i < count; i++) {
      const row = rows === null ? i : (rows[i] as number);
      const code = codes[row] as number;
      if (nulls?.[row] === 1 || replaced.byCodes.of(dictionary, dictionary.count)[code] !== 0) continue;
      if (turns.due()) await turns.giveWay();
      if (turns.timedOut) return;
      // Copied: the memory that it lies in may be used for something else while others have their turn.
      const text = Buffer.from(bytesOf(dictionary, code));
      const result = replaced.replacer.quickly(text) ?? (await replaced.replacer.slowly(text));
      if (result === 'late') return;
      if (result === 'too-large') throw tooMuchMade(replaced.bound);
      made.add(result);
      if (replaced.results.isLongToGrow(result.length)) {
        await replaced.results.growInTurns(result.length, turns);
        if (turns.timedOut) return;
      }
      noteReplaced(replaced, { dictionary, code, result });
    }
  }

  #replacedOf(bound: TextMaker): Replaced {
    const known = this.#replaced.get(bound);
    if (known !== undefined) return known;
    const replacer = this.#newReplacer(bound);
    const replaced = {
      replacer,
      bound,
      results: new TextInterner(this.#room),
      byCodes: new ByCodes(this.#room),
    };
    this.#replaced.set(bound, replaced);
    return replaced;
  }
}

/** Counts the bytes that an expression makes of the rows of a frame, and refuses too many of them. */
class MadeTexts {
  readonly #bound: TextMaker;
  #bytes = 0;

  constructor(bound: TextMaker) {
    this.#bound = bound;
  }

  add({ length }: Buffer): void {
    this.#bytes += length;
    if (length > limits.sqlReplacedBytesMax || this.#bytes > limits.sqlReplacedFrameBytesMax)
      throw tooMuchMade(this.#bound);
  }
}

function tooMuchMade(bound: TextMaker): SqlError {
  const name = textMakerName(bound);
  return new SqlError(bound.at, `${name} makes more text than fits: give it fewer or shorter texts`);
}

/** Notes the result of a string. Answers the results' numbers by code, in an array that may be another than before. */
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

/** What one expression has made. */
interface Replaced {
  readonly bound: TextMaker;
  readonly replacer: Replacer;
  /** The distinct results. */
  readonly results: TextInterner;
  /** The number of a string's result, plus one, by the string's code. */
  readonly byCodes: ByCodes;
}
