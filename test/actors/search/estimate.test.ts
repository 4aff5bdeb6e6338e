import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { estimateCount } from '../../../actors/search/estimate-count.ts';
import { likelyBounds } from '../../../actors/search/likely-bounds.ts';
import { runCount } from '../../../actors/search/run-search.ts';
import { documentText } from '../../../actors/storage/document-batch.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { parseCountBody } from '../../../protocol/search.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { contextOf } from '../../support/query-context.ts';
import { seededRandom } from '../../support/segments.ts';
import { writtenRows } from '../../support/written-rows.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 25);
const patternsAsked = 1_000;
const patternsDrawn = 500;
/** The share of patterns whose truth must be inside: 95 of 100, less what chance may take from it in 1,000. */
const insideMin = 0.93;

const syllables = ['ba', 'co', 'di', 'fe', 'gu', 'ha', 'jo', 'ki', 'la', 'me'];
const word = (rank: number) =>
  `${syllables[rank % 10]}${syllables[Math.floor(rank / 10) % 10]}${rank < 100 ? '' : syllables[Math.floor(rank / 100) % 10]}`;
const rowsPerTopic = 120;

/** Some words are everywhere, and each stretch of rows has one that is frequent there and nowhere else. */
function textOf(random: () => number, sequence: number): string {
  const topic = word(700 + (Math.floor(sequence / rowsPerTopic) % 50));
  return Array.from({ length: 8 }, () =>
    random() < 0.05 ? topic : word(Math.floor(random() ** 2 * 600)),
  ).join(' ');
}

/** A piece of a text, so that it may be one word or reach over two or three; each at most once. */
function randomPatterns(random: () => number, texts: readonly string[], count: number): Set<string> {
  const patterns = new Set<string>();
  while (patterns.size < count) {
    const text = texts[Math.floor(random() * texts.length)] as string;
    const length = 3 + Math.floor(random() * 5);
    const start = Math.floor(random() * (text.length - length));
    patterns.add(text.slice(start, start + length));
  }
  return patterns;
}

describe('estimates', () => {
  it('have the truth between their likely bounds for 93 of 100 patterns, and always between the certain ones', async (t) => {
    t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const sizes = { segments: [1_500, 2_500], frozen: 60, memtable: 100, later: 20 };
    const { snapshot, live } = await writtenRows(random, sizes, { text: textOf, meta: () => null });
    const texts = live.map(({ text }) => text);
    let estimated = 0;
    let inside = 0;
    let widths = 0;
    let frequent = 0;
    for (const q of randomPatterns(random, texts, patternsAsked)) {
      const body = parseCountBody({ q, exact: false });
      const answer = JSON.parse(await runCount(contextOf(snapshot, new FakeClock()), body));
      const truth = texts.filter((text) => text.includes(q)).length;
      const { count, low, high, likely_low, likely_high } = answer;
      const shown = JSON.stringify({ q, truth, count, low, high, likely_low, likely_high });
      assert.ok(low <= truth && truth <= high, shown);
      assert.ok(
        low <= likely_low && likely_low <= count && count <= likely_high && likely_high <= high,
        shown,
      );
      if (answer.exact) {
        assert.equal(count, truth, shown);
        continue;
      }
      estimated++;
      if (likely_low <= truth && truth <= likely_high) inside++;
      if (truth < texts.length / 10) continue;
      frequent++;
      widths += (likely_high - likely_low) / (high - low);
    }
    t.diagnostic(
      `${inside} of ${estimated} inside; frequent ones ${(widths / frequent).toFixed(2)} as wide as certain`,
    );
    assert.ok(estimated > patternsAsked / 4, `${estimated} were estimated`);
    assert.ok(inside >= estimated * insideMin, `${inside} of ${estimated}`);
    assert.ok(frequent > 20 && widths < frequent / 2, `${widths / frequent} of the certain width`);
  });
});

describe('estimates of blocks that were drawn', () => {
  it('have the truth between their likely bounds for 93 of 100 patterns, and always between the certain ones', async (t) => {
    t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const sizes = { segments: [3_000, 5_000], frozen: 60, memtable: 100, later: 20 };
    const { snapshot, live } = await writtenRows(random, sizes, { text: textOf, meta: () => null });
    const texts = live.map(({ text }) => text);
    const patterns = new QueryPatterns();
    const { slice, tally } = contextOf(snapshot, new FakeClock());
    let inside = 0;
    let found = 0;
    for (const q of randomPatterns(random, texts, patternsDrawn)) {
      const { condition } = patterns.of(q, false);
      const options = { condition, groupsMax: 12, listedGroupsMax: 0, slice, tally };
      const estimate = await estimateCount(snapshot, options, {
        document: ({ buffer, offset }) => documentText(buffer, offset)?.includes(q) === true,
        block: () => null,
      });
      const truth = texts.filter((text) => text.includes(q)).length;
      const shown = JSON.stringify({ q, truth, estimate });
      assert.ok(estimate !== null && estimate.low <= truth && truth <= estimate.high, shown);
      const { low, high } = estimate.likely;
      assert.ok(estimate.low <= low && low <= estimate.count && estimate.count <= high, shown);
      if (low <= truth && truth <= high) inside++;
      found += estimate.low;
    }
    t.diagnostic(`${inside} of ${patternsDrawn} inside`);
    assert.ok(inside >= patternsDrawn * insideMin, `${inside} of ${patternsDrawn}`);
    assert.ok(found > patternsDrawn * 10, `${found} matches were judged`);
  });
});

describe('likely bounds', () => {
  const even = (count: number, rows: number, matching: number) =>
    Array.from({ length: count }, () => ({ rows, matching }));

  it('are the count where all was judged, and everything where nothing was', () => {
    assert.deepEqual(likelyBounds(even(10, 5, 2), 50), { low: 20, high: 20 });
    assert.deepEqual(likelyBounds([], 50), { low: 0, high: 50 });
  });

  it('are as narrow as so many rows allow where groups are alike', () => {
    const { low, high } = likelyBounds(even(40, 250, 10), 1_000_000);

    assert.ok(low > 34_000 && low < 38_000 && high > 42_000 && high < 46_500, `${low} to ${high}`);
  });

  it('are wider where the same matches stand in few groups', () => {
    const spread = likelyBounds(even(40, 250, 10), 1_000_000);
    const apart = likelyBounds([...even(20, 250, 20), ...even(20, 250, 0)], 1_000_000);

    assert.ok(apart.high - apart.low > 2 * (spread.high - spread.low));
  });

  it('say where nothing was found that a share of the groups may be full of it', () => {
    const { low, high } = likelyBounds(even(64, 100, 0), 1_000_000);

    assert.equal(low, 0);
    assert.ok(high > 40_000 && high < 80_000, `${high}`);
  });
});
