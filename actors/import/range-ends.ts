import { readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../protocol/limits.ts';
import { type RowEnds, type RowForm, threadRowEnds } from '../kernels/row-ends.ts';
import type { RangeEnd } from './file-ranges.ts';

/** A range ends with the row that has its last byte. Who reads ahead waits with what it has until the ranges before are taken. */
const rangeBytesMax = 32 * 1024 * 1024;

/** Finds where ranges of rows end in a text file. */
export class RangeEnds {
  readonly #file: FileHandle;
  readonly #size: number;
  readonly #rowsMax: number;
  readonly #form: RowForm;
  readonly #rows: RowEnds;

  /** Looks at a file whose ranges have at most `rowsMax` rows of such a form. */
  constructor(
    { file, size }: { readonly file: FileHandle; readonly size: number },
    { form, rowsMax }: { readonly form: RowForm; readonly rowsMax: number },
  ) {
    this.#file = file;
    this.#size = size;
    this.#rowsMax = rowsMax;
    this.#rows = threadRowEnds();
    this.#form = form;
  }

  /** Answers the end of the range that begins at a byte of the file; null where the file ends there. A row that is too long ends with the file. */
  find(start: number): RangeEnd | null {
    if (start >= this.#size) return null;
    const rows = this.#rows;
    rows.begin(this.#form);
    for (let at = start; at < this.#size; ) {
      const bytes = at - start;
      if (bytes > rangeBytesMax + limits.importRowBytesMax) {
        if (rows.isWithin) break;
        return { end: at, rowCount: rows.rowCount };
      }
      const read = this.#read(at);
      const rowsMax = bytes < rangeBytesMax ? this.#rowsMax : Math.min(this.#rowsMax, rows.rowCount + 1);
      at += rows.pass(read, rowsMax);
      if (rows.rowCount === rowsMax) return { end: at, rowCount: rowsMax };
    }
    return { end: this.#size, rowCount: rows.rowCount + (rows.isWithin ? 1 : 0) };
  }

  #read(at: number): number {
    const { bytes } = this.#rows;
    const wanted = Math.min(bytes.length, this.#size - at);
    const read = readSync(this.#file.fd, bytes, 0, wanted, at);
    if (read === 0) throw new Error('the received file has become shorter');
    return read;
  }
}
