import { ParquetColumn } from './column.ts';
import type { FileMetaData } from './metadata.ts';
import type { ParquetSource } from './pages.ts';
import { ParquetError } from './parquet-error.ts';
import type { ParquetValue } from './parquet-value.ts';
import type { LeafNode } from './schema.ts';
import { type DictionaryRoom, ParquetWindow } from './window.ts';

/** A column without lists and structs: its window, over the column of one row group after the other. */
export class FlatField {
  readonly window: ParquetWindow;
  readonly #leaf: LeafNode;
  #column: ParquetColumn | null = null;

  constructor(leaf: LeafNode, value: ParquetValue, rows: number, room: DictionaryRoom) {
    this.#leaf = leaf;
    this.window = new ParquetWindow(leaf.name, value, rows, room);
  }

  begin(source: ParquetSource, group: FileMetaData['row_groups'][number]): void {
    const chunk = group.columns[this.#leaf.column]?.meta_data;
    if (chunk === undefined) throw new ParquetError('a row group lacks a column');
    const { element, repetitionMax, definitionMax } = this.#leaf;
    const rowCount = Number(group.num_rows);
    const shape = { element, repetitionMax, definitionMax, hasLevels: false, rowCount };
    this.#column = new ParquetColumn(source, chunk, shape);
  }

  get rowsAtHand(): number {
    return this.#column?.rowsAtHand ?? 0;
  }

  async load(): Promise<void> {
    if (this.rowsAtHand === 0) await this.#column?.load();
  }

  open(count: number): void {
    if (this.#column !== null) this.window.open(this.#column, count);
  }

  release(): void {
    this.#column?.release();
    this.#column = null;
    this.window.release();
  }
}
