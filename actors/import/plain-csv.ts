import { limits } from '../../protocol/limits.ts';
import type { KeyColumn } from '../columns/key-column.ts';
import { valueKinds } from '../columns/value-kinds.ts';
import { CsvDocuments, longFloat } from '../kernels/csv-documents.ts';
import type { ChosenFields } from './chosen-fields.ts';
import { escapedBytesMax } from './json-bytes.ts';
import type { RowWriter } from './row-writer.ts';
import type { DefinedColumn } from './table-definition.ts';

/** Bytes of a plain row, at most: a longer one may not fit into a meta. */
export const plainRowBytesMax = Math.floor(limits.documentMetaBytesMax / escapedBytesMax);

/** Rows of a file that lie in a window of it, to be read by whoever can. */
export interface RowsAtHand {
  /** Where in the window the next row begins, and where the window ends. */
  readonly position: number;
  readonly windowEnd: number;
  /** Passes over rows that were read: so many, and the next one begins at `position` of the window. */
  skip(rows: number, position: number): void;
}

/** Writes the plain rows of a CSV file, many at a time; the loop of import-csv.ts does all others, and is the twin. */
export class PlainCsv {
  readonly #documents: CsvDocuments;
  readonly #columns: readonly DefinedColumn[];

  /** Answers what writes the rows of a file with such fields, or null where it has more of them than there is room for. `columns`: those of metas. */
  static for(
    columns: readonly DefinedColumn[],
    { id, text, meta }: ChosenFields,
    fields: number,
  ): PlainCsv | null {
    const documents = CsvDocuments.for({
      fields,
      id,
      texts: text,
      columns: columns.map(({ name, kind }, at) => ({ name, kind, field: meta[at] as number })),
      idBytesMax: limits.documentIdBytesMax,
      metaBytesMax: limits.documentMetaBytesMax,
    });
    return documents === null ? null : new PlainCsv(documents, columns);
  }

  private constructor(documents: CsvDocuments, columns: readonly DefinedColumn[]) {
    this.#documents = documents;
    this.#columns = columns;
  }

  /** Where the window's bytes lie. */
  get source(): CsvDocuments['source'] {
    return this.#documents.source;
  }

  /** Writes the next rows as far as they are plain; answers how many. The writer has room for one. */
  write(rows: RowsAtHand, writer: RowWriter): number {
    const documents = this.#documents;
    const room = writer.room;
    const made = documents.make(
      { from: rows.position, end: rows.windowEnd },
      { ...room, number: writer.row },
    );
    if (made > 0) {
      let stringBytes = 0;
      for (let column = 0; column < this.#columns.length; column++) {
        const values = writer.valuesOf(column);
        if (values === null) continue;
        if (this.#columns[column]?.kind === 'text')
          stringBytes += this.#addTexts(values, column, writer.chunkRow, made);
        else this.#addNumbers(values, column, writer.chunkRow, made);
      }
      writer.addRows(documents.entries, { rows: made, values: documents.valueCount, stringBytes });
    }
    rows.skip(made, documents.position);
    return made;
  }

  /** Answers how many bytes of strings are new. */
  #addTexts(values: KeyColumn, column: number, firstRow: number, rows: number): number {
    const { source } = this.#documents;
    const kinds = this.#documents.kindsOf(column);
    const places = this.#documents.pairsOf(column);
    const { strings } = values;
    const before = strings.bytes;
    for (let row = 0; row < rows; row++) {
      if (kinds[row] === valueKinds.missing) continue;
      const string = strings.addBytes(source, places[row * 2] as number, places[row * 2 + 1] as number);
      values.addString(firstRow + row, string);
    }
    return strings.bytes - before;
  }

  #addNumbers(values: KeyColumn, column: number, firstRow: number, rows: number): void {
    const kinds = this.#documents.kindsOf(column);
    const numbers = this.#documents.numbersOf(column);
    const pairs = this.#documents.pairsOf(column);
    for (let row = 0; row < rows; row++) {
      const kind = kinds[row] as number;
      if (kind === valueKinds.missing) continue;
      if (kind <= valueKinds.time) values.add(firstRow + row, kind, numbers[row] as number);
      else {
        const [low, high] = [pairs[row * 2] as number, pairs[row * 2 + 1] as number];
        if (kind === longFloat) values.add(firstRow + row, valueKinds.float, this.#numberAt(low, high));
        else values.addHalves(firstRow + row, low, high);
      }
    }
  }

  #numberAt(start: number, end: number): number {
    return Number(this.source.bytes.toString('latin1', start, end));
  }
}
