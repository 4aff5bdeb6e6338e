import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, valueAt } from '../../../../actors/sql/frame/column.ts';
import { allRows } from '../../../../actors/sql/frame/frame.ts';
import { TextExtreme } from '../../../../actors/sql/group/aggregates/text-extreme.ts';
import { TextInterner } from '../../../../actors/sql/intern/text-interner.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { Chance } from '../../../simulation/chance.ts';

const rowCount = 40;

test('the least and the greatest text of a group are found, whichever groups a text comes with, and whether they are noted or not', () => {
  const chance = new Chance(29, 0);
  for (let round = 0; round < 300; round++) {
    // A dictionary that lasts, and grows, and one for each frame.
    const interner = new TextInterner(new Room(10_000));
    const groupCount = chance.pick([1, 3, 12]);
    const words = chance.pick([2, 30, 400]);
    const noted = (['min', 'max'] as const).map((name) => new TextExtreme(name, new Room(10_000)));
    const plain = (['min', 'max'] as const).map((name) => new TextExtreme(name, null));
    const naive = Array.from({ length: groupCount }, (): string[] => []);
    for (let frame = 0; frame < 12; frame++) {
      const texts = Array.from({ length: rowCount }, () => `w${chance.integer(0, words)}`);
      const nulls = Uint8Array.from(texts, () => Number(chance.integer(0, 9) === 0));
      const column = chance.pick([
        columnOf(interner, texts, nulls),
        columnOf(new TextInterner(new Room(100)), texts, nulls),
      ]);
      const rows = chance.pick([allRows(rowCount), Int32Array.of(0, 5, 39)]);
      const groups = Int32Array.from(rows, () => chance.integer(0, groupCount - 1));
      for (const [at, row] of rows.entries())
        if (nulls[row] === 0) naive[groups[at] as number]?.push(texts[row] as string);
      for (const extreme of [...noted, ...plain]) extreme.add({ column, rows, rowCount, groups, groupCount });
    }
    for (const [min, max] of [noted, plain] as const) {
      const [least, greatest] = [min?.values(0, groupCount), max?.values(0, groupCount)];
      for (const [group, texts] of naive.entries()) {
        const sorted = texts.sort();
        assert.equal(valueAt(least as Column, group, 'text'), sorted[0] ?? null, `round ${round}`);
        assert.equal(valueAt(greatest as Column, group, 'text'), sorted.at(-1) ?? null, `round ${round}`);
      }
    }
  }
});

function columnOf(interner: TextInterner, texts: readonly string[], nulls: Uint8Array): Column {
  const codes = Int32Array.from(texts, (text) => interner.number(Buffer.from(text)));
  return { kind: 'texts', codes, dictionary: interner.dictionary, nulls };
}
