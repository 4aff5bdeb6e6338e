import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ParquetColumn } from '../../../../actors/import/parquet/column.ts';
import type { SchemaElement } from '../../../../actors/import/parquet/metadata.ts';
import type { PageValues } from '../../../../actors/import/parquet/page-values.ts';
import { parquetValue } from '../../../../actors/import/parquet/value.ts';
import { DictionaryRoom, ParquetWindow } from '../../../../actors/import/parquet/window.ts';
import { RenderedValues, renderedKinds } from '../../../../actors/import/rendered-values.ts';

const roomBytes = 128 * 1024 * 1024;

/** What a window asks of a column: pages of one dictionary, or of none. */
function columnOf(
  dictionary: PageValues | null,
  values: PageValues,
  places: readonly number[],
): ParquetColumn {
  return {
    dictionary,
    values,
    isShared: dictionary === values,
    take: (into: Int32Array, count: number) => into.set(places.slice(0, count)),
  } as unknown as ParquetColumn;
}

function windowOf(element: Partial<SchemaElement>, room: DictionaryRoom): ParquetWindow {
  return new ParquetWindow('n', parquetValue(element as SchemaElement), 8, room);
}

const numbers = (values: readonly number[]): PageValues => ({
  kind: 'numbers',
  values: Int32Array.from(values),
});

/** Whether nobody has any of it. */
function isAllFree(room: DictionaryRoom): boolean {
  if (!room.take(roomBytes)) return false;
  room.giveBack(roomBytes);
  return true;
}

test('only those values of a dictionary are rendered that a row has', () => {
  const window = windowOf({ type: 'INT32' }, new DictionaryRoom());
  const dictionary = numbers([10, 20, 30, 40]);
  window.open(columnOf(dictionary, dictionary, [3, -1, 1, 3]), 4);
  const { kinds, json } = window.rendered as RenderedValues;
  const { missing, integer } = renderedKinds;
  assert.deepEqual([...kinds], [missing, integer, missing, integer]);
  assert.equal(json.bytes.toString('latin1', 0, json.at), '4020');
  assert.deepEqual([window.bytesOf(0), window.bytesOf(1)], [2, 4]);
  window.open(columnOf(dictionary, dictionary, [0, 3]), 2);
  assert.equal(json.bytes.toString('latin1', 0, json.at), '402010');
});

test('nothing of a dictionary is held when its row group is over, or the column has another one', () => {
  const room = new DictionaryRoom();
  const window = windowOf({ type: 'INT32' }, room);
  const [first, second] = [numbers([1, 2]), numbers([3])];
  window.open(columnOf(first, first, [0, 1]), 2);
  assert.equal(isAllFree(room), false);
  window.open(columnOf(first, numbers([7]), [0]), 1);
  assert.equal(isAllFree(room), false, 'its pages may come again');
  window.open(columnOf(second, numbers([7]), [0]), 1);
  assert.equal(isAllFree(room), true);
  window.open(columnOf(second, second, [0]), 1);
  assert.equal(isAllFree(room), false);
  window.release();
  assert.deepEqual([isAllFree(room), window.rendered, window.texts], [true, null, null]);
});

test('a decimal is of whole numbers, whatever a file says', () => {
  const value = parquetValue({ type: 'DOUBLE', converted_type: 'DECIMAL', scale: 2 } as SchemaElement);
  const into = new RenderedValues(1, { bytes: 1_024, isLasting: false });
  for (const stored of [1.5, 0.1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(
      () => value.render({ kind: 'numbers', values: Float64Array.of(stored) }, 0, into, 0),
      RangeError,
    );
  into.clear();
  value.render({ kind: 'numbers', values: Float64Array.of(-150) }, 0, into, 0);
  assert.equal(into.json.bytes.toString('latin1', 0, into.json.at), '-1.50');
  value.render({ kind: 'numbers', values: Float64Array.of(1.5e300) }, 0, into, 0);
  assert.equal(into.kinds[0], renderedKinds.broken);
});
