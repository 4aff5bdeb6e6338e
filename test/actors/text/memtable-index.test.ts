import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemtableIndex } from '../../../actors/text/memtable-index.ts';
import type { MatchLength, TrigramQuery } from '../../../actors/text/trigram-query.ts';
import { randomText, seededRandom } from '../../support/segments.ts';
import { logLines } from '../../support/text-corpora.ts';
import { folded, literalQuery, shortMatches } from '../../support/trigram-index.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 30);

function find(index: MemtableIndex, query: TrigramQuery, below: number, atOnce = 64): number[] {
  const target = new Uint32Array(atOnce);
  const rows: number[] = [];
  for (let row = below; ; ) {
    const count = index.findBelow(shortMatches(query), row, target);
    rows.push(...target.subarray(0, count));
    if (count < atOnce) return rows;
    row = target[count - 1] ?? 0;
  }
}

function indexOf(texts: readonly Uint8Array[]): MemtableIndex {
  const index = new MemtableIndex();
  for (const text of texts) index.add(text);
  return index;
}

describe('the index of a memtable', () => {
  it('has every row that holds a literal, newest first, and few others', (test) => {
    test.diagnostic(`seed ${seed}`);
    const random = seededRandom(seed);
    const texts = [...logLines(seed, 4000)];
    const index = indexOf(texts);
    let inVain = 0;

    for (let n = 0; n < 200; n++) {
      const text = folded(texts[Math.floor(random() * texts.length)] ?? Buffer.alloc(0));
      const at = Math.floor(random() * (text.length - 20));
      const literal = text.subarray(at, at + 1 + Math.floor(random() * 19));
      const rows = find(index, literalQuery(literal.toString()), texts.length);
      assert.deepEqual(
        rows,
        rows.toSorted((a, b) => b - a),
      );
      const found = new Set(rows);
      const holding = texts.flatMap((other, row) => (folded(other).includes(literal) ? [row] : []));
      for (const row of holding) assert.ok(found.has(row), `row ${row} for ${literal}`);
    }
    for (let n = 0; n < 200; n++) inVain += find(index, literalQuery(`zqx${n}jkv`), texts.length).length;

    assert.ok(inVain / 200 < 0.02 * texts.length, `${inVain / 200} rows in vain`);
  });

  it('shows a snapshot its own rows, while others are added', () => {
    const index = new MemtableIndex();
    const texts = [...logLines(seed, 300)];
    texts.forEach((text, row) => {
      index.add(text);

      const rows = find(index, literalQuery('status='), row + 1);

      assert.deepEqual(
        rows,
        Array.from({ length: row + 1 }, (_, at) => row - at),
      );
    });
    assert.deepEqual(
      find(index, literalQuery('status='), 100, 7),
      Array.from({ length: 100 }, (_, at) => 99 - at),
    );
  });

  it('takes a large text some parts at a time, and has its row with the last of them', () => {
    const large = Buffer.from(`first ${randomText(seededRandom(seed), 60_000).slice(0, 300_000)} last`);
    const texts = [Buffer.from('before'), large, Buffer.from('after')];
    const whole = indexOf(texts);
    const index = indexOf(texts.slice(0, 1));
    let looks = 0;
    while (index.rowCount === 1) {
      assert.deepEqual(find(index, literalQuery('first'), 3), [], 'the row is not there yet');
      const bytes = index.addSome(large, 100_000);
      looks++;
      assert.ok(bytes < 150_000, `${bytes} bytes were added at a time`);
    }
    index.add(texts[2] as Buffer);

    assert.ok(looks > 2, `it took ${looks} times`);
    for (const literal of ['before', 'first', ' last', 'after', 'zqxjkv'])
      assert.deepEqual(
        find(index, literalQuery(literal), 3),
        find(whole, literalQuery(literal), 3),
        `rows with ${literal}`,
      );
    assert.deepEqual(
      index.partsOf(shortMatches(literalQuery('first')), 1),
      whole.partsOf(shortMatches(literalQuery('first')), 1),
    );
  });

  it('takes documents of all sizes, in Unicode, and none at all', () => {
    const random = seededRandom(seed);
    const sizes = [0, 1, 2, 3, 5000, 70_000, 300_000, 10, 2_000_000, 4096, 4097];
    const texts = sizes.map((size, at) =>
      Buffer.from(`${randomText(random, size / 5 + 1).slice(0, size)}${size > 100 ? `größe${at}潮汐` : ''}`),
    );
    const index = indexOf(texts);

    assert.equal(index.rowCount, texts.length);
    for (const [at, size] of sizes.entries()) {
      if (size > 100)
        assert.ok(find(index, literalQuery(`GRÖSSE${at}潮汐`.replace('SS', 'ß')), sizes.length).includes(at));
    }
    assert.deepEqual(find(index, { kind: 'all' }, sizes.length).length, sizes.length);
    assert.deepEqual(find(index, { kind: 'none' }, sizes.length), []);
    assert.equal(find(index, literalQuery('q'), sizes.length).length, sizes.length);
    assert.deepEqual(find(new MemtableIndex(), { kind: 'all' }, 5), []);
  });

  it('answers conjunctions and disjunctions', () => {
    const texts = ['the tide', 'the harbour', 'a fence'].map((text) => Buffer.from(text.padEnd(4000)));
    const index = indexOf(texts);
    const [tide, harbour, the] = ['tide', 'harbour', 'the '].map(literalQuery) as [
      TrigramQuery,
      TrigramQuery,
      TrigramQuery,
    ];

    assert.deepEqual(find(index, { kind: 'and', parts: [the, tide] }, 3), [0]);
    assert.deepEqual(find(index, { kind: 'or', parts: [harbour, tide] }, 3), [1, 0]);
    assert.deepEqual(find(index, { kind: 'and', parts: [harbour, tide] }, 3), []);
  });

  it('asks the parts of a large text, and its whole where matches may be long', () => {
    const random = seededRandom(seed);
    const large = (first: string, last: string) =>
      Buffer.from(`${first} ${randomText(random, 40_000).slice(0, 150_000)} ${last}`);
    const texts = [
      large('qzx', 'jkv'),
      Buffer.from('qzx jkv'),
      large('qzxjkv', ''),
      large('', ''),
      large('', 'qzx'),
    ];
    const inLines = texts.map((text) => Buffer.from(text.toString().replaceAll(' ', '\n')));
    const query: TrigramQuery = { kind: 'and', parts: ['qzx', 'jkv'].map(literalQuery) };
    const target = new Uint32Array(1);
    const rowsOf = (index: MemtableIndex, matchLength: MatchLength) => {
      const rows: number[] = [];
      for (let row = texts.length; index.findBelow({ query, matchLength }, row, target) === 1; ) {
        row = target[0] ?? 0;
        rows.push(row);
      }
      return rows;
    };

    for (const index of [indexOf(texts), indexOf(inLines)]) {
      assert.deepEqual(rowsOf(index, 'short'), [2, 1]);
      assert.deepEqual(rowsOf(index, 'text'), [2, 1, 0]);
    }
    assert.deepEqual(rowsOf(indexOf(texts), 'line'), [2, 1, 0]);
    assert.deepEqual(rowsOf(indexOf(inLines), 'line'), [2, 1]);
    assert.deepEqual(find(indexOf(texts), { kind: 'all' }, texts.length), [4, 3, 2, 1, 0]);
    const partsOf = (row: number, matchLength: MatchLength) =>
      indexOf(inLines).partsOf({ query, matchLength }, row);
    assert.deepEqual(
      [2, 0].map((row) => partsOf(row, 'line')),
      [[0], []],
    );
    assert.deepEqual(
      [partsOf(1, 'line'), partsOf(2, 'text'), indexOf(texts).partsOf({ query, matchLength: 'line' }, 2)],
      [null, null, null],
    );
  });

  it('is small where the memtable is', () => {
    assert.ok(new MemtableIndex().bytes < 200);
    assert.ok(indexOf([Buffer.from('one small document')]).bytes < 1000);
  });

  it('holds a quarter of the text at most', () => {
    const texts = [...logLines(seed, 30_000)];

    const index = indexOf(texts);

    assert.ok(index.bytes < texts.reduce((sum, text) => sum + text.length, 0) / 4, `${index.bytes}`);
  });
});
