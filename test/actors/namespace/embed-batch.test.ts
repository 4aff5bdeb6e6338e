import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActorComponents } from '../../../actors/actor/components.ts';
import { embedBatch } from '../../../actors/namespace/embed-batch.ts';
import { type LoadedBatch, loadBatch } from '../../../actors/namespace/loaded-batch.ts';
import type { NamespaceState } from '../../../actors/namespace/namespace-state.ts';
import {
  BatchBuilder,
  type DocumentParts,
  documentId,
  documentMeta,
  documentText,
  documentVector,
} from '../../../actors/storage/document-batch.ts';
import { readPatches } from '../../../actors/storage/parse-write.ts';
import { KnownShares } from '../../../actors/thread/known-shares.ts';
import { limits } from '../../../protocol/limits.ts';
import { systemClock } from '../../../src/base/clock.ts';

const dims = 512;
const state = {
  embed: { provider: 'service', model: 'use-lite-512' },
  vector: { dims, metric: 'cosine' },
  identity: { tenantId: 7, name: 'n', namespaceId: 'ab'.repeat(16), createdAt: '' },
} as unknown as NamespaceState;

/** A model whose vectors begin with the place of their text among all that it was asked for. */
function countingModel() {
  const asked: string[] = [];
  const lanes = {
    async embed({ texts }: { readonly texts: readonly string[] }) {
      const vectors = new Float32Array(texts.length * dims);
      for (const i of texts.keys()) vectors[i * dims] = asked.length + i + 1;
      asked.push(...texts);
      return { vectors, dims, tokens: texts.length * 10 };
    },
  };
  const directory = { admitHosted: async () => {} };
  const shares = new KnownShares(systemClock);
  const components = { lanes, clock: systemClock, directory, shares } as unknown as ActorComponents;
  return { asked, components };
}

function batchOf(
  documents: readonly (Partial<DocumentParts> & { readonly id: string })[],
  deletes: readonly string[] = [],
): LoadedBatch {
  const builder = new BatchBuilder();
  for (const document of documents)
    builder.addDocument({ text: null, meta: null, vector: null, ...document });
  for (const id of deletes) builder.addDelete(id);
  return loadBatch(builder.finish());
}

const contents = ({ buffer, documentOffsets, deletes }: LoadedBatch) => ({
  documents: Array.from(documentOffsets, (offset) => [
    documentId(buffer, offset),
    documentText(buffer, offset)?.toString() ?? null,
    documentMeta(buffer, offset)?.toString() ?? null,
    documentVector(buffer, offset)?.[0] ?? null,
  ]),
  deletes: [...deletes],
});

const text = (words: string) => Buffer.from(words);
const own = new Float32Array(dims).fill(-1);
const embed = (batch: LoadedBatch, model = countingModel(), of = state) =>
  embedBatch(model.components, of, batch, 20_000);

test('texts without a vector get one; documents, their order and the deletes stay as they were', async () => {
  const model = countingModel();
  const meta = Buffer.from('{"n":1}');
  const batch = batchOf(
    [
      { id: 'b', text: text('first'), meta },
      { id: 'own', text: text('not embedded'), vector: own },
      { id: 'no text', vector: own },
      { id: 'blank', text: text(' \t\n') },
      { id: 'a', text: text(' second ') },
      { id: 'empty', text: text('') },
      { id: 'b', text: text('third') },
    ],
    ['gone', 'b'],
  );

  const { batch: embedded, tokens } = await embed(batch, model);

  assert.deepEqual(model.asked, ['first', 'second', 'third']);
  assert.equal(tokens, 30);
  assert.deepEqual(contents(embedded), {
    documents: [
      ['b', 'first', '{"n":1}', 1],
      ['own', 'not embedded', null, -1],
      ['no text', null, null, -1],
      ['blank', ' \t\n', null, null],
      ['a', ' second ', null, 2],
      ['empty', '', null, null],
      ['b', 'third', null, 3],
    ],
    deletes: ['gone', 'b'],
  });
  assert.equal(embedded.dims, dims);
});

test('patches keep what they leave out', async () => {
  const batch = batchOf([
    { id: 'a', text: text('new words') },
    { id: 'b', meta: Buffer.from('{"n":null}') },
  ]);

  const { batch: embedded } = await embed(batch);

  const [a, b] = readPatches(embedded.buffer);
  assert.deepEqual([a?.text?.toString(), a?.metaPatch, a?.vector?.[0]], ['new words', null, 1]);
  assert.deepEqual([b?.text, b?.metaPatch?.toString(), b?.vector], [null, '{"n":null}', null]);
});

test('a batch with nothing to embed, or of a namespace that does not embed, is the same batch', async () => {
  const model = countingModel();
  const nothing = batchOf([{ id: 'a', text: text('words'), vector: own }], ['b']);
  const something = batchOf([{ id: 'a', text: text('words') }]);

  assert.equal((await embed(nothing, model)).batch, nothing);
  assert.equal((await embed(something, model, { ...state, embed: null } as never)).batch, something);
  assert.deepEqual(model.asked, []);
});

test('white space of any script says nothing and gets no vector', async () => {
  const model = countingModel();
  const blanks = ['\u3000', '\u00a0 \u2003', '\ufeff', '\u2028\u2029', `\u0000 ${' '.repeat(9_000)}`];
  const batch = batchOf(blanks.map((words, i) => ({ id: `d${i}`, text: text(words) })));

  assert.equal((await embed(batch, model)).batch, batch);
  assert.deepEqual(model.asked, []);
});

const max = limits.embeddedTextBytesMax;
const cuts: readonly (readonly [string, string, string])[] = [
  ['of exactly so many bytes is whole', 'x'.repeat(max), 'x'.repeat(max)],
  ['of one more loses it', 'x'.repeat(max + 1), 'x'.repeat(max)],
  ['of four bytes a character fits evenly', '😀'.repeat(max), '😀'.repeat(max / 4)],
  [
    'that is cut in a character of four bytes loses all of it',
    `x${'😀'.repeat(max)}`,
    `x${'😀'.repeat(max / 4 - 1)}`,
  ],
  [
    'that is cut in a character of three bytes loses all of it',
    '語'.repeat(max),
    '語'.repeat(Math.floor(max / 3)),
  ],
  [
    'that is cut in a character of two bytes loses all of it',
    `x${'ж'.repeat(max)}`,
    `x${'ж'.repeat(max / 2 - 1)}`,
  ],
  ['that ends in a character of two bytes keeps it', 'ж'.repeat(max / 2), 'ж'.repeat(max / 2)],
  ['is counted from its first word', `${' '.repeat(max * 2)}x y`, 'x y'],
];
for (const [what, words, expected] of cuts) {
  test(`a text ${what}`, async () => {
    const model = countingModel();

    const { batch } = await embed(batchOf([{ id: 'a', text: text(words) }]), model);

    assert.ok(
      model.asked.length === 1 && model.asked[0] === expected,
      `${model.asked[0]?.length} characters`,
    );
    assert.equal(documentText(batch.buffer, batch.documentOffsets[0] ?? 0)?.toString(), words);
  });
}

test('a thousand long texts are embedded in portions, each vector with its text', async () => {
  const model = countingModel();
  const documents = Array.from({ length: 1_000 }, (_, i) => ({
    id: `d${i}`,
    text: text(`${i} `.repeat(200)),
  }));

  const { batch } = await embed(batchOf(documents), model);

  const { documents: embedded } = contents(batch);
  assert.equal(model.asked.length, 1_000);
  for (const [i, [id, , , first]] of embedded.entries()) assert.deepEqual([id, first], [`d${i}`, i + 1]);
});
