/**
 * The built-in model: how long it takes to load, texts a second by how many are embedded in one call, long texts, and the
 * tokenizer alone; and what the process takes of memory. Run: node dist/test/bench/sentence-model.bench.js
 */
import { readVocabulary } from '../../actors/embedding/model-weights.ts';
import { openSentenceModel } from '../../actors/embedding/sentence-model.ts';
import { UnigramTokenizer } from '../../actors/embedding/unigram-tokenizer.ts';
import { paraphrasePairs } from '../../load-tests/paraphrase-pairs.ts';
import { readSources, repositoryRoot } from '../support/repository.ts';

const print = (line: string) => process.stdout.write(`${line}\n`);
const megabytes = () => `${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB`;

/** Milliseconds of the processor, the best of several rounds, of which each does the same. */
async function bestMs(rounds: number, run: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1_000);
  }
  return best;
}

print(`process before: ${megabytes()}`);
const beganAt = performance.now();
const model = await openSentenceModel();
print(`loaded in ${(performance.now() - beganAt).toFixed(0)} ms: ${megabytes()}`);

const sentences = paraphrasePairs.map(({ text }) => text).slice(0, 64);
for (const size of [1, 8, 32, 64]) {
  const ms = await bestMs(5, async () => {
    for (let at = 0; at < sentences.length; at += size) await model.embed(sentences.slice(at, at + size));
  });
  print(`${size} sentences a call: ${((sentences.length * 1_000) / ms).toFixed(0)} sentences a second`);
}

const long = sentences.join(' ').repeat(20);
const passage = 'word '.repeat(128);
print(`a passage of 128 tokens: ${(await bestMs(10, () => model.embed([passage]))).toFixed(1)} ms`);
const { tokens } = await model.embed([long]);
print(`a text of ${tokens} tokens: ${(await bestMs(3, () => model.embed([long]))).toFixed(0)} ms`);
print(`after all: ${megabytes()}`);

const tokenizer = new UnigramTokenizer(await readVocabulary());
const prose = sentences.join(' ').repeat(10);
const source = [...readSources(repositoryRoot()).values()].join('\n').slice(0, 100_000);
for (const [name, text] of Object.entries({ prose, 'source code': source })) {
  const ids = tokenizer.encode(text, 1e6).length;
  const ms = await bestMs(20, () => tokenizer.encode(text, 1e6));
  print(
    `tokenizer, ${name}: ${(ids / ms / 1_000).toFixed(1)} million tokens a second, ${(text.length / ms / 1_000).toFixed(0)} MB/s`,
  );
}
await model.close();
