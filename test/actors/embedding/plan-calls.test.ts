import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cutText, planCalls } from '../../../actors/embedding/plan-calls.ts';
import { limits } from '../../../protocol/limits.ts';

test('texts are in calls once each, in order, within both limits', () => {
  const limit = { textsMax: 3, bytesMax: 9_000 };
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer({ min: 1, max: 9_000 }).map((n) => 'ä'.repeat(n)),
  );
  fc.assert(
    fc.property(fc.array(text, { maxLength: 40 }), (texts) => {
      const calls = planCalls(texts, limit);

      const expected = texts.map((_, i) => i).filter((i) => texts[i]?.trim() !== '');
      assert.deepEqual(
        calls.flatMap((call) => call.places),
        expected,
      );
      for (const call of calls) {
        assert.ok(call.texts.length > 0 && call.texts.length <= limit.textsMax);
        assert.equal(call.texts.length, call.places.length);
        assert.equal(Buffer.byteLength(call.texts.join('')), call.bytes);
        assert.ok(call.bytes <= limit.bytesMax);
      }
    }),
  );
});

test('calls are no smaller than they must be', () => {
  const calls = planCalls(['a', 'b', ' ', 'c', 'd', 'eee'], { textsMax: 2, bytesMax: 3 });

  assert.deepEqual(
    calls.map((call) => [call.texts, call.places]),
    [
      [
        ['a', 'b'],
        [0, 1],
      ],
      [
        ['c', 'd'],
        [3, 4],
      ],
      [['eee'], [5]],
    ],
  );
});

test('a long text is cut between two characters', () => {
  for (const character of ['a', 'ä', '漢', '🦊']) {
    const bytes = Buffer.byteLength(character);
    const cut = cutText(character.repeat(limits.embeddedTextBytesMax));

    assert.equal(cut.text, character.repeat(Math.floor(limits.embeddedTextBytesMax / bytes)));
    assert.equal(cut.bytes, Buffer.byteLength(cut.text));
  }
});

test('a long text that begins with white space is cut behind it', () => {
  const cut = cutText(`${'\n'.repeat(20_000)}words${' '.repeat(20_000)}`);

  assert.deepEqual(cut, { text: 'words', bytes: 5 });
});
