import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Snapshot } from '../../../actors/storage/snapshot.ts';
import { partBytes, partedBytesMin, partOverlapBytes } from '../../../actors/text/text-parts.ts';
import { BusyClock } from '../../support/busy-clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { contextOf, row, search, snapshotOfRows } from '../../support/query-context.ts';
import { randomText, seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 50);
const snapshotOf = (texts: readonly string[], cacheBytes?: number) =>
  snapshotOfRows(
    texts.map((text, at) => row(at + 1, text)),
    cacheBytes,
  );

const idsOf = async (snapshot: Snapshot, body: object): Promise<string[]> => {
  const answer = await search(contextOf(snapshot, new FakeClock()), { limit: 1_000, scan: true, ...body });
  return answer.hits.map((hit: { id: string }) => hit.id);
};

for (const [shape, inShape] of [
  ['one line', (text: string) => text],
  ['many lines', (text: string) => text.replaceAll(' ', '\n')],
] as const) {
  test(`a match is found wherever in a large text of ${shape} it stands, however long it is`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    await findNeedles(inShape);
  });
}

async function findNeedles(inShape: (text: string) => string): Promise<void> {
  const random = seededRandom(seed);
  const needles = ['qzxjkv', `v${'zxjkv '.repeat(40)}w`, `w${'zxjkv '.repeat(90)}w`, 'ſ\u212azxq'];
  const filler = inShape(randomText(random, 60_000).slice(0, 6 * partBytes));
  const texts: string[] = [];
  const placed: { readonly id: string; readonly needle: number }[] = [];
  for (let n = 0; n < 48; n++) {
    const needle = n % needles.length;
    const size = partedBytesMin - 100 + Math.floor(random() * 3 * partBytes);
    // At its start, its end, around the borders of parts, and anywhere.
    const border = partBytes * (1 + Math.floor(random() * 3)) - Math.floor(random() * 2 * partOverlapBytes);
    const at = [0, size, border, border, Math.floor(random() * size)][n % 5] ?? 0;
    texts.push(`${filler.slice(0, at)}${needles[needle]}${filler.slice(at, size)}`);
    placed.push({ id: `d${texts.length}`, needle });
    if (n % 3 === 0) texts.push('short, without', filler.slice(0, size));
  }
  const { snapshot } = await snapshotOf(texts);

  for (const [needle, q] of needles.entries()) {
    const wanted = placed.filter((each) => each.needle === needle).map(({ id }) => id);
    for (const filter of [undefined, { n: 1 }]) {
      const expected = wanted.filter((id) => filter === undefined || Number(id.slice(1)) % 3 === 1).reverse();
      const where = filter === undefined ? {} : { filter };
      assert.deepEqual(await idsOf(snapshot, { q, ...where }), expected, `${q.slice(0, 10)}`);
      const inLine = { q: `${q.slice(0, 4)}.*${q.slice(-1)}`, regex: true, ...where };
      if (!q.startsWith('ſ')) assert.deepEqual(await idsOf(snapshot, inLine), expected, inLine.q);
      const asRegex = { q: `(?i)${q}`, regex: true, ...where };
      assert.deepEqual(await idsOf(snapshot, asRegex), expected, `${q.slice(0, 10)} as a regex`);
    }
  }
}

test('a regex without an end spans the parts of a text, and one of its ends alone is no match', async () => {
  const filler = randomText(seededRandom(seed), 60_000).slice(0, 5 * partBytes);
  const texts = [`qzx ${filler} jkv`, `jkv ${filler} qzx`, `qzx ${filler}`, filler, 'qzx jkv'];
  const { snapshot } = await snapshotOf([...texts, ...texts]);

  assert.deepEqual(await idsOf(snapshot, { q: '(?s)qzx.*jkv', regex: true }), ['d10', 'd6', 'd5', 'd1']);
  assert.deepEqual(await idsOf(snapshot, { q: 'qzx.*jkv', regex: true }), ['d10', 'd6', 'd5', 'd1']);
  assert.deepEqual(await idsOf(snapshot, { q: 'qzx[^q]{0,9}jkv', regex: true }), ['d10', 'd5']);
  assert.deepEqual(await idsOf(snapshot, { q: 'qzx' }), ['d10', 'd8', 'd7', 'd6', 'd5', 'd3', 'd2', 'd1']);
});

test('words that a large text has far apart do not make a search read it', async () => {
  // Each trigram of the word stands in some part of it, and no two of them in the same one.
  const large = ['har', 'arb', 'rbo', 'bou', 'our']
    .map((piece) => `${piece} ${'x y '.repeat(5_000)}`)
    .join('');
  const { snapshot, store } = await snapshotOf([large, 'nothing', 'a harbour', 'in memory'], 1);
  assert.deepEqual(await idsOf(snapshot, { q: 'nothing' }), ['d2']);
  const before = store.gets;

  assert.deepEqual(await idsOf(snapshot, { q: 'harbour' }), ['d3']);
  assert.equal(store.gets - before, 1, 'posting lists alone');
  assert.deepEqual(await idsOf(snapshot, { q: '(?s)har.*our', regex: true }), ['d3', 'd1']);
});

test('an answer of long texts is the one of short ones, and others have their turn while it is put together', async () => {
  const random = seededRandom(seed);
  const texts = Array.from(
    { length: 12 },
    (_, at) => `tide ${at} "quoted"\n\u0001 größe 潮汐 ${randomText(random, 1_000 * (at % 4) ** 3)}`,
  );
  const include = ['text', 'matches', 'vector'];
  const rows = texts.map((text, at) => row(at + 1, text));
  for (const cacheBytes of [undefined, 1]) {
    const { snapshot } = await snapshotOfRows(rows, cacheBytes);
    const [clock, clockOfBare] = [new BusyClock(), new BusyClock()];
    const answer = await search(contextOf(snapshot, clock), { q: 'tide', include, limit: 20 });
    const bare = await search(contextOf(snapshot, clockOfBare), { q: 'tide', limit: 20 });

    assert.ok(
      clock.yields > clockOfBare.yields,
      `${clock.yields} turns, of short ones ${clockOfBare.yields}`,
    );

    assert.deepEqual(
      answer.hits.map(({ text }: { text: string }) => text),
      texts.toReversed(),
    );
    assert.deepEqual(
      answer.hits.map(({ text, matches, vector, ...others }: Record<string, unknown>) => others),
      bare.hits,
    );
    assert.deepEqual(Object.keys(answer), Object.keys(bare));
    assert.deepEqual([answer.docs, answer.version, answer.partial], [bare.docs, bare.version, false]);
  }
});

test('an answer of many texts that are not long is put together in turns, too', async () => {
  const texts = Array.from({ length: 60 }, (_, at) => `tide ${at} größe ${'x'.repeat(9_000)}`);
  const { snapshot } = await snapshotOf(texts);
  const clock = new BusyClock();
  const body = { q: 'tide', include: ['text'], limit: 60 };
  const few = new BusyClock();

  const answer = await search(contextOf(snapshot, clock), body);
  await search(contextOf(snapshot, few), { ...body, limit: 20 });

  assert.deepEqual(
    answer.hits.map(({ text }: { text: string }) => text),
    texts.toReversed(),
  );
  // A look takes a millisecond, and a slice is two.
  assert.ok(clock.yields >= few.yields + 20, `${clock.yields} turns, of a third ${few.yields}`);
});
