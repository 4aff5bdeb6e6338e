import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { loadBatch } from '../../../actors/namespace/loaded-batch.ts';
import { documentVector } from '../../../actors/storage/document-batch.ts';
import { parsePut } from '../../../actors/storage/parse-write.ts';

/** The vectors of a put's documents. */
function vectorsOf(body: string): (Float32Array | null)[] {
  const { buffer, documentOffsets } = loadBatch(parsePut(Buffer.from(body)).batch);
  return Array.from(documentOffsets, (offset) => documentVector(buffer, offset));
}

const vectorOf = (fields: string) => vectorsOf(`{"docs":[{"id":"a",${fields}}]}`)[0];

test('numbers of every shape are those of JSON.parse, rounded to 32 bits', () => {
  const digits = fc.stringMatching(/^(0|[1-9]\d{0,18})$/);
  const fraction = fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,20}$/));
  const exponent = fc.oneof(fc.constant(''), fc.stringMatching(/^[eE][+-]?\d{1,2}$/));
  const number = fc
    .tuple(fc.constantFrom('', '-'), digits, fraction, exponent)
    .map((parts) => parts.join(''));
  const numbers = fc
    .array(number, { minLength: 1, maxLength: 20 })
    .filter((list) => list.every((each) => Number.isFinite(Math.fround(Number(each)))));
  fc.assert(
    fc.property(numbers, fc.constantFrom('', ' ', '\n\t'), (list, space) => {
      const json = `[${space}${list.join(`${space},${space}`)}${space}]`;

      assert.deepEqual(vectorOf(`"vector":${json}`), Float32Array.from(JSON.parse(json)));
    }),
    { numRuns: 2_000 },
  );
});

test('base64 has the same vectors, with and without padding, with escapes', () => {
  fc.assert(
    fc.property(
      fc.float32Array({ noNaN: true, noDefaultInfinity: true, minLength: 1, maxLength: 9 }),
      (vector) => {
        const encoded = Buffer.from(vector.buffer).toString('base64');
        for (const form of [encoded, encoded.replace(/=+$/, ''), encoded.replaceAll('/', '\\/')])
          assert.deepEqual(vectorOf(`"vector_b64":"${form}"`), vector);
      },
    ),
  );
});

test('the last of several is the vector, and what was wrong with the others does not matter', () => {
  assert.deepEqual(vectorOf('"vector":null,"vector":[1,2]'), Float32Array.of(1, 2));
  assert.deepEqual(vectorOf('"vector":[1],"vector":[3,4]'), Float32Array.of(3, 4));
  assert.deepEqual(vectorOf('"vector_b64":"?","vector_b64":"AACAPw=="'), Float32Array.of(1));
});

test('documents with and without a vector, a text or a meta stand side by side', () => {
  const long = Array.from({ length: 2_048 }, (_, i) => i / 7 - 99.9);
  const docs = [
    { id: 'a', vector: long },
    { id: 'b', text: 'no vector', meta: { n: 1 } },
    { meta: { n: 2 }, vector: long.map((n) => -n), text: 'all', id: 'c' },
  ];

  assert.deepEqual(vectorsOf(JSON.stringify({ docs })), [
    Float32Array.from(long),
    null,
    Float32Array.from(long, (n) => -n),
  ]);
});
