/**
 * Keeps decoded columns of segments while they are warm, so that whoever asks again need not decode them. Texts of all chunks of a segment
 * share one dictionary, and so do numbers that were asked for as keys: what a query knows of a code it knows of the whole segment.
 * A thread keeps them within a share of its memory; what was not used for the longest time goes first.
 */
import { assert } from '../../../src/base/assert.ts';
import type { Column } from '../../sql/frame/column.ts';
import { sliced } from '../../sql/frame/column-forms.ts';
import { type DecodedColumn, type PackedColumn, unpacked } from '../../sql/frame/decode-column.ts';
import { allRows } from '../../sql/frame/frame.ts';
import type { Interner } from '../../sql/intern/interner.ts';
import { NumberInterner } from '../../sql/intern/number-interner.ts';
import { TextInterner } from '../../sql/intern/text-interner.ts';
import type { SqlType } from '../../sql/plan/bound.ts';
import { Room } from '../../sql/room.ts';
import type { SegmentReader } from '../../storage/segment-reader.ts';
import type { MemoryBudget } from '../../thread/memory-budget.ts';

const memoryShare = 1 / 6;
/** Whole numbers under it are looked up as quickly as codes, so they get none. */
const smallMax = 65_536;

/** Rows for each distinct value below which codes are not kept: with fewer an expression is as quick for each row as for each value. */
const rowsPerValueMin = 4;

/** How many rows get their codes in one step: a millisecond or two, where all values are new. */
const rowsAtOnce = 2_048;

/** What a query does with a column: `key`, it asks for its distinct values; `operand`, it makes keys of it; `value`, neither. */
export type ColumnUse = 'key' | 'operand' | 'value';

/** The decoded columns that a thread keeps, within a share of its memory. */
export class KeptColumns {
  readonly #memory: MemoryBudget;
  readonly #ofReaders = new WeakMap<SegmentReader, Map<string, KeptColumn>>();
  /** What forgets each column that is kept, the least recently used one first. */
  readonly #held = new Map<KeptColumn, () => void>();
  #bytes = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** Answers a column of a segment as a query reads it; its numbers have codes where they are keys. */
  column(
    reader: SegmentReader,
    name: string,
    as: { readonly type: SqlType; readonly use: ColumnUse },
  ): KeptColumn {
    let columns = this.#ofReaders.get(reader);
    if (columns === undefined) {
      columns = new Map();
      this.#ofReaders.set(reader, columns);
    }
    const key = `${as.use} ${as.type} ${name}`;
    let column = columns.get(key);
    if (column === undefined) {
      column = new KeptColumn(as, reader.rowCount, (more) => this.#grown(more));
      columns.set(key, column);
    }
    const forget = this.#held.get(column) ?? (() => columns.delete(key));
    this.#held.delete(column);
    this.#held.set(column, forget);
    return column;
  }

  #grown(bytes: number): void {
    this.#add(bytes);
    const most = this.#memory.bytesMax * memoryShare;
    for (const [column, forget] of this.#held) {
      if (this.#bytes <= most) return;
      this.#held.delete(column);
      forget();
      this.#add(-column.release());
    }
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    assert(this.#bytes >= 0, () => `${this.#bytes} bytes of columns are kept`);
    this.#memory.add('columns', bytes);
  }
}

/** One column of a segment, of the chunks that were asked for so far. */
export class KeptColumn {
  #interner: Interner | null;
  /** Whether codes are given up where they do not pay: an operand's pay where it has few distinct values. */
  readonly #isOptional: boolean;
  #rowCount = 0;
  readonly #chunks: (DecodedColumn | undefined)[] = [];
  readonly #grown: (bytes: number) => void;
  #bytes = 0;
  #released = false;

  /** `rowsMax`: as many rows as its segment has. */
  constructor(
    { type, use }: { readonly type: SqlType; readonly use: ColumnUse },
    rowsMax: number,
    grown: (bytes: number) => void,
  ) {
    this.#isOptional = type !== 'text' && use === 'operand';
    if (type === 'text') this.#interner = dictionaryWithEmpty(rowsMax);
    else this.#interner = use === 'value' ? null : new NumberInterner(new Room(rowsMax));
    this.#grown = grown;
  }

  get(chunk: number): DecodedColumn | undefined {
    return this.#chunks[chunk];
  }

  /** Keeps a chunk's column, and answers it with the codes that the whole segment shares. Others have their turn meanwhile. */
  async keep(chunk: number, column: DecodedColumn, turn: () => Promise<void>): Promise<DecodedColumn> {
    const kept = await this.#coded(column, turn);
    this.#chunks[chunk] = kept;
    this.#count(bytesOf(kept));
    return kept;
  }

  /** Takes the column out of the account. Answers how many bytes it was counted with. */
  release(): number {
    this.#released = true;
    return this.#bytes;
  }

  #count(columnBytes: number): void {
    if (this.#released) return;
    const before = this.#bytes;
    this.#columnBytes += columnBytes;
    this.#bytes = this.#columnBytes + (this.#interner?.bytes ?? 0);
    this.#grown(this.#bytes - before);
  }

  #columnBytes = 0;

  async #coded(column: DecodedColumn, turn: () => Promise<void>): Promise<DecodedColumn> {
    const interner = this.#interner;
    if (interner === null || column.kind === 'constant' || column.kind === 'truths') return column;
    if (column.kind === 'packed') return isSmallPacked(column) ? column : this.#coded(wholly(column), turn);
    if (isSmall(column)) return column;
    const rowCount = column.kind === 'texts' ? column.codes.length : column.values.length;
    const codes = new Int32Array(rowCount);
    for (let from = 0; from < rowCount; from += rowsAtOnce) {
      const end = Math.min(from + rowsAtOnce, rowCount);
      const some = sliced(column, from, end);
      interner.intern(some, allRows(end - from), end - from, codes.subarray(from, end));
      await turn();
    }
    this.#rowCount += rowCount;
    if (this.#isOptional && interner.count > this.#rowCount / rowsPerValueMin) this.#interner = null;
    const coded = { codes, of: interner };
    if (column.kind === 'wide') return { ...column, coded };
    if (column.kind === 'numbers') {
      // Field by field: values of packed numbers are made when somebody asks for them.
      const { kind, values, nulls, packed } = column;
      return { kind, values, nulls, packed, coded };
    }
    return { ...column, codes, dictionary: (interner as TextInterner).dictionary };
  }
}

/** An interner of texts that has the empty string, which costs nothing: `CASE … ELSE ''` is codes then, as the column is. */
function dictionaryWithEmpty(rowsMax: number): TextInterner {
  const interner = new TextInterner(new Room(rowsMax + 1));
  interner.number(Buffer.alloc(0));
  return interner;
}

function isSmallPacked({ integers, base }: PackedColumn): boolean {
  return base >= 0 && base + 2 ** (integers.BYTES_PER_ELEMENT * 8) <= smallMax;
}

function wholly(column: PackedColumn): Column {
  const end = column.integers.length;
  return unpacked(column, { from: 0, end, scratch: null });
}

function isSmall(column: Exclude<Column, { kind: 'constant' | 'truths' }>): boolean {
  return (
    column.kind === 'numbers' &&
    column.values.every((value) => value >= 0 && value < smallMax && Number.isInteger(value))
  );
}

function bytesOf(column: DecodedColumn): number {
  switch (column.kind) {
    case 'packed':
    case 'constant':
      return 100;
    case 'truths':
      return column.values.byteLength;
    case 'texts':
      return column.codes.byteLength + (column.nulls?.byteLength ?? 0);
    default:
      return (
        column.values.byteLength + (column.nulls?.byteLength ?? 0) + (column.coded?.codes.byteLength ?? 0)
      );
  }
}
