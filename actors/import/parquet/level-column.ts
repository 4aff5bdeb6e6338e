import type { ColumnMetaData } from './metadata.ts';
import type { PageValues } from './page-values.ts';
import { ColumnPages, type HeldPage, type ParquetSource } from './pages.ts';
import { ParquetError } from './parquet-error.ts';
import type { LeafNode } from './schema.ts';

/**
 * One leaf of a nested column in one row group, entry by entry. An entry is a value or what stands for a missing one; those of a row may
 * lie in several pages, so that a row is at hand when it is known where it ends. In memory are the pages of rows at hand.
 */
export class LevelColumn {
  readonly #pages: ColumnPages;
  readonly #definitionMax: number;
  readonly #rowCount: number;
  /** Pages with entries that were not passed, the current one first. */
  readonly #held: HeldPage[] = [];
  #isOver = false;
  /** Rows that begin in what was read so far, and rows that begin in what was passed. */
  #rowsBegun = 0;
  #rowsPassed = 0;
  /** The current entry of the first page, and which of that page's values is the next. */
  #at = 0;
  #value = 0;

  constructor(source: ParquetSource, metadata: ColumnMetaData, leaf: LeafNode, rowCount: number) {
    this.#pages = new ColumnPages(source, metadata, { ...leaf, hasLevels: true, rowCount });
    this.#definitionMax = leaf.definitionMax;
    this.#rowCount = rowCount;
  }

  /** Rows of which all entries were read and none was passed. */
  get rowsAtHand(): number {
    const begun = this.#isOver ? this.#rowsBegun : this.#rowsBegun - 1;
    return Math.max(0, begun - this.#rowsPassed);
  }

  /** Reads pages until a row is at hand. The row group must have rows left, and the rows at hand must have been passed. */
  async load(): Promise<void> {
    while (this.rowsAtHand === 0) {
      if (this.#isOver) throw new ParquetError('a column has fewer rows than its row group');
      const held = await this.#pages.next();
      if (held === null) this.#isOver = true;
      else this.#take(held);
    }
  }

  /** Says that the column holds nothing any more. Call it once, when its row group is over. */
  release(): void {
    this.#pages.release();
    this.#held.length = 0;
  }

  /** The repetition level of the current entry; 0 where the column is over. */
  get repetition(): number {
    const levels = this.#held[0]?.page.levels;
    return levels == null ? 0 : (levels.repetitions[this.#at] as number);
  }

  /** The definition level of the current entry. There is one. */
  get definition(): number {
    return this.#levels.definitions[this.#at] as number;
  }

  /** Where the current entry's value stands among `values`. It has one. */
  get place(): number {
    const { indexes } = this.#page;
    return indexes === null ? this.#value : (indexes[this.#value] as number);
  }

  get values(): PageValues {
    return this.#page.values;
  }

  /** Passes the current entry. */
  pass(): void {
    const { repetitions, definitions } = this.#levels;
    if (repetitions[this.#at] === 0) this.#rowsPassed++;
    if (definitions[this.#at] === this.#definitionMax) this.#value++;
    this.#at++;
    if (this.#at === repetitions.length) this.#nextPage();
  }

  get #page() {
    const held = this.#held[0];
    if (held === undefined) throw new ParquetError('the columns of a value end at different places');
    return held.page;
  }

  get #levels() {
    const { levels } = this.#page;
    if (levels === null) throw new ParquetError('a page lacks its levels');
    return levels;
  }

  #nextPage(): void {
    const held = this.#held.shift();
    if (held !== undefined) this.#pages.giveBack(held);
    this.#at = 0;
    this.#value = 0;
  }

  #take(held: HeldPage): void {
    const { levels, rows } = held.page;
    if (rows === 0 || levels === null) return this.#pages.giveBack(held);
    const { repetitions } = levels;
    if (this.#rowsBegun === 0 && repetitions[0] !== 0) throw new ParquetError('a column begins within a row');
    for (let at = 0; at < rows; at++) if (repetitions[at] === 0) this.#rowsBegun++;
    if (this.#rowsBegun > this.#rowCount) throw new ParquetError('a column has more rows than its row group');
    this.#held.push(held);
  }
}
