import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChosenTexts } from '../../../../actors/sql/expression/choose.ts';
import { type Column, dictionaryOf, type Texts, valueAt } from '../../../../actors/sql/frame/column.ts';
import { TextInterner } from '../../../../actors/sql/intern/text-interner.ts';
import type { Bound } from '../../../../actors/sql/plan/bound.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { Chance } from '../../../simulation/chance.ts';

const rowCount = 300;
const bound = {} as Bound;
const words = ['', 'ebb', 'flood', 'neap', 'spring', 'tide'];

/** A column of some of the words, by chance, every seventh row NULL. */
function textsOf(chance: Chance, dictionary: Texts['dictionary']): Texts {
  const row = (at: number) => (at % 7 === 3 ? 0 : chance.integer(0, dictionary.count - 1));
  return {
    kind: 'texts',
    codes: Int32Array.from({ length: rowCount }, (_, at) => row(at)),
    dictionary,
    nulls: Uint8Array.from({ length: rowCount }, (_, at) => Number(at % 7 === 3)),
  };
}

function internedWords(): TextInterner {
  const interner = new TextInterner(new Room(100));
  for (const word of words) interner.number(Buffer.from(word));
  return interner;
}

const constant = (value: string | null): Column => ({ kind: 'constant', value });

/** What the rows of a column say. */
const said = (column: Column) => Array.from({ length: rowCount }, (_, row) => valueAt(column, row, 'text'));

describe('chosen texts', () => {
  const chance = new Chance(25, 11);
  const { dictionary: shared } = internedWords();
  const { dictionary: other } = internedWords();
  const cases: readonly {
    readonly of: string;
    readonly results: readonly Column[];
    readonly isShared: boolean;
  }[] = [
    { of: 'a column or nothing', results: [textsOf(chance, shared), constant(null)], isShared: true },
    {
      of: 'a column without NULL or the empty string',
      results: [{ ...textsOf(chance, shared), nulls: null }, constant('')],
      isShared: true,
    },
    {
      of: 'a column or a string that it knows',
      results: [constant('neap'), textsOf(chance, shared)],
      isShared: true,
    },
    {
      of: 'columns of one dictionary',
      results: [textsOf(chance, shared), textsOf(chance, shared)],
      isShared: true,
    },
    { of: 'a column or a new string', results: [textsOf(chance, shared), constant('moon')], isShared: false },
    {
      of: 'columns of two dictionaries',
      results: [textsOf(chance, shared), textsOf(chance, other)],
      isShared: false,
    },
    {
      of: 'a column whose strings may stand twice',
      results: [textsOf(chance, dictionaryOf([...words, ...words])), constant('ebb')],
      isShared: false,
    },
    { of: 'constants alone', results: [constant('ebb'), constant(null), constant('moon')], isShared: false },
  ];
  for (const { of, results, isShared } of cases)
    it(`are each row's own, of ${of}`, () => {
      const texts = new ChosenTexts(new Room(rowCount * 2));
      for (let frame = 0; frame < 3; frame++) {
        const chosen = Uint16Array.from({ length: rowCount }, () => chance.integer(0, results.length - 1));

        const column = texts.texts(bound, results, chosen) as Texts;

        const naive = Array.from(chosen, (branch, row) => valueAt(results[branch] as Column, row, 'text'));
        assert.deepEqual(said(column), naive);
        assert.equal(column.dictionary === shared, isShared);
        assert.equal(column.nulls === null, !naive.includes(null));
      }
    });

  it('are the same once a dictionary has got the constant that it lacked', () => {
    const texts = new ChosenTexts(new Room(rowCount * 2));
    const interner = internedWords();
    const results = [textsOf(chance, interner.dictionary), constant('moon')];
    const chosen = Uint16Array.from({ length: rowCount }, (_, row) => row % 2);
    const before = texts.texts(bound, results, chosen) as Texts;
    interner.number(Buffer.from('moon'));

    const after = texts.texts(bound, results, chosen) as Texts;

    assert.deepEqual(said(after), said(before));
    assert.notEqual(before.dictionary, interner.dictionary);
    assert.equal(after.dictionary, interner.dictionary);
  });
});
