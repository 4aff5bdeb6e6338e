import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readVocabulary } from '../../../actors/embedding/model-weights.ts';
import { openSentenceModel, type SentenceModel } from '../../../actors/embedding/sentence-model.ts';
import { UnigramTokenizer } from '../../../actors/embedding/unigram-tokenizer.ts';
import { UseLiteSession } from '../../../actors/embedding/use-lite-session.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { must } from '../../../src/base/assert.ts';
import { goldenUseLite } from '../../support/golden-use-lite.ts';

describe('the graph', () => {
  test('gives the vectors that the published model gave', async () => {
    const { vectors: golden } = goldenUseLite();
    const tokenizer = new UnigramTokenizer(await readVocabulary());
    const session = await UseLiteSession.open();

    const made = await session.run(golden.map(({ text }) => tokenizer.encode(text, 128)));

    assert.ok(golden.length > 10);
    for (const [at, { text, vector }] of golden.entries()) {
      assert.ok(farthest(vector, made.subarray(at * 512, (at + 1) * 512)) < 1e-5, text);
    }
    await session.close();
  });
});

describe('the built-in model', () => {
  let model: SentenceModel;
  before(async () => {
    model = await openSentenceModel();
  });
  after(() => model.close());

  const embed = async (...texts: string[]) => {
    const { vectors } = await model.embed(texts);
    return texts.map((_, at) => vectors.subarray(at * 512, (at + 1) * 512));
  };
  const one = async (text: string) => must((await embed(text))[0], 'a vector');

  test('tells texts of one meaning from others', async () => {
    const pairs = [
      ['How do I reset my password?', 'I forgot my login credentials and need a new password.'],
      [
        'The server crashed because it ran out of memory.',
        'An out-of-memory error brought the machine down.',
      ],
      ['The stock market fell sharply today.', 'Shares dropped steeply on Tuesday.'],
      ['A dog runs across the field.', 'A puppy is running on the grass.'],
      ['He bought a new car.', 'He purchased a brand new automobile.'],
    ] as const;
    const left = await embed(...pairs.map(([text]) => text));
    const right = await embed(...pairs.map(([, text]) => text));

    for (const [i, a] of left.entries()) {
      const cosines = right.map((b) => cosine(a, b));
      const others = cosines.filter((_, j) => j !== i);
      assert.ok(must(cosines[i], 'its own') > Math.max(...others), `${pairs[i]?.[0]}: ${cosines}`);
    }
  });

  test('gives vectors of length 1, the same ones each time', async () => {
    const text = 'The tide table is read from the bottom up.';
    const vector = await one(text);

    assert.ok(Math.abs(cosine(vector, vector) - 1) < 1e-6);
    assert.deepEqual(await one(text), vector);
  });

  test('a text has the same vector alone and among others, of whatever lengths', async () => {
    const words = 'commit fence harbour index log memory night ocean page query river segment tide'.split(
      ' ',
    );
    const texts = Array.from({ length: 60 }, (_, i) =>
      Array.from({ length: 1 + ((i * 37) % 190) }, (_, k) => words[(i + k * k) % words.length]).join(' '),
    );
    const together = await embed(...texts);

    for (const [at, text] of texts.entries()) {
      assert.ok(farthest(must(together[at], text), await one(text)) < 1e-5, `text ${at}`);
    }
  });

  test('case, white space and a point at the end say nothing', async () => {
    assert.deepEqual(await one('  Reset\n\tthe Password!?'), await one('reset the password'));
  });

  test('a text without a word has a vector of zeros and no tokens', async () => {
    const { vectors, tokens } = await model.embed(['', ' \n', '?!', 'word']);

    assert.deepEqual(vectors.subarray(0, 3 * 512), new Float32Array(3 * 512));
    assert.notDeepEqual(vectors.subarray(3 * 512), new Float32Array(512));
    assert.equal(tokens, 1);
    assert.deepEqual(await model.embed([]), { vectors: new Float32Array(0), tokens: 0 });
  });

  test('a long text is the mean of its pieces, each weighed by its tokens', async () => {
    // A word is a token: 128 and 64.
    const pieces = ['word '.repeat(128), 'water '.repeat(64)];
    const [first, second] = await embed(...pieces);

    const { vectors, tokens } = await model.embed([pieces.join('')]);

    assert.equal(tokens, 192);
    // In the plane of the two, and nearer to the larger one.
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(cosine(vectors, first) > cosine(vectors, second));
    assert.ok(distanceFromPlane(vectors, first, second) < 1e-5);
  });

  test('of a huge text only the beginning is read', async () => {
    const { tokens, vectors } = await model.embed(['The tide rises and falls. '.repeat(80_000)]);

    assert.equal(tokens, limits.embeddedTokensMax);
    assert.ok(Math.abs(cosine(vectors, vectors) - 1) < 1e-6);
  });

  test('where the runtime does not load, it says so with a code', async () => {
    const cause = new Error('no binary');

    await assert.rejects(
      openSentenceModel(() => Promise.reject(cause)),
      (error) => error instanceof ApiError && error.code === 'embedding_failed' && error.cause === cause,
    );
  });
});

function cosine(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
}

function farthest(a: Float32Array, b: Float32Array): number {
  assert.equal(a.length, b.length);
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - (b[i] as number))), 0);
}

/** How much of a vector is left when its parts along two others are taken out. */
function distanceFromPlane(vector: Float32Array, a: Float32Array, b: Float32Array): number {
  const alongA = cosine(a, b);
  const rest = b.map((value, i) => value - alongA * (a[i] as number));
  const length = Math.sqrt(cosine(rest, rest));
  const other = rest.map((value) => value / length);
  const out = vector.map(
    (value, i) => value - cosine(vector, a) * (a[i] as number) - cosine(vector, other) * (other[i] as number),
  );
  return Math.sqrt(cosine(out, out));
}
