import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Found,
  Judge,
  type MatchTask,
  runMatch,
  type WantedMatches,
} from '../../../actors/text/judge.ts';
import { ApiError } from '../../../protocol/errors.ts';

const costly = '(?:[a-q]?[b-p]){500}x';

function judgeOf(query: string, isRegex: boolean) {
  const tasks: MatchTask[] = [];
  const judge = new Judge(query, isRegex, async (task) => {
    tasks.push(task);
    return runMatch(task);
  });
  return { judge, tasks };
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
