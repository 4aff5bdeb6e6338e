import { readFileSync } from 'node:fs';

/** What assembly/row-ends.ts exports. */
interface Kernels {
  readonly memory: WebAssembly.Memory;
  readonly passedAddress: WebAssembly.Global;
  readonly passedBytesMax: WebAssembly.Global;
  readonly begin: () => void;
  readonly rowCount: () => number;
  readonly isWithin: () => number;
  readonly passCsv: (length: number, rowsMax: number) => number;
  readonly passLines: (length: number, rowsMax: number) => number;
}

/** How rows are written: CSV's end outside of quotes, those of JSON lines with a line feed. Empty lines are none. */
export type RowForm = 'csv' | 'lines';

/** The thread's only one, once it was asked for. */
let only: RowEnds | null = null;

/** Answers the thread's kernel, which nobody uses across a turn. */
export function threadRowEnds(): RowEnds {
  only ??= new RowEnds();
  return only;
}

/** Counts rows of a text file, some gigabytes a second, to find where one of them ends. */
export class RowEnds {
  readonly #kernels: Kernels;
  #form: RowForm = 'csv';
  /** Where the next bytes of the file go before `pass`: their memory. */
  readonly bytes: Buffer;

  constructor() {
    const code = new WebAssembly.Module(readFileSync(new URL('row-ends.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(code).exports as unknown as Kernels;
    const { memory, passedAddress, passedBytesMax } = this.#kernels;
    this.bytes = Buffer.from(memory.buffer, passedAddress.value as number, passedBytesMax.value as number);
  }

  /** Begins with the first byte of a row: none is counted. */
  begin(form: RowForm): void {
    this.#form = form;
    this.#kernels.begin();
  }

  /** Passes over the first `length` of `bytes`, until `rowsMax` rows have ended since `begin`; answers how many were passed. */
  pass(length: number, rowsMax: number): number {
    const { passCsv, passLines } = this.#kernels;
    return this.#form === 'csv' ? passCsv(length, rowsMax) : passLines(length, rowsMax);
  }

  /** Rows that have ended. */
  get rowCount(): number {
    return this.#kernels.rowCount();
  }

  /** Whether bytes of a row have been passed whose end has not. */
  get isWithin(): boolean {
    return this.#kernels.isWithin() !== 0;
  }
}
