import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unboundedRoom } from '../../../actors/search/answer-room.ts';
import { Page } from '../../../actors/search/page.ts';
import { oneTurn } from '../../../actors/sql/interruption.ts';
import { type Found, Judge, type WantedMatches } from '../../../actors/text/judge.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { limits } from '../../../protocol/limits.ts';
import { parseSearchBody } from '../../../protocol/search.ts';
import { judging } from '../../support/judging.ts';
import { entryOf, seededRandom } from '../../support/segments.ts';

function found(query: string, isRegex: boolean, text: string, wanted: WantedMatches): Found {
  const judged = new Judge(new QueryPatterns().of(query, isRegex), judging()).find(Buffer.from(text), wanted);
  assert.ok(!(judged instanceof Promise));
  return judged;
}

function documentOf(sequence: number, text: string) {
  const buffer = entryOf({ id: `d${sequence}`, text: Buffer.from(text), meta: null, vector: null });
  return { buffer, offset: 0, sequence, writtenAt: 1.7e15, row: 0, parts: null, passes: false };
}

function pageOf(body: object, texts: readonly string[]): { page: Page; hits: Record<string, unknown>[] } {
  const request = parseSearchBody(body);
  const page = new Page(request, unboundedRoom);
  texts.every((text, i) => {
    const places = request.q === '' ? [] : found(request.q, request.regex, text, page.wanted);
    return places === null || page.take(documentOf(100 - i, text), places, oneTurn) === true;
  });
  return { page, hits: page.hits.map((hit) => JSON.parse(String(hit))) };
}

test('a hit has the whole text and every match where they are asked for, and else neither', () => {
  const text = 'a tide\nno\nthe Tide, the tide';
  assert.deepEqual(Object.keys(pageOf({ q: 'tide' }, [text]).hits[0] ?? {}).slice(-2), [
    'meta',
    'written_at',
  ]);

  const [hit] = pageOf({ q: 'tide', include: ['matches', 'text'] }, [text]).hits;

  assert.equal(hit?.text, text);
  assert.deepEqual(hit?.matches, [
    { start: 2, end: 6, line_number: 1 },
    { start: 14, end: 18, line_number: 3 },
    { start: 24, end: 28, line_number: 3 },
  ]);
  assert.deepEqual(pageOf({ include: ['matches'] }, [text]).hits[0]?.matches, [], 'nothing was searched for');
});

test('a hit has the lines around its first match where they are asked for', () => {
  const text = 'a\nthe tide\nb\nc';
  const hit = pageOf({ q: 'tide', context: 2 }, [text]).hits[0];

  assert.deepEqual([hit?.before, hit?.line, hit?.after], [['a'], 'the tide', ['b', 'c']]);
  const listed = pageOf({ context: 1 }, [text]).hits[0];
  assert.deepEqual([listed?.before, listed?.line, listed?.after], [[], 'a', ['the tide']]);
  assert.ok(!('before' in (pageOf({ q: 'tide' }, [text]).hits[0] ?? {})));
});

test('a page ends before the hit that would be too much, and says so', () => {
  const texts = Array.from({ length: 50 }, (_, i) => `tide ${i} ${'x'.repeat(100)}`);

  for (const max_bytes of [2_000, 3_000, 5_000]) {
    const { page, hits } = pageOf({ q: 'tide', limit: 50, max_bytes }, texts);
    assert.ok(hits.length > 0 && hits.length < 50);
    assert.ok(Buffer.byteLength(page.hits.join()) <= max_bytes);
    assert.deepEqual([page.isFull, page.isTruncated, page.lastSequence], [true, true, 101 - hits.length]);
  }
  const { page } = pageOf({ q: 'tide', limit: 10, max_bytes: 50_000 }, texts);
  assert.deepEqual([page.isFull, page.isTruncated], [true, false], 'the limit came first');
});

test('a first hit that alone is too large comes without what was included, and alone, so that pages go on', () => {
  const { page, hits } = pageOf({ q: 'x', max_bytes: 2_000, include: ['text', 'matches'] }, [
    'x'.repeat(10_000),
    'x',
  ]);

  assert.deepEqual(
    hits.map((hit) => 'text' in hit),
    [false],
  );
  assert.deepEqual([page.isFull, page.isTruncated, page.lastSequence], [true, true, 100]);
});

test('all matches are those of a global regex, with the lines in which they begin', () => {
  const random = seededRandom(31);
  const patterns = ['ab', 'a*', 'b|', '(?m)^', '(?m)$', 'é?', '[^\\n]+', 'x'];
  for (let round = 0; round < 500; round++) {
    const text = Array.from({ length: 12 }, () => 'ab\né'[Math.floor(random() * 4)]).join('');
    const pattern = patterns[round % patterns.length] ?? '';
    const wanted = [...text.matchAll(new RegExp(pattern.replace('(?m)', ''), 'gum'))].map((match) => {
      const before = text.slice(0, match.index);
      const start = Buffer.byteLength(before);
      return { start, end: start + Buffer.byteLength(match[0]), lineNumber: before.split('\n').length };
    });
    assert.deepEqual(
      found(pattern, true, text, 'all') ?? [],
      wanted,
      `${pattern} on ${JSON.stringify(text)}`,
    );
  }
  assert.equal(found('a', false, 'a'.repeat(1_000), 'all')?.length, limits.matchesMax);
});
