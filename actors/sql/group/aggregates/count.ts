import type { Column, Nulls } from '../../frame/column.ts';
import { asValues } from '../../frame/column-forms.ts';
import type { Room } from '../../room.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import { GroupNumbers } from './group-numbers.ts';

/** COUNT(x): how many rows of each group have a value; COUNT(*), without a column: how many there are. */
export class Count implements Aggregate {
  readonly #counts: GroupNumbers;

  /** `room`: for as many groups as can come. */
  constructor(room: Room) {
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#counts.bytes;
  }

  add({ column, rows, rowCount, groups, groupCount }: GroupedRows): void {
    this.#counts.makeRoom(groupCount);
    const counts = this.#counts.values;
    const nulls = column === null ? null : nullsOf(column, rowCount);
    if (nulls === null && groupCount === 1) {
      counts[0] = (counts[0] as number) + rows.length;
      return;
    }
    if (nulls === null) for (let i = 0; i < rows.length; i++) (counts[groups[i] as number] as number)++;
    else
      for (let i = 0; i < rows.length; i++)
        if (nulls[rows[i] as number] === 0) (counts[groups[i] as number] as number)++;
  }

  values(from: number, end: number): Column {
    return { kind: 'numbers', values: this.#counts.part(from, end), nulls: null };
  }
}

function nullsOf(column: Column, rowCount: number): Nulls {
  if (column.kind === 'texts' || column.kind === 'numbers' || column.kind === 'wide') return column.nulls;
  if (column.kind === 'constant' && column.value !== null) return null;
  return asValues(column, rowCount).nulls;
}
