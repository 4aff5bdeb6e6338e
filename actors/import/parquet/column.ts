import type { DataPage } from './datapage.ts';
import type { ColumnMetaData } from './metadata.ts';
import type { PageValues } from './page-values.ts';
import { ColumnPages, type HeldPage, type LevelShape, type ParquetSource } from './pages.ts';
import { ParquetError } from './parquet-error.ts';

const noPage: DataPage = {
  rows: 0,
  present: null,
  levels: null,
  indexes: null,
  values: { kind: 'numbers', values: new Uint8Array(0) },
};

/**
 * One flat column of one row group, read a page at a time: in memory are a page and the dictionary, however large the row group is.
 */
export class ParquetColumn {
  readonly #pages: ColumnPages;
  #rowsLeft: number;
  #held: HeldPage | null = null;
  #page = noPage;
  /** The next row of the page, and which of the page's values is the next. */
  #row = 0;
  #value = 0;

  constructor(source: ParquetSource, metadata: ColumnMetaData, shape: LevelShape) {
    this.#pages = new ColumnPages(source, metadata, shape);
    this.#rowsLeft = shape.rowCount;
  }

  /** Rows of the page at hand that were not taken yet. */
  get rowsAtHand(): number {
    return this.#page.rows - this.#row;
  }

  /** The values among which `take` answers places. */
  get values(): PageValues {
    return this.#page.values;
  }

  /** The dictionary that later pages may refer to; null where the column has none so far. */
  get dictionary(): PageValues | null {
    return this.#pages.dictionary;
  }

  /** Whether `values` are the dictionary's, which other pages share. */
  get isShared(): boolean {
    return this.#page.indexes !== null;
  }

  /** Takes the next `count` rows, which must be at hand: writes where each one's value stands among `values`, -1 for null. Hot. */
  take(places: Int32Array, count: number): void {
    const { present, indexes } = this.#page;
    const row = this.#row;
    let value = this.#value;
    for (let at = 0; at < count; at++) {
      if (present !== null && present[row + at] === 0) places[at] = -1;
      else {
        places[at] = indexes === null ? value : (indexes[value] as number);
        value++;
      }
    }
    this.#row = row + count;
    this.#value = value;
  }

  /** Says that the column holds nothing any more. Call it once, when its row group is over. */
  release(): void {
    this.#pages.release();
  }

  /** Reads pages until one has rows. The row group must have rows left. */
  async load(): Promise<void> {
    do {
      if (this.#held !== null) this.#pages.giveBack(this.#held);
      this.#held = null;
      const next = await this.#pages.next();
      if (next === null) throw new ParquetError('a column has fewer rows than its row group');
      this.#held = next;
      this.#page = next.page;
      this.#rowsLeft -= next.page.rows;
      if (this.#rowsLeft < 0) throw new ParquetError('a column has more rows than its row group');
      this.#row = 0;
      this.#value = 0;
    } while (this.rowsAtHand === 0);
  }
}
