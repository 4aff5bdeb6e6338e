import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  blockEntries,
  encodePostings,
  lowerBound,
  PostingsCursor,
  type PostingsPlace,
  postingsBytesMax,
} from '../../../actors/text/postings.ts';
import { DataError } from '../../../src/base/assert.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 40);

function encoded(ages: readonly number[], bound: number): PostingsPlace {
  const bytes = new Uint8Array(postingsBytesMax(ages.length, bound) + 2);
  const end = encodePostings(Uint32Array.from(ages), ages.length, bound, bytes, 2);
  return {
    bytes: bytes.slice(0, end),
    start: 2,
    end,
    count: ages.length,
    bound,
    place: { name: 'list', offset: 9 },
  };
}

function decoded(list: PostingsPlace, windows: readonly number[]): number[] {
  const cursor = new PostingsCursor(list);
  const target = new Uint32Array(list.count + 1);
  let end = 0;
  for (const window of [...windows, list.bound]) end = cursor.readBelow(window, target, end);
  return [...target.subarray(0, end)];
}

/** Lists of every density, evenly spread or in clusters, with and without their bound's last number. */
function* lists(random: () => number): Generator<{ readonly ages: number[]; readonly bound: number }> {
  for (const bound of [1, 2, 255, 256, 257, 5000, 65_536, 70_000, 1 << 20]) {
    for (const density of [1, 0.9, 0.5, 0.1, 0.01, 0.0001]) {
      const clustered = random() < 0.5;
      let inside = true;
      const ages: number[] = [];
      const step = bound > 100_000 ? 7 : 1;
      for (let age = 0; age < bound; age += step) {
        if (clustered && random() < 0.02) inside = !inside;
        if ((inside && random() < density) || age + step >= bound) ages.push(age);
      }
      yield { ages, bound };
    }
  }
}

describe('posting lists', () => {
  it('come back as they went in, by whatever windows they are read', (test) => {
    test.diagnostic(`seed ${seed}`);
    const random = seededRandom(seed);
    for (const { ages, bound } of lists(random)) {
      const windows = Array.from({ length: 5 }, () => Math.floor(random() * bound)).sort((a, b) => a - b);

      assert.deepEqual(decoded(encoded(ages, bound), windows), ages);
      assert.deepEqual(decoded(encoded(ages, bound), []), ages);
    }
  });

  it('keep of candidates what they have', () => {
    const random = seededRandom(seed);
    for (const { ages, bound } of lists(random)) {
      const have = new Set(ages);
      const cursor = new PostingsCursor(encoded(ages, bound));
      for (const [from, to] of [
        [0, bound / 3],
        [bound / 3, bound / 2],
        [bound / 2, bound],
      ] as const) {
        const wanted: number[] = [];
        const share = random() < 0.5 ? 1 : 0.01;
        for (let age = Math.ceil(from); age < to; age++) if (random() < share) wanted.push(age);
        const candidates = Uint32Array.from(wanted);

        const kept = cursor.retain(candidates, candidates.length);

        assert.deepEqual(
          [...candidates.subarray(0, kept)],
          wanted.filter((age) => have.has(age)),
        );
      }
    }
  });

  it('have no number left below a candidate that is past their last', () => {
    const random = seededRandom(seed);
    for (const { ages, bound } of lists(random)) {
      const cursor = new PostingsCursor(encoded(ages, bound));
      assert.equal(cursor.retain(Uint32Array.of(bound), 1), 0);
      assert.equal(cursor.readBelow(bound, new Uint32Array(ages.length), 0), 0);
    }
  });

  it('take a bit or less a number where most are there, and no bits for neighbours', () => {
    const every = Array.from({ length: 10_000 }, (_, age) => age);

    const bytesOf = (ages: readonly number[]) => encoded(ages, 10_000).end - 2;

    assert.ok(bytesOf(every) <= Math.ceil(10_000 / blockEntries) * 5);
    assert.ok(bytesOf(every.filter((age) => age % 3 !== 0)) < 1.1 * (10_000 / 8) + 200);
    assert.equal(bytesOf([9999]), 2);
  });

  it('notice what cannot be', () => {
    const random = seededRandom(seed);
    const sound = Array.from({ length: 900 }, (_, at) => at * 7);
    const target = new Uint32Array(901);
    let noticed = 0;
    for (let round = 0; round < 3000; round++) {
      const list = encoded(sound, 7000);
      const at = list.start + Math.floor(random() * (list.end - list.start));
      list.bytes[at] = random() * 256;
      try {
        const end = new PostingsCursor(list).readBelow(7000, target, 0);
        for (let i = 1; i < end; i++) assert.ok((target[i] ?? 0) > (target[i - 1] ?? 0));
        assert.ok((target[end - 1] ?? 0) < 7000);
      } catch (error) {
        if (!(error instanceof DataError)) throw error;
        assert.equal(error.place, 'list');
        noticed++;
      }
    }
    assert.ok(noticed > 1000, `${noticed}`);
  });
});

describe('the lower bound', () => {
  it('is the first place that is not below', () => {
    const random = seededRandom(seed);
    const numbers = Uint32Array.from({ length: 100 }, () => Math.floor(random() * 200)).sort();
    for (let wanted = 0; wanted <= 201; wanted++) {
      for (const from of [0, 1, 50, 99, 100]) {
        const right = numbers.findIndex((number, at) => at >= from && number >= wanted);
        assert.equal(lowerBound(numbers, from, 100, wanted), right < 0 ? 100 : right);
      }
    }
  });
});
