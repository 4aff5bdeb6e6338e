import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../actors/storage/block-fetch.ts';
import { blockKinds } from '../../../actors/storage/segment-format.ts';
import { idleSourcesMax } from '../../../actors/text/age-sources.ts';
import { partBytes, partedBytesMin } from '../../../actors/text/text-parts.ts';
import { trigramIndexVersion } from '../../../actors/text/trigram-index-format.ts';
import { TrigramIndexReader } from '../../../actors/text/trigram-index-reader.ts';
import { conjunctionListsMax } from '../../../actors/text/trigram-plan.ts';
import type { TrigramQuery } from '../../../actors/text/trigram-query.ts';
import { formats } from '../../../protocol/version.ts';
import { DataError } from '../../../src/base/assert.ts';
import { goldenBytes } from '../../support/golden.ts';
import { CountingStore, randomText, seededRandom } from '../../support/segments.ts';
import { logLines } from '../../support/text-corpora.ts';
import {
  allCandidates,
  type BuiltIndex,
  buildIndex,
  folded,
  indexKey,
  literalQuery,
  NaiveIndex,
  openIndex,
} from '../../support/trigram-index.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 20);
const utf8 = (text: string) => Buffer.from(text);

const alphabets = ['ab', 'etaoin shrdlu', 'AaBbCc ._-/0123456789', 'aäÄßſKK éИи潮汐🌊\u0301\n'];

function randomString(random: () => number, length: number): string {
  const letters = [...(alphabets[Math.floor(random() * alphabets.length)] ?? 'a')];
  return Array.from({ length }, () => letters[Math.floor(random() * letters.length)]).join('');
}

/** Texts of all sizes: none, one and two bytes, short ones, several groups' worth, several parts. */
function randomTexts(random: () => number, count: number): Uint8Array[] {
  return Array.from({ length: count }, () => {
    const shape = random();
    if (shape < 0.1) return utf8('');
    if (shape < 0.2) return utf8(randomString(random, 1 + Math.floor(random() * 2)));
    if (shape < 0.9) return utf8(randomString(random, Math.floor(random() * 300)));
    if (shape < 0.91)
      return utf8(randomString(random, partedBytesMin + Math.floor(random() * 2 * partBytes)));
    return utf8(randomString(random, Math.floor(random() * 12_000)));
  });
}

/** A random part of folded texts. */
function randomPart(random: () => number, texts: readonly Buffer[], length: number): Buffer {
  const text = texts[Math.floor(random() * texts.length)] ?? utf8('');
  const at = Math.floor(random() * Math.max(1, text.length - length));
  const part = text.subarray(at, at + length);
  return part.length === length ? part : Buffer.alloc(length, 0x61);
}

function randomQuery(random: () => number, texts: readonly Buffer[], depth: number): TrigramQuery {
  const shape = random();
  if (depth > 0 && shape < 0.5) {
    const parts = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
      randomQuery(random, texts, depth - 1),
    );
    return { kind: random() < 0.5 ? 'and' : 'or', parts };
  }
  if (shape < 0.75) return { kind: 'trigram', trigram: randomPart(random, texts, 3).readUIntBE(0, 3) };
  if (shape < 0.92) return { kind: 'part', bytes: [...randomPart(random, texts, random() < 0.5 ? 1 : 2)] };
  if (shape < 0.96) return { kind: 'trigram', trigram: Math.floor(random() * 2 ** 24) };
  return { kind: random() < 0.5 ? 'all' : 'none' };
}

/** Conditions of the longest conjunction, those in it counted too: of long ones not all are looked at. */
function longestAnd(query: TrigramQuery): number {
  if (query.kind !== 'and' && query.kind !== 'or') return 1;
  const parts = query.parts.map(longestAnd);
  return query.kind === 'or' ? Math.max(0, ...parts) : parts.reduce((sum, count) => sum + count, 0);
}

function assertDescending(groups: readonly number[]): void {
  groups.forEach((group, at) => {
    assert.ok(at === 0 || group < (groups[at - 1] ?? -1), `${group} after ${groups[at - 1]}`);
  });
}

describe('the trigram index of a segment', () => {
  for (const [name, options] of [
    ['one span', {}],
    ['many spans', { spanGroupsMax: 7 }],
  ] as const) {
    it(`answers as a map of sets does, in ${name}`, async (test) => {
      for (let round = 0; round < 12; round++) {
        test.diagnostic(`seed ${seed + round}`);
        const random = seededRandom(seed + round);
        const texts = randomTexts(random, 1 + Math.floor(random() * 400));
        const { reader } = await openIndex(await buildIndex(texts, options));
        const naive = new NaiveIndex(texts, name === 'one span' ? null : reader.rowGroups);

        const foldedTexts = texts.map(folded);
        assert.equal(reader.rowGroups.groupCount, naive.groupCount);
        for (let n = 0; n < 60; n++) {
          const query = randomQuery(random, foldedTexts, 3);
          const found = await allCandidates(reader.search(query));
          assertDescending(found);
          const missed = naive.find(query).filter((group) => !found.includes(group));
          assert.deepEqual(missed, [], JSON.stringify(query));
          if (longestAnd(query) <= idleSourcesMax + 1)
            assert.deepEqual(found, naive.find(query), JSON.stringify(query));
          if (n % 4 > 0) continue;
          const share = random() ** 2;
          const among = new Set(
            Array.from({ length: naive.groupCount }, (_, at) => at).filter(() => random() < share),
          );
          const narrowed = await allCandidates(reader.search(query, Uint32Array.from(among)));
          assertDescending(narrowed);
          assert.ok(narrowed.every((group) => among.has(group)));
          const left = naive.find(query).filter((group) => among.has(group) && !narrowed.includes(group));
          assert.deepEqual(left, [], `among some, ${JSON.stringify(query)}`);
        }
      }
    });
  }

  it('says which rows a group has', async () => {
    const random = seededRandom(seed);
    const texts = randomTexts(random, 3000);
    const naive = new NaiveIndex(texts);
    const { rowGroups } = (await openIndex(await buildIndex(texts))).reader;

    assert.equal(rowGroups.rowCount, texts.length);
    naive.groupOfRow.forEach((group, row) => {
      const { first, end, kind } = rowGroups.rowsOf(group);
      assert.ok(first <= row && row < end);
      assert.equal(kind, (texts[row] as Uint8Array).length >= partedBytesMin ? 'whole' : 'rows');
    });
  });

  it('finds a byte or two wherever in a text they stand, last ones and lone ones too', async () => {
    const texts = ['', 'q', 'xy', 'ends in q', 'ends in xy', 'K', 'Größe', 'a xy b'].map(utf8);
    // Each row in a group of its own.
    const { reader } = await openIndex(await buildIndex(texts, { spanGroupsMax: 1 }));
    const wide = texts.map((text) => Buffer.concat([text, Buffer.alloc(5000 - text.length, ' ')]));
    const { reader: apart } = await openIndex(await buildIndex([...wide.map((text) => text.reverse())]));

    const find = (part: string) => allCandidates(apart.search(literalQuery([...part].reverse().join(''))));
    assert.deepEqual(await allCandidates(reader.search(literalQuery('q'))), [0]);
    assert.deepEqual(await find('q'), [3, 1]);
    assert.deepEqual(await find('xy'), [7, 4, 2]);
    assert.deepEqual(await find('k'), [5]);
  });

  it('holds a document of 2 MB, in a group of its own and one for each part', async () => {
    const random = seededRandom(seed);
    const large = utf8(randomText(random, 400_000).slice(0, 1_500_000) + randomString(random, 200_000));
    const texts = [utf8('before'), large, utf8('after')];
    const naive = new NaiveIndex(texts);
    const { reader } = await openIndex(await buildIndex(texts));

    const foldedTexts = [folded(large)];
    const lastGroup = naive.groupCount - 1;
    for (let group = 1; group < lastGroup - 1; group++)
      assert.deepEqual(reader.rowGroups.rowsOf(group), {
        first: 1,
        end: 2,
        kind: 'part',
        linesAreWhole: false,
        part: group - 1,
      });
    assert.deepEqual(reader.rowGroups.rowsOf(lastGroup - 1), {
      first: 1,
      end: 2,
      kind: 'whole',
      linesAreWhole: false,
      part: 0,
    });
    assert.deepEqual(reader.rowGroups.rowsOf(lastGroup), {
      first: 2,
      end: 3,
      kind: 'rows',
      linesAreWhole: true,
      part: 0,
    });
    for (let n = 0; n < 200; n++) {
      const query = literalQuery(randomPart(random, foldedTexts, 3).toString('latin1'));
      assert.deepEqual(await allCandidates(reader.search(query)), naive.find(query));
    }
  });

  it('keeps a group whole that two sorted runs share', async () => {
    // More pairs than a run holds, in one group and then in the next.
    const random = seededRandom(seed);
    const noise = () => Buffer.from(Array.from({ length: 900_000 }, () => 32 + Math.floor(random() * 95)));
    const texts = [noise(), noise(), utf8('end')];
    const naive = new NaiveIndex(texts);
    const { reader } = await openIndex(await buildIndex(texts));

    const foldedTexts = texts.map(folded);
    for (let n = 0; n < 500; n++) {
      const trigram = randomPart(random, foldedTexts, 3).readUIntBE(0, 3);
      const query: TrigramQuery = { kind: 'trigram', trigram };
      assert.deepEqual(await allCandidates(reader.search(query)), naive.find(query));
    }
  });

  it('never has fewer candidates than rows that hold a literal, and says them newest first', async () => {
    const random = seededRandom(seed);
    const texts = [...logLines(seed, 3000)];
    const { reader } = await openIndex(await buildIndex(texts, { spanGroupsMax: 90 }));
    const naive = new NaiveIndex(texts, reader.rowGroups);

    const foldedTexts = texts.map(folded);
    for (let n = 0; n < 200; n++) {
      const literal = randomPart(random, foldedTexts, 1 + Math.floor(random() * 40)).toString();
      const found = await allCandidates(reader.search(literalQuery(literal)));
      assertDescending(found);
      const holding = naive.textsOfGroup.flatMap((group, at) =>
        group.some((text) => text.includes(folded(utf8(literal)))) ? [at] : [],
      );
      const missed = holding.filter((group) => !found.includes(group));
      assert.deepEqual(missed, [], literal);
    }
  });

  it('is empty where nothing was added', async () => {
    const { reader } = await openIndex(await buildIndex([]));

    assert.equal(reader.rowGroups.groupCount, 0);
    assert.deepEqual(await allCandidates(reader.search({ kind: 'all' })), []);
  });

  it('makes the bytes that it always made', async () => {
    const random = seededRandom(7);
    const { bytes, root } = await buildIndex(
      [...logLines(7, 300), utf8(randomText(random, 9000)), utf8('')],
      {
        spanGroupsMax: 12,
      },
    );
    const made = Buffer.concat([root, bytes]);

    const golden = goldenBytes(`trigram-index-v${trigramIndexVersion}.bin`, made);
    const { reader } = await openIndex({
      root: golden.subarray(0, root.length),
      bytes: golden.subarray(root.length),
      bytesByKind: new Map(),
      blockCount: 0,
    });

    assert.equal(formats.trigramIndex.version, trigramIndexVersion);
    assert.ok(golden.equals(made));
    assert.ok((await allCandidates(reader.search(literalQuery('harbour')))).length > 0);
  });
});

describe('reading the trigram index', () => {
  it('takes one round for a query, however many spans there are, and none the second time', async () => {
    const texts = [...logLines(seed, 6000)];
    const { reader, store } = await openIndex(await buildIndex(texts, { spanGroupsMax: 150 }));
    const opening = store.gets;
    const query = literalQuery('timeout of the upstream');

    const candidates = reader.search(query);
    const waiting = candidates.next(emptyReadTally());
    assert.ok(waiting instanceof Promise);
    await waiting;
    const gets = store.gets;
    const rest: number[] = [];
    for (;;) {
      const groups = candidates.next(emptyReadTally());
      assert.ok(!(groups instanceof Promise), 'another round');
      if (groups === null) break;
      rest.push(...groups);
    }

    assert.equal(opening, 1, 'the indexes of the pages and of the groups come with one GET');
    assert.ok(rest.length > 0);
    assert.equal(store.gets, gets);
    assert.ok(!(reader.search(query).next(emptyReadTally()) instanceof Promise));
  });

  it('takes further rounds where the spans are too many for one', async () => {
    const texts = [...logLines(seed, 4000)];
    const built = await buildIndex(texts, { spanGroupsMax: 1 });
    const { reader } = await openIndex(built);
    const naive = new NaiveIndex(texts, reader.rowGroups);
    let rounds = 0;

    for (const literal of ['mailer', 'q']) {
      const candidates = reader.search(literalQuery(literal));
      const found: number[] = [];
      for (;;) {
        const next = candidates.next(emptyReadTally());
        if (next instanceof Promise) rounds++;
        const groups = await next;
        if (groups === null) break;
        found.push(...groups);
      }
      assertDescending(found);
      const missed = naive.find(literalQuery(literal)).filter((group) => !found.includes(group));
      assert.deepEqual(missed, []);
    }
    assert.ok(rounds >= 2, `${rounds} rounds`);
  });

  it('reads few pages for a long literal', async () => {
    const texts = [...logLines(seed, 6000)];
    const { reader, store } = await openIndex(await buildIndex(texts));
    const before = store.gets;

    await allCandidates(
      reader.search(literalQuery('connection reset by peer while reading response header from upstream')),
    );

    assert.ok(store.gets - before <= conjunctionListsMax, `${store.gets - before} GETs`);
  });

  it('gives the newest candidates of a frequent trigram without decoding its list', async () => {
    const texts = Array.from({ length: 30_000 }, (_, at) => utf8(`${at} and on`.padEnd(4000)));
    const { reader } = await openIndex(await buildIndex(texts));
    const candidates = reader.search(literalQuery('and'));

    const first = await candidates.next(emptyReadTally());

    assert.equal(first?.[0], 29_999);
    assert.equal(first?.length, 4096);
    assertDescending([...(first ?? [])]);
  });

  it('says where a condition leaves nothing out', async () => {
    const { reader } = await openIndex(await buildIndex([...logLines(seed, 1000)]));

    assert.equal(reader.search({ kind: 'all' }).isScan, true);
    assert.equal(reader.search(literalQuery('request')).isScan, false);
    assert.equal(reader.search({ kind: 'or', parts: [literalQuery('abc'), { kind: 'all' }] }).isScan, true);
    assert.equal(reader.search({ kind: 'and', parts: [literalQuery('abc'), { kind: 'all' }] }).isScan, false);
  });
});

describe('a damaged trigram index', () => {
  const queries = [literalQuery('tide'), literalQuery('a'), literalQuery('block page')];

  async function answers(built: BuiltIndex): Promise<number[][]> {
    const { reader } = await openIndex(built);
    const found: number[][] = [];
    for (const query of queries) found.push(await allCandidates(reader.search(query)));
    return found;
  }

  it('is noticed or harmless, whichever byte is another', async () => {
    const random = seededRandom(seed);
    const texts = Array.from({ length: 40 }, () => utf8(randomText(random, 60)));
    const built = await buildIndex(texts);
    const right = await answers(built);

    for (let at = 0; at < built.bytes.length; at++) {
      const bytes = Buffer.from(built.bytes);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      const found = await answers({ ...built, bytes }).catch((error: unknown) => error);
      if (found instanceof DataError) assert.equal(found.place, indexKey);
      else assert.deepEqual(found, right, `byte ${at}`);
    }
  });

  it('ends and allocates little even where its checksums were right', async () => {
    const random = seededRandom(seed);
    const texts = [...logLines(seed, 2000)];
    const built = await buildIndex(texts);

    let noticed = 0;
    for (let round = 0; round < 600; round++) {
      const store = new CountingStore();
      await store.putIfAbsent(indexKey, [built.bytes]);
      const cache = new BlockCache(64e6);
      const blocks = new BlockFetcher({ store, warmCache: null, cache }).open(indexKey);
      const spoiled = {
        objectKey: indexKey,
        cachedOrLocal: () => undefined,
        fetch: async (...args: Parameters<typeof blocks.fetch>) => {
          const found = await blocks.fetch(...args);
          for (const { raw } of found) {
            if (random() < 0.3) continue;
            for (let n = 1 + Math.floor(random() * 3); n > 0; n--)
              raw[Math.floor(random() * Math.min(raw.length, random() < 0.5 ? 64 : raw.length))] =
                random() * 256;
          }
          return found;
        },
      };
      try {
        const reader = await TrigramIndexReader.open(built.root, spoiled, emptyReadTally());
        for (const literal of ['e', 'INFO', 'timeout of']) {
          const groups = await allCandidates(reader.search(literalQuery(literal)));
          assertDescending(groups);
          assert.ok(groups.length <= reader.rowGroups.groupCount);
        }
      } catch (error) {
        if (!(error instanceof DataError)) throw error;
        noticed++;
      }
    }
    assert.ok(noticed > 100, `noticed ${noticed}`);
  });

  it('is no index without its root', async () => {
    const built = await buildIndex([utf8('text')]);

    await assert.rejects(openIndex({ ...built, root: built.root.subarray(1) }), DataError);
  });
});

describe('the writer of the trigram index', () => {
  it('holds no more than its bound, however much text there is', async () => {
    const runBytesMax = 1_000_000;
    const { bytesByKind } = await buildIndex(logLines(seed, 1), { runBytesMax });
    let largest = 0;
    let texts = 0;
    function* counted() {
      const before = process.memoryUsage();
      for (const text of logLines(seed, 60_000)) {
        if (++texts % 5000 === 0) {
          const { arrayBuffers } = process.memoryUsage();
          largest = Math.max(largest, arrayBuffers - before.arrayBuffers);
        }
        yield text;
      }
    }

    const built = await buildIndex(counted(), { runBytesMax });

    // The index itself, which the test keeps, the writer's arrays, and the runs of one span.
    const bound = built.bytes.length + 16e6 + 2 * runBytesMax + 8e6;
    assert.ok(largest < bound, `${largest} bytes, ${bound} are allowed`);
    assert.ok((bytesByKind.get(blockKinds.trigrams) ?? 0) > 0);
  });

  it('keeps within its share of the text', async () => {
    const texts = [...logLines(seed, 20_000)];
    const textBytes = texts.reduce((sum, text) => sum + text.length, 0);

    const { bytesByKind } = await buildIndex(texts);

    const indexBytes = [...bytesByKind.values()].reduce((sum, bytes) => sum + bytes, 0);
    assert.ok(indexBytes <= 0.2 * textBytes, `${(indexBytes / textBytes).toFixed(3)} of the text`);
  });
});
