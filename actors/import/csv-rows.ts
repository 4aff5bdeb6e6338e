/**
 * The rows of a CSV file (RFC 4180) in a window of its bytes: where the fields of one row lie. Rows end with LF, CRLF or CR;
 * fields with commas, quotes or line ends in them stand in quotes, and a quote in them is doubled. Stricter than most readers: a
 * quote inside of an unquoted field, or text behind a closing quote, is an error, because what it means is a guess.
 *
 * Hot: every byte of an import passes here.
 */
import { limits } from '../../protocol/limits.ts';

const quote = 0x22;
const comma = 0x2c;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** `quoted`: in quotes, which are left out. `doubled`: and with a quote in it, which is written twice. */
export const fieldForms = { plain: 0, quoted: 1, doubled: 2 } as const;

export class CsvSyntaxError extends Error {
  override name = 'CsvSyntaxError';
}

export class CsvRow {
  /** Fields of the row. */
  count = 0;
  readonly starts = new Int32Array(limits.importColumnsMax + 1);
  readonly ends = new Int32Array(limits.importColumnsMax + 1);
  readonly forms = new Uint8Array(limits.importColumnsMax + 1);

  /** Whether it is an empty line. */
  get isBlank(): boolean {
    return this.count === 1 && this.forms[0] === fieldForms.plain && this.starts[0] === this.ends[0];
  }

  /**
   * The row that begins at `from`; answers where the next one begins, or -1 where the window ends before this one does. `isLast`:
   * nothing comes after the window. Throws CsvSyntaxError.
   */
  read(
    bytes: Buffer,
    from: number,
    { end, isLast }: { readonly end: number; readonly isLast: boolean },
  ): number {
    this.count = 0;
    let at = from;
    for (;;) {
      at =
        bytes[at] === quote && at < end
          ? this.#quoted(bytes, at, { end, isLast })
          : this.#plain(bytes, at, end);
      if (at < 0) return -1;
      if (at >= end) return isLast ? end : -1;
      const byte = bytes[at] as number;
      if (byte === comma) {
        at++;
        if (this.count > limits.importColumnsMax)
          throw new CsvSyntaxError(`it has more than ${limits.importColumnsMax} fields`);
        continue;
      }
      if (byte === lineFeed) return at + 1;
      if (at + 1 === end) return isLast ? end : -1;
      return bytes[at + 1] === lineFeed ? at + 2 : at + 1;
    }
  }

  #plain(bytes: Buffer, start: number, end: number): number {
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte > comma) continue;
      if (byte === comma || byte === lineFeed || byte === carriageReturn) break;
      if (byte === quote)
        throw new CsvSyntaxError(
          `field ${this.count + 1} has a quote in it: such a field stands in quotes, and its own quotes are doubled`,
        );
    }
    this.#add(start, at, fieldForms.plain);
    return at;
  }

  /** Where it goes on behind the closing quote; -1 where the window ends before. */
  #quoted(
    bytes: Buffer,
    open: number,
    { end, isLast }: { readonly end: number; readonly isLast: boolean },
  ): number {
    let form: number = fieldForms.quoted;
    for (let at = open + 1; ; at++) {
      while (at < end && bytes[at] !== quote) at++;
      if (at >= end) {
        if (!isLast) return -1;
        throw new CsvSyntaxError(`the quote that begins field ${this.count + 1} is never closed`);
      }
      if (at + 1 === end && !isLast) return -1;
      const byte = at + 1 < end ? bytes[at + 1] : comma;
      if (byte === quote) {
        form = fieldForms.doubled;
        at++;
        continue;
      }
      if (byte !== comma && byte !== lineFeed && byte !== carriageReturn)
        throw new CsvSyntaxError(
          `field ${this.count + 1} goes on behind its closing quote: a quote in a field is doubled`,
        );
      this.#add(open + 1, at, form);
      return at + 1;
    }
  }

  #add(start: number, end: number, form: number): void {
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.forms[this.count] = form;
    this.count++;
  }
}
