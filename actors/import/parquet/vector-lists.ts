import { limits } from '../../../protocol/limits.ts';
import { wrongParameter } from '../import-error.ts';
import type { RowVectors } from '../row-vectors.ts';
import { halfAt } from './bytes-value.ts';
import { LevelColumn } from './level-column.ts';
import type { FileMetaData } from './metadata.ts';
import type { PageValues } from './page-values.ts';
import type { ParquetSource } from './pages.ts';
import { ParquetError } from './parquet-error.ts';
import type { LeafNode, ListNode, SchemaNode } from './schema.ts';

/** A column of lists of numbers, each of which is its row's vector: numbers go from the page to the vector, without JSON between. */
export class VectorLists {
  readonly #node: ListNode;
  readonly #leaf: LeafNode;
  readonly #numberAt: (values: PageValues, place: number) => number;
  readonly #numbers = new Float64Array(limits.vectorDimsMax);
  #column: LevelColumn | null = null;

  /** Makes the reader of a column of lists. Throws ApiError 422 where the column holds something else. */
  constructor(node: SchemaNode) {
    if (node.kind !== 'list' || node.item.kind !== 'leaf')
      throw wrongParameter('vector', `the column ${JSON.stringify(node.name)} holds no lists of numbers`);
    this.#node = node;
    this.#leaf = node.item;
    this.#numberAt = numberOf(node.item);
  }

  begin(source: ParquetSource, group: FileMetaData['row_groups'][number]): void {
    const chunk = group.columns[this.#leaf.column]?.meta_data;
    if (chunk === undefined) throw new ParquetError('a row group lacks a column');
    this.#column = new LevelColumn(source, chunk, this.#leaf, Number(group.num_rows));
  }

  get rowsAtHand(): number {
    return this.#column?.rowsAtHand ?? 0;
  }

  async load(): Promise<void> {
    if (this.rowsAtHand === 0) await this.#column?.load();
  }

  open(): void {}

  release(): void {
    this.#column?.release();
    this.#column = null;
  }

  /** Reads the next row's vector. Throws ApiError 422 where it is none. */
  read(row: number, vectors: RowVectors): void {
    const column = this.#column;
    if (column === null) throw new ParquetError('a column is read before its row group');
    const { presentFrom, itemFrom, repetition } = this.#node;
    const { definition } = column;
    if (definition < itemFrom) {
      column.pass();
      if (definition < presentFrom) return vectors.none();
      return vectors.numbers(row, 0, () => 0);
    }
    const numbers = this.#numbers;
    let count = 0;
    do {
      if (count < numbers.length)
        numbers[count] =
          column.definition < this.#leaf.definitionMax
            ? Number.NaN
            : this.#numberAt(column.values, column.place);
      count++;
      column.pass();
    } while (column.repetition === repetition);
    vectors.numbers(row, count, (at) => numbers[at] as number);
  }
}

function numberOf({ element, name }: LeafNode): (values: PageValues, place: number) => number {
  const { type, logical_type: logical, converted_type: converted } = element;
  const isPlain = logical === undefined || logical.type === 'INTEGER' || logical.type === undefined;
  const isInteger = (type === 'INT32' || type === 'INT64') && isPlain && converted !== 'DECIMAL';
  if (logical?.type === 'FLOAT16') return halfAt;
  if (type === 'FLOAT' || type === 'DOUBLE' || isInteger)
    return (values, place) => (values.kind === 'bytes' ? Number.NaN : Number(values.values[place]));
  throw wrongParameter(
    'vector',
    `the column ${JSON.stringify(name)} holds lists of something else than numbers`,
  );
}
