import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Found, Judge, type WantedMatches } from '../../../actors/text/judge.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';
import { afterMatch, type MatchPlace, matchPlace } from '../../../actors/text/snippet.ts';
import { partsOf } from '../../../actors/text/text-parts.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { judging } from '../../support/judging.ts';
import { seededRandom } from '../../support/segments.ts';

/** Its matches have 1,001 bytes at most, so it is judged by lines or by windows. */
const costly = '(?:[a-q]?[b-p]){500}x';
/** Nothing bounds its matches, and they may cross lines. */
const unbounded = '(?s)(?:[a-q]?[b-p]){500}.*x';

function judgeOf(query: string, isRegex: boolean, options: Parameters<typeof judging>[0] = { isDue: true }) {
  const surroundings = judging(options);
  return { judge: new Judge(new QueryPatterns().of(query, isRegex), surroundings), ...surroundings };
}

/** One call of RE2 for the whole text. */
function judgedWhole(query: string, isRegex: boolean, text: Buffer, wanted: WantedMatches): Found {
  const matcher = compileMatcher(query, isRegex);
  if (wanted === 'none') return matcher.test(text) ? [] : null;
  const places: MatchPlace[] = [];
  for (let from = 0; from <= text.length && places.length < (wanted === 'first' ? 1 : limits.matchesMax); ) {
    const match = matcher.find(text, from);
    if (match === null) break;
    places.push(matchPlace(text, match));
    from = afterMatch(text, match);
  }
  return places.length === 0 ? null : places;
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
  assert.equal(await judged, null);
  assert.ok(tasks.length > 0);
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
  for (let round = 0; round < 200; round++) {
    const wantedParts = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(parts)).join('');
    // The second half is what makes it costly; it needs more letters than a line has.
    const query = `(?:${wantedParts}|${'[a-d]'.repeat(100)}(?:[a-q]?[b-p]){450}x)`;
    const text = Buffer.from(Array.from({ length: 2_000 }, () => pick(letters)).join(''));
    const { judge } = judgeOf(query, true);
    for (const wanted of ['none', 'first'] as const) {
      const whole = judgedWhole(query, true, text, wanted);
      assert.deepEqual(await judge.find(text, wanted), whole, `seed ${seed}: ${query}`);
      if (whole !== null) found++;
    }
  }
  assert.ok(found > 60 && found < 390, `seed ${seed}: ${found}`);
});

test('a pattern without an end whose matches may hold a line feed is judged whole', async () => {
  const text = Buffer.from('ab\n'.repeat(2_000));
  for (const part of ['b\\sa', 'b[^x]a', '(?s)b.a', '\\PL', '\\x0a']) {
    const { judge, tasks } = judgeOf(`${part}[b-p]*|${costly}`, true);
    await judge.find(text, 'first');
    assert.deepEqual(
      tasks.map((task) => task.text.length),
      [text.length],
      part,
    );
  }
});

test('what is judged in pieces is what is judged whole, and no piece is longer than RE2 may take for it', async () => {
  const text = Buffer.from(`${'abcd'.repeat(600)}x\n${'bcda'.repeat(600)}xé\n\n${'潮b'.repeat(2_000)}x`);
  for (const query of [costly, '(?:ab?c?d?){200}', `(?:${'é?'.repeat(30)}[a-d]x|zz){20}`, `^|${costly}|$`]) {
    const { nanoseconds } = new QueryPatterns().of(query, true);
    for (const wanted of ['none', 'first', 'all'] as WantedMatches[]) {
      const { judge, tasks, charged } = judgeOf(query, true);
      const judged = await judge.find(text, wanted);
      assert.deepEqual(judged, judgedWhole(query, true, text, wanted), `${query} ${wanted}`);
      for (const task of tasks)
        assert.ok(
          task.text.length * nanoseconds <= limits.matchWholeMsMax * 1e6,
          `${query}: ${task.text.length}`,
        );
      assert.equal(charged(), tasks.length, 'a millisecond for each');
    }
  }
});

test('a literal that repeats itself is judged elsewhere where the text is long', async () => {
  const long = Buffer.from(`${'a'.repeat(20_000)} ${'=>'.repeat(10_000)}`);
  for (const query of [`${'a'.repeat(1_500)}b`, `${'='.repeat(1_200)}=> `, '\u212a'.repeat(1_000)]) {
    const { judge, tasks } = judgeOf(query, false);
    assert.equal(judge.find(Buffer.from('aaaa'), 'first'), null);
    assert.equal(await judge.find(long, 'first'), judgedWhole(query, false, long, 'first'));
    assert.ok(tasks.length > 0 && tasks.every(({ text }) => text.length < long.length), query.slice(0, 9));
  }
});

test('between all matches of a text others have their turn', async () => {
  const long = Buffer.from('a'.repeat(200_000));
  const { judge, turnsGiven } = judgeOf('(?s)a.*?c|a', true);
  assert.ok(!(judge.find(long, 'first') instanceof Promise));
  const all = await judge.find(long, 'all');
  assert.deepEqual(all, judgedWhole('(?s)a.*?c|a', true, long, 'all'));
  assert.ok(turnsGiven() >= limits.matchesMax - 1);
});

test('a regex that may take longer than a second for a text is refused with the reason, and its work is counted', async () => {
  const text = Buffer.from('ab'.repeat(1_000_000));
  for (const [query, says] of [
    [unbounded, /500/],
    ['(?s)a[ab]{900}.*c', /"\{900\}" repeats up to 900 times/],
    ['(?s)\\pL{3}.*\\pN!', /"\\pL"/],
  ] as const) {
    const { judge, tasks } = judgeOf(query, true);
    await assert.rejects(
      async () => judge.find(text, 'none'),
      (error) => {
        assert.ok(error instanceof ApiError && error.code === 'invalid');
        assert.match(
          error.message,
          /^q: the regex may take longer than 1 s for 2\.0 MB of a text at once: .*; repeat less/,
        );
        assert.match(error.message, says);
        return true;
      },
    );
    assert.equal(tasks.length, 0);
    // Of a text that is short the same is judged.
    assert.equal(await judge.find(Buffer.from('a small text'), 'none'), null);
  }
});

test('a query that nobody waits for any more has no further pieces judged', async () => {
  const text = Buffer.from('ab'.repeat(100_000));
  const { judge, tasks } = judgeOf('a[ab]{900}c', true, { isDue: false, cancelAfter: 3 });
  assert.equal(await judge.find(text, 'none'), 'late');
  assert.equal(tasks.length, 3);
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
    const startIn = async (parts: readonly number[]) => {
      const found = await judge.find(text, 'first', parts);
      assert.ok(found !== 'late');
      return found?.[0];
    };

    const whole = judgedWhole(query, true, text, 'first');
    assert.deepEqual(await startIn([partOf(first), partOf(second)]), whole?.[0], query);
    const later = await startIn([0, partOf(second)]);
    assert.ok(later !== undefined && later.start >= second, query);
    assert.equal(later.lineNumber, 602);
    assert.equal(await startIn([0, bounds.length / 2 - 1]), undefined, query);
  }
  // It may match across lines: the whole is judged, whatever is named.
  assert.equal((await judgeOf('(?s)x.the', true).judge.find(text, 'first', [0]))?.length, 1);
});
