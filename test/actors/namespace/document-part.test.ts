import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentPartBytes } from '../../../actors/namespace/document-part.ts';
import { documentBytes } from '../../../actors/namespace/read-document.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { entryOf, seededRandom } from '../../support/segments.ts';

const figures = { temperature: 'warm', storeGets: 0, storeBytes: 0, cpuMs: 0.5, timedOut: false } as const;

interface Wanted {
  readonly lines?: string;
  readonly limit?: number;
  readonly bytes?: number;
  readonly vector?: Float32Array;
}

function placeOf(text: string | null, vector: Float32Array | null = null) {
  const buffer = entryOf({
    id: 'a "b"',
    text: text === null ? null : Buffer.from(text),
    meta: Buffer.from('{"n":9007199254740993}'),
    vector,
  });
  return { buffer, offset: 0, writtenAt: 1.7e15 };
}

function part(text: string | null, { lines, limit, bytes, vector }: Wanted) {
  const bytesMax = bytes ?? Number.POSITIVE_INFINITY;
  const linesMax = limit ?? Number.POSITIVE_INFINITY;
  const answer = documentPartBytes(placeOf(text, vector ?? null), figures, { lines, linesMax, bytesMax });
  return { bytes: answer.length, json: answer.toString(), ...JSON.parse(answer.toString()) };
}

const shown = ({ text, lines, total_lines, truncated }: ReturnType<typeof part>) => [
  text,
  lines,
  total_lines,
  truncated,
];

test('lines are answered with their line feeds, and say which they are of how many', () => {
  const text = 'one\ntwo\r\nthree\nfour\n';

  assert.deepEqual(shown(part(text, { lines: '2-3' })), ['two\r\nthree\n', '2-3', 4, undefined]);
  assert.deepEqual(shown(part(text, { lines: '4' })), ['four\n', '4-4', 4, undefined]);
  assert.deepEqual(shown(part(text, { lines: '3-' })), ['three\nfour\n', '3-4', 4, undefined]);
  assert.deepEqual(shown(part(text, { lines: '3-99' })), ['three\nfour\n', '3-4', 4, undefined]);
  assert.deepEqual(shown(part(text, { lines: '1-' })), [text, '1-4', 4, undefined]);
  assert.deepEqual(shown(part('no feed', { lines: '1' })), ['no feed', '1-1', 1, undefined]);
  assert.deepEqual(shown(part('', { lines: '1' })), ['', '1-1', 1, undefined]);
  assert.deepEqual(shown(part(null, { lines: '1-' })), ['', '1-1', 1, undefined]);
  assert.match(part(text, { lines: '2' }).json, /"meta":\{"n":9007199254740993\}/);
});

test('a first line that the text does not have is refused with the lines that it has', () => {
  const refusal = (text: string) => {
    try {
      part(text, { lines: '5-9' });
    } catch (error) {
      assert.ok(error instanceof ApiError);
      return [error.status, error.fields];
    }
    return null;
  };

  assert.deepEqual(refusal('a\nb\nc\n'), [422, { lines: 'the text has 3 lines: it can begin at 1 to 3' }]);
});

test('a text that does not fit is cut behind a line, and pages of lines make up the text', () => {
  const random = seededRandom(7);
  const line = () => 'ab"\\\t\u0001é€😀'.repeat(Math.floor(random() * 6)).slice(0, Math.floor(random() * 60));
  const text = Array.from({ length: 400 }, () => line().toWellFormed()).join('\n');

  for (const bytes of [1_024, 1_500, 5_000]) {
    let whole = '';
    let calls = 0;
    for (let from = 1; ; calls++) {
      const page = part(text, { lines: `${from}-`, bytes });
      assert.ok(page.bytes <= bytes, `${page.bytes} of ${bytes}`);
      assert.equal(page.total_lines, 400);
      whole += page.text;
      const [first, last] = page.lines.split('-').map(Number);
      assert.equal(first, from);
      from = last + 1;
      if (page.truncated !== true) break;
    }
    assert.equal(whole, text);
    assert.ok(calls > 1);
  }
});

test('a limit of lines cuts them as a budget does', () => {
  const text = 'a\nb\nc\nd';

  assert.deepEqual(shown(part(text, { limit: 2 })), ['a\nb\n', '1-2', 4, true]);
  assert.deepEqual(shown(part(text, { lines: '2-4', limit: 2 })), ['b\nc\n', '2-3', 4, true]);
  assert.deepEqual(shown(part(text, { lines: '2-3', limit: 2 })), ['b\nc\n', '2-3', 4, undefined]);
  assert.deepEqual(shown(part(text, { limit: 4 })), [text, undefined, undefined, undefined]);
});

test('a line that alone is too long is cut at a character', () => {
  const cut = part(`${'€'.repeat(5_000)}\nnext`, { bytes: 1_024 });

  assert.match(cut.text, /^€+$/);
  assert.ok(cut.bytes <= 1_024);
  assert.deepEqual([cut.lines, cut.total_lines, cut.truncated], ['1-1', 2, true]);
});

test('a document that fits whole is the same bytes as without a budget, and else its vector goes first', () => {
  const vector = Float32Array.from({ length: 500 }, (_, i) => i / 7);
  const text = 'a\n'.repeat(300);
  const whole = documentBytes(placeOf(text, vector), figures).toString();

  assert.equal(part(text, { bytes: 20_000, vector }).json, whole);
  const withoutVector = part(text, { bytes: 3_000, vector });
  assert.deepEqual(
    [withoutVector.text, withoutVector.vector, withoutVector.lines, withoutVector.truncated],
    [text, undefined, undefined, true],
  );
  assert.equal(part('', { bytes: 20_000 }).json, documentBytes(placeOf(''), figures).toString());
});
