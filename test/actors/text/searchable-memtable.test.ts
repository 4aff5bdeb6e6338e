import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowsBelow, searchableMemtable } from '../../../actors/text/searchable-memtable.ts';
import { entryOf } from '../../support/segments.ts';
import { logLines } from '../../support/text-corpora.ts';
import { folded, literalQuery, shortMatches } from '../../support/trigram-index.ts';

const texts = [...logLines(31, 12_000)];
/** In one line alone. */
const rare = 'qzxv-only-here-jkwy';
texts[77] = Buffer.from(`${texts[77]} ${rare}`);

function filled(count: number) {
  const memtable = searchableMemtable();
  texts.slice(0, count).forEach((text, row) => {
    const entry = entryOf({ id: `d${row}`, text: Buffer.from(text), meta: null, vector: null });
    memtable.add(entry, 0, row + 1, 1.7e15);
  });
  return memtable;
}

/** One walk over all rows, newest first, as a search makes it. */
function walk(memtable: ReturnType<typeof filled>, literal: string, rowCount: number): number[] {
  const target = new Uint32Array(512);
  const rows: number[] = [];
  for (let row = rowCount; row > 0; ) {
    const count = rowsBelow(memtable, shortMatches(literalQuery(literal)), { row, target });
    rows.push(...target.subarray(0, count));
    row = count < target.length ? 0 : (target[count - 1] as number);
  }
  return rows;
}

test('rows that no search has indexed yet are candidates, and every walk leaves fewer of them', () => {
  const rowCount = texts.length;
  const memtable = filled(rowCount);
  assert.equal(memtable.finder?.bytes, 0, 'a write indexes nothing');
  const holding = texts.flatMap((text, row) => (folded(text).includes(rare) ? [row] : [])).reverse();
  let before = rowCount + 1;
  for (let round = 0; round < 3; round++) {
    const rows = walk(memtable, rare, rowCount);
    const found = new Set(rows);
    assert.deepEqual(
      rows,
      rows.toSorted((a, b) => b - a),
    );
    assert.ok(holding.every((row) => found.has(row)));
    assert.ok(rows.length <= before);
    before = rows.length;
  }
  assert.ok(before < rowCount / 20, `${before} candidates in the end`);
});

test('a walk over the rows of a snapshot sees none that came later', () => {
  const memtable = filled(600);
  for (const rowCount of [0, 1, 599, 600]) {
    const rows = walk(memtable, 'no such text', rowCount);
    assert.ok(rows.every((row) => row < rowCount));
  }
});
