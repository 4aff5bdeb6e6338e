import type { Column, Texts } from '../frame/column.ts';
import { asTexts, asValues } from '../frame/column-forms.ts';
import type { FrameRows } from '../frame/frame.ts';
import { PackedNumbers } from '../frame/packed-numbers.ts';

/** Makes the column of texts' lengths, in bytes of UTF-8. Those of texts without NULL are packed: whoever adds them up needs no doubles. */
export function lengths({ codes, nulls, dictionary: { ends } }: Texts, { rowCount }: FrameRows): Column {
  const integers = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row++) {
    const code = codes[row] as number;
    integers[row] = (ends[code] as number) - (code === 0 ? 0 : (ends[code - 1] as number));
  }
  return nulls === null
    ? new PackedNumbers({ integers, base: 0 }, null)
    : { kind: 'numbers', values: new Float64Array(integers), nulls };
}

/** Makes a column of texts another; of a constant, which it does once, another constant. */
export function perText(
  column: Column,
  rows: FrameRows,
  of: (texts: Texts, rows: FrameRows) => Column,
): Column {
  if (column.kind === 'texts') return of(column, rows);
  if (column.kind !== 'constant') throw new TypeError('no text');
  return column.value === null ? column : constantOf(of(asTexts(column, 1), { rows: null, rowCount: 1 }));
}

/** Makes a column of one row a constant; its number has to be an integer. */
function constantOf(column: Column): Column {
  if (column.kind === 'texts')
    return {
      kind: 'constant',
      value: column.dictionary.bytes.toString('utf8', 0, column.dictionary.ends[0]),
    };
  return { kind: 'constant', value: BigInt((column as { values: Float64Array }).values[0] as number) };
}

/** Makes a column of numbers another, number by number; NULL stays NULL. */
export function perNumber(column: Column, of: (value: number) => number): Column {
  switch (column.kind) {
    case 'numbers':
      return { kind: 'numbers', values: column.values.map(of), nulls: column.nulls };
    case 'wide':
      return {
        kind: 'numbers',
        values: Float64Array.from(column.values, (value) => of(Number(value))),
        nulls: column.nulls,
      };
    case 'constant':
      return column.value === null ? column : { kind: 'constant', value: of(Number(column.value)) };
    case 'truths':
      return perNumber(asValues(column, column.values.length), of);
    case 'texts':
      throw new TypeError('no number');
  }
}
