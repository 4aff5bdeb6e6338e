import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Found,
  Judge,
  type MatchTask,
  runMatch,
  type WantedMatches,
} from '../../../actors/text/judge.ts';
import { queryPattern } from '../../../actors/text/query-pattern.ts';
import { partsOf } from '../../../actors/text/text-parts.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { seededRandom } from '../../support/segments.ts';

const costly = '(?:[a-q]?[b-p]){500}x';

function judgeOf(query: string, isRegex: boolean) {
  const tasks: MatchTask[] = [];
  const elsewhere = async (task: MatchTask) => {
    tasks.push(task);
    return runMatch(task);
  };
  // Every look finds the slice over.
  const turns = { due: () => true, giveWay: async () => {} };
  return { judge: new Judge(queryPattern(query, isRegex), { elsewhere, turns }), tasks };
}

test('a literal and a small regex are judged here, whatever the text; a costly one only where the text is short', async () => {
  const long = Buffer.from('abcdefgh '.repeat(20_000));
  for (const [query, isRegex] of [
    ['needle', false],
    ['every word of a long sentence that nobody wrote twice '.repeat(2), false],
    ['(x+x+)+y', true],
    ['[0-9a-f]+ needle$', true],
  ] as const) {
    const { judge, tasks } = judgeOf(query, isRegex);
    assert.ok(!(judge.find(long, 'first') instanceof Promise), query);
    assert.equal(tasks.length, 0);
  }
  const { judge, tasks } = judgeOf(costly, true);
  assert.equal(judge.find(Buffer.from('short'), 'first'), null);
  const judged = judge.find(Buffer.from('not so short '.repeat(200)), 'first');
  assert.ok(judged instanceof Promise);
  assert.equal(tasks.length, 1);
  await judged;
});

test('texts are judged some lines at a time where matches stay within them, and the first match is the same', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  const parts = [
    'ab+',
    '[^x\\n]*z',
    '\\bd\\w',
    'é.y',
    'c{2}\\B',
    '(?i)K',
    '(?:e|f)?g\\b',
    'a.*d',
    '\\p{Ll}z',
  ];
  const letters = ['a', 'b', 'c', 'cc', 'd', 'e', 'f', 'g', 'é', 'y', 'z', '\u212a', ' ', '\n', '\r\n'];
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  let found = 0;
  let elsewhere = 0;
  for (let round = 0; round < 300; round++) {
    const wantedParts = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(parts)).join('');
    // The second half is what makes it costly; it needs more letters than a line has.
    const query = `(?:${wantedParts}|${'[a-d]'.repeat(100)}(?:[a-q]?[b-p]){450}x)`;
    const text = Buffer.from(Array.from({ length: 3_000 }, () => pick(letters)).join(''));
    const { judge, tasks } = judgeOf(query, true);
    for (const wanted of ['none', 'first'] as const) {
      const near = runMatch({ task: 'match', query, isRegex: true, text, wanted });
      assert.deepEqual(await judge.find(text, wanted), near, `seed ${seed}: ${query}`);
      if (near !== null) found++;
    }
    // Seldom a line is longer than what is judged at once.
    elsewhere += tasks.length;
  }
  assert.ok(elsewhere < 300, `seed ${seed}: ${elsewhere}`);
  assert.ok(found > 100 && found < 580, `seed ${seed}: ${found}`);
});

test('a pattern whose matches may hold a line feed, or ask for the ends of the text, is judged whole', async () => {
  const text = Buffer.from('ab\n'.repeat(2_000));
  for (const part of ['b\\sa', 'b[^x]a', '(?s)b.a', '^a', 'b$', '(?m)^a', '\\Aa', '\\PL', '\\x0a']) {
    const { judge, tasks } = judgeOf(`${part}|${costly}`, true);
    await judge.find(text, 'first');
    assert.equal(tasks.length, 1, part);
  }
});

test('a literal that repeats itself is judged elsewhere where the text is long', async () => {
  const long = Buffer.from(`${'a'.repeat(20_000)} ${'=>'.repeat(10_000)}`);
  for (const query of [`${'a'.repeat(1_500)}b`, `${'='.repeat(1_200)}=> `, '\u212a'.repeat(1_000)]) {
    const { judge, tasks } = judgeOf(query, false);
    assert.equal(judge.find(Buffer.from('aaaa'), 'first'), null);
    assert.ok(judge.find(long, 'first') instanceof Promise, query);
    assert.equal(tasks.length, 1);
  }
});

test('all matches of a regex in a long text are looked for elsewhere, its first one here', () => {
  const long = Buffer.from('a'.repeat(200_000));
  const { judge } = judgeOf('(?s)a.*?c|a', true);
  assert.ok(!(judge.find(long, 'first') instanceof Promise));
  assert.ok(judge.find(long, 'all') instanceof Promise);
  assert.ok(!(judge.find(long.subarray(0, 10_000), 'all') instanceof Promise));
  assert.ok(!(judgeOf('aa', false).judge.find(long, 'all') instanceof Promise));
});

test('what is judged elsewhere is what is judged here', async () => {
  const text = Buffer.from(`${'abcd'.repeat(600)}x\n${'bcda'.repeat(600)}xé`);
  for (const query of [costly, '(?:ab?c?d?){200}', `(?:${'é?'.repeat(30)}[a-d]x|zz){20}`]) {
    for (const wanted of ['none', 'first', 'all'] as WantedMatches[]) {
      const { judge } = judgeOf(query, true);
      const far: Found = await judge.find(text, wanted);
      const near = runMatch({ task: 'match', query, isRegex: true, text, wanted });
      assert.deepEqual(far, near, `${query} ${wanted}`);
      assert.equal(
        far?.length ?? -1,
        wanted === 'none' ? Math.min(far?.length ?? -1, 0) : (near?.length ?? -1),
      );
    }
  }
});

test('a regex whose repetitions are too much when they are written out is refused', () => {
  for (const pattern of ['(?:[a-z]{0,50}é){500}', '(?:(?:abc){30}){400}']) {
    assert.throws(
      () => judgeOf(pattern, true),
      (error) => error instanceof ApiError && error.status === 422 && error.fields?.q !== undefined,
      pattern,
    );
  }
});

test('of a large text in lines only the parts that are named are judged', async () => {
  const line = `${'the tide '.repeat(20)}\n`;
  const text = Buffer.from(
    `${line.repeat(200)}first qzx\n${line.repeat(400)}second qzx\n${line.repeat(200)}`,
  );
  const { bounds, linesAreWhole } = partsOf(text, 0, text.length);
  assert.ok(linesAreWhole && bounds.length > 8);
  const partOf = (place: number) => bounds.findLastIndex((bound, at) => at % 2 === 0 && bound <= place) / 2;
  const [first, second] = [text.indexOf('first qzx'), text.indexOf('second qzx')];
  for (const query of ['[a-z]+ qzx', `qzx|${'[a-d]'.repeat(100)}(?:[a-q]?[b-p]){450}x`]) {
    const { judge } = judgeOf(query, true);
    const startIn = async (parts: readonly number[]) => (await judge.find(text, 'first', parts))?.[0];

    const whole = await judge.find(text, 'first');
    assert.deepEqual(await startIn([partOf(first), partOf(second)]), whole?.[0], query);
    const later = await startIn([0, partOf(second)]);
    assert.ok(later !== undefined && later.start >= second, query);
    assert.equal(later.lineNumber, 602);
    assert.equal(await startIn([0, bounds.length / 2 - 1]), undefined, query);
  }
  // It may match across lines: the whole is judged, whatever is named.
  assert.equal((await judgeOf('(?s)x.the', true).judge.find(text, 'first', [0]))?.length, 1);
});
