import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { readVocabulary } from '../../../actors/embedding/model-weights.ts';
import { UnigramTokenizer, type Vocabulary } from '../../../actors/embedding/unigram-tokenizer.ts';
import { goldenUseLite } from '../../support/golden-use-lite.ts';

let vocabulary: Vocabulary;
let tokenizer: UnigramTokenizer;
before(async () => {
  vocabulary = await readVocabulary();
  tokenizer = new UnigramTokenizer(vocabulary);
});

const encode = (text: string, idsMax = 8_192) => [...tokenizer.encode(text, idsMax)];

test('every text has the ids that the published tokenizer gave it', () => {
  const { tokens } = goldenUseLite();
  assert.ok(tokens.length > 40);
  for (const { text, ids } of tokens) assert.deepEqual(encode(text), ids, JSON.stringify(text));
});

test('the trie finds what trying every part of the text finds', () => {
  const twin = naiveTokenizer(vocabulary);
  const pieces = vocabulary.map(([piece]) => piece.replaceAll('▁', ' '));
  const part = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...pieces) },
    fc.constantFrom(
      ' ',
      '\n',
      ':',
      '://',
      '”5',
      'é',
      'e\u0301',
      '½',
      'ﬁ',
      '中文',
      '👍🏽',
      '\ud800',
      '\uff9e',
      '\u0308',
    ),
    fc.string({ unit: 'grapheme', maxLength: 4 }),
  );

  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const text = parts.join('');
      assert.deepEqual(encode(text), twin(text));
    }),
    { numRuns: 3_000 },
  );
});

test('only so many ids are made as are wanted, and they are the first of all', () => {
  const text = 'The tide rises and falls twice a day along this coast. '.repeat(200);

  assert.deepEqual(encode(text, 100), encode(text, 8_192).slice(0, 100));
  assert.deepEqual(encode(text, 0), []);
});

test('the largest texts take no longer than their wanted beginning', () => {
  const hostile = {
    spaces: ' '.repeat(2_000_000),
    'one word': 'a'.repeat(2_000_000),
    'longest pieces': '-'.repeat(2_000_000),
    'unknown characters': '潮汐表'.repeat(600_000),
    'pairs of halves': '👍'.repeat(1_000_000),
    'marks out of order': `a${'\u0315\u0316'.repeat(1_000_000)}`,
    'marks that become such': `a${'\uff9e\u0334'.repeat(1_000_000)}`,
    'one character that becomes many': '\ufdfa'.repeat(600_000),
  };
  for (const [name, text] of Object.entries(hostile)) {
    const before = process.cpuUsage();
    const { length } = encode(text);
    const { user } = process.cpuUsage(before);

    assert.ok(length <= 8_192, name);
    assert.ok(user < 2_000_000, `${name}: ${user / 1000} ms`);
  }
});

/** By the published algorithm, with every part of the text looked up, each place keeping its best piece. */
function naiveTokenizer(of: Vocabulary): (text: string) => number[] {
  const byPiece = new Map<string, { readonly id: number; readonly score: number }>();
  for (const [id, [piece, score]] of of.entries()) if (id >= 6) byPiece.set(piece, { id, score: score ?? 0 });
  return (text) => {
    const normal = text.normalize('NFKC');
    const symbols = normal === '' ? [] : [...`▁${normal.replaceAll(' ', '▁')}`];
    const best = [{ sum: 0, id: -1, from: 0 }];
    for (let end = 1; end <= symbols.length; end++) {
      let kept = { sum: 0, id: -1, from: 0 };
      for (let from = Math.max(0, end - 16); from < end; from++) {
        const piece = byPiece.get(symbols.slice(from, end).join(''));
        const isUnknown = from === end - 1 && !isBegun(byPiece, symbols, from);
        if (piece === undefined && !isUnknown) continue;
        const sum = (best[from]?.sum ?? 0) + (piece?.score ?? 0);
        if (kept.id === -1 || kept.sum === 0 || sum >= kept.sum) kept = { sum, id: piece?.id ?? 0, from };
      }
      best.push(kept);
    }
    const ids: number[] = [];
    for (let at = symbols.length; at > 0; at = best[at]?.from ?? 0) ids.unshift(best[at]?.id ?? -1);
    return ids.filter((id, at) => id !== 0 || ids[at - 1] !== 0);
  };
}

function isBegun(known: ReadonlyMap<string, unknown>, symbols: readonly string[], from: number): boolean {
  return Array.from({ length: 16 }, (_, i) => symbols.slice(from, from + i + 1).join('')).some((part) =>
    known.has(part),
  );
}
