import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { countMatching, isPattern, quoted, re2Oracle } from '../../load-tests/re2-oracle.ts';
import { textCases } from '../../load-tests/text-cases.ts';
import { Chance } from '../simulation/chance.ts';
import { manyLanguages } from '../support/many-languages.ts';

const wanted = { literals: 240, regexes: 460 };

describe('cases drawn from texts', () => {
  const texts = [...manyLanguages(20).values()];
  const drawn = (seed: number) => textCases(texts, new Chance(seed, 0), wanted);

  test('the same seed gives the same cases, another one others', () => {
    const cases = drawn(1);

    assert.deepEqual(drawn(1), cases);
    assert.notDeepEqual(drawn(2), cases);
    assert.equal(cases.length, wanted.literals + wanted.regexes);
  });

  test('every case can be asked, and every regex is one', () => {
    for (const { query, isRegex } of drawn(3)) {
      assert.ok(query !== '' && query.isWellFormed(), JSON.stringify(query));
      assert.ok(!isRegex || isPattern(query), query);
    }
  });

  test('some of most kinds match, and some match nothing', () => {
    const cases = drawn(4).map((each) => ({ ...each, matches: countMatching(texts, each) }));
    const kinds = new Set(cases.map(({ kind }) => kind));
    const matching = new Set(cases.filter(({ matches }) => matches > 0).map(({ kind }) => kind));

    assert.ok(kinds.size > 30, `${kinds.size} kinds`);
    for (const kind of kinds) {
      assert.ok(matching.has(kind) || kind.endsWith('nothing'), `none of "${kind}" matches`);
    }
    assert.ok(cases.some(({ matches }) => matches === 0));
    assert.ok(cases.some(({ matches }) => matches === texts.length));
  });
});

describe('RE2 over everything', () => {
  const texts = new Map([
    ['a', Buffer.from('größe\nΣίσυφος 300 \u212A\n')],
    ['b', Buffer.from('nothing of it\0')],
  ]);
  const oracle = re2Oracle(texts);

  test('places are bytes, and lines are counted from 1', async () => {
    const asked = { query: 'σίσυφοσ', isRegex: false };

    assert.deepEqual([...(await oracle.matching(asked))], ['a']);
    assert.deepEqual(
      [...(await oracle.firstMatches(asked, ['a']))],
      [['a', { start: 8, end: 22, lineNumber: 2 }]],
    );
  });

  test('literals ignore case and are no patterns, regexes see case', () => {
    const count = (query: string, isRegex = false) => countMatching(texts.values(), { query, isRegex });

    assert.deepEqual([count('300 k'), count('3.0'), count('it\0'), count('\n')], [1, 0, 1, 1]);
    assert.deepEqual([count('300 k', true), count('(?i)300 k', true), count('3.0', true)], [0, 1, 1]);
  });

  test('a quoted text matches itself', () => {
    const text = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join('');

    assert.equal(countMatching([Buffer.from(text)], { query: quoted(text), isRegex: true }), 1);
  });
});
