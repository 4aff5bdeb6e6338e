import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { roundsOf } from '../../load-tests/delay-proxy.ts';
import { frequentWord, logLines, rareWord, traceOf } from '../../load-tests/log-line-texts.ts';
import { piecesOf, plainText } from '../../load-tests/plain-text.ts';
import { findPatterns } from '../../load-tests/search-patterns.ts';
import { Chance } from '../simulation/chance.ts';

describe('the text of a file', () => {
  const textOf = (path: string, content: string | Buffer) => {
    const found = plainText(path, Buffer.from(content as Buffer));
    return found === null ? null : [found.path, found.text.toString()];
  };

  test('is what people read of it', () => {
    const page =
      '<!DOCTYPE html><head><title>no</title></head><body><p>one <b>and</b> <i>two</i></p><script>no()</script>' +
      '<!-- no --><p>&lt;3 &amp; &#x20AC;&#8364; &unknown; a < b</p>';
    assert.deepEqual(textOf('a.html', page), ['a.html', 'one and two\n\n<3 & €€ &unknown; a < b\n']);
    assert.deepEqual(textOf('b.txt.gz', gzipSync('text')), ['b.txt', 'text']);
    assert.deepEqual(textOf('c.txt', 'a <b>'), ['c.txt', 'a <b>']);
  });

  test('is none where it is empty or not UTF-8', () => {
    assert.equal(textOf('a.txt', ''), null);
    assert.equal(textOf('a.txt', Buffer.from([0x63, 0xe9])), null);
    assert.equal(textOf('a.mo', 'no catalogue at all, by its first bytes'), null);
  });

  test('of a catalogue of translations is its messages', () => {
    assert.deepEqual(
      textOf(
        'a.mo',
        catalogue([
          ['one', 'один'],
          ['two', 'два\0двa'],
        ]),
      ),
      ['a.mo', 'one\nодин\n\ntwo\nдва\nдвa\n'],
    );
  });

  test('is cut between characters', () => {
    const text = Buffer.from('aé日𝔘'.repeat(20));
    for (const bytesMax of [4, 5, 7, 9]) {
      const pieces = piecesOf(text, bytesMax);
      assert.deepEqual(Buffer.concat(pieces), text);
      for (const piece of pieces) {
        assert.ok(piece.length <= bytesMax);
        assert.ok(!piece.toString().includes('\uFFFD'));
      }
    }
  });
});

function catalogue(messages: readonly (readonly [string, string])[]): Buffer {
  const head = Buffer.alloc(28 + messages.length * 16);
  head.writeUInt32LE(0x950412de, 0);
  head.writeUInt32LE(messages.length, 8);
  head.writeUInt32LE(28, 12);
  head.writeUInt32LE(28 + messages.length * 8, 16);
  const texts: Buffer[] = [];
  let at = head.length;
  for (const side of [0, 1] as const) {
    messages.forEach((message, i) => {
      const text = Buffer.from(`${message[side]}\0`);
      head.writeUInt32LE(text.length - 1, 28 + side * messages.length * 8 + i * 8);
      head.writeUInt32LE(at, 28 + side * messages.length * 8 + i * 8 + 4);
      texts.push(text);
      at += text.length;
    });
  }
  return Buffer.concat([head, ...texts]);
}

describe('lines of a log', () => {
  const lines = [...logLines(5_000, new Chance(1, 0))];

  test('are the same ones for the same seed', () => {
    assert.deepEqual([...logLines(100, new Chance(1, 0))], lines.slice(0, 100));
  });

  test('have the size, the rare word and the frequent word that are promised', () => {
    const share = (word: string) => lines.filter(({ text }) => text.includes(word)).length / lines.length;
    const bytes = lines.reduce((sum, { text }) => sum + text.length, 0) / lines.length;

    assert.ok(bytes > 270 && bytes < 330, `${bytes} bytes`);
    assert.ok(Math.abs(share(rareWord) - 0.01) < 0.005, `${share(rareWord)}`);
    assert.ok(share(frequentWord) > 0.7, `${share(frequentWord)}`);
  });

  test('have an id and a trace of their own', () => {
    assert.equal(new Set(lines.map(({ id }) => id)).size, lines.length);
    assert.equal(new Set(lines.map(traceOf)).size, lines.length);
  });
});

test('patterns are found with the number of documents that they match', () => {
  const texts = Array.from({ length: 100 }, (_, i) =>
    Buffer.from(`common words identifier_number${i % 60}_x\n`),
  );

  const found = findPatterns(texts, new Chance(5, 0), 3);

  assert.equal(found.selectiveLiterals.length, 3);
  for (const { query, documents } of found.selectiveLiterals) {
    assert.equal(documents, texts.filter((text) => text.includes(query)).length, query);
    assert.ok(documents >= 1 && documents <= 30);
  }
  assert.ok(found.frequentWords.every(({ documents }) => documents === 100));
  assert.equal(found.scanning.documents, 0);
});

test('rounds are the longest chain of requests of which each waited for the one before', () => {
  const at = (beganAt: number, endedAt: number) => ({ beganAt, endedAt });

  assert.equal(roundsOf([]), 0);
  assert.equal(roundsOf([at(0, 60), at(1, 61), at(2, 120)]), 1);
  assert.equal(roundsOf([at(0, 60), at(61, 120), at(62, 200), at(121, 180), at(201, 260)]), 4);
});
