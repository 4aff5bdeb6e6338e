import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSentenceModel } from '../actors/embedding/sentence-model.ts';
import { keptFolder } from './kept-folder.ts';
import { packageDescriptions } from './paraphrases.ts';
import type { VectorRows } from './vector-set.ts';

/** Vectors of real texts, descriptions of Debian's packages, by the built-in model: some minutes, kept for the next run. */
const folder = join(keptFolder('tidebase-corpora'), 'text-vectors');
const textsAtOnce = 500;

export async function textVectors(count: number, say: (line: string) => void): Promise<VectorRows> {
  const dims = 512;
  const file = join(folder, `${count}.f32`);
  if (existsSync(file)) {
    const kept = readFileSync(file);
    return { dims, values: new Float32Array(kept.buffer, kept.byteOffset, kept.length / 4) };
  }
  const texts = packageDescriptions(count);
  const model = await openSentenceModel();
  const values = new Float32Array(count * dims);
  const began = performance.now();
  let tokens = 0;
  for (let from = 0; from < count; from += textsAtOnce) {
    const made = await model.embed(texts.slice(from, from + textsAtOnce));
    values.set(made.vectors, from * dims);
    tokens += made.tokens;
  }
  const seconds = (performance.now() - began) / 1_000;
  say(`${count} texts of ${tokens} tokens embedded in ${seconds.toFixed(0)} s by the built-in model`);
  await model.close();
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, Buffer.from(values.buffer));
  return { dims, values };
}
