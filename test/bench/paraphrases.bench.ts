/**
 * How often the built-in model finds a text by a question in other words, among descriptions of Debian packages and, where
 * the folder of WordNet's data files is named, among its glosses, which say what words mean and so are the harder ones.
 * Run: node dist/test/bench/paraphrases.bench.js [/usr/share/wordnet]
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSentenceModel } from '../../actors/embedding/sentence-model.ts';
import { paraphrasePairs } from '../../load-tests/paraphrase-pairs.ts';
import { inOrderOfDigests, packageDescriptions, paraphraseRates } from '../../load-tests/paraphrases.ts';

const print = (line: string) => process.stdout.write(`${line}\n`);
const percent = (rate: number) => `${(rate * 100).toFixed(0)} %`;

function glosses(folder: string, count: number): string[] {
  const lines = readdirSync(folder)
    .filter((name) => name.startsWith('data.'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
  const found = lines.flatMap((line) => line.split(' | ')[1]?.trim() ?? []);
  return inOrderOfDigests(found).slice(0, count);
}

const folder = process.argv[2];
const model = await openSentenceModel();
for (const count of [1_000, 5_000]) {
  const corpora = {
    'package descriptions': packageDescriptions(count),
    ...(folder === undefined ? {} : { 'glosses of WordNet': glosses(folder, count) }),
  };
  for (const [name, others] of Object.entries(corpora)) {
    const { topOne, topFive, places } = await paraphraseRates(paraphrasePairs, others, async (texts) => {
      const { vectors } = await model.embed(texts);
      return vectors;
    });
    print(`${paraphrasePairs.length} questions among ${others.length} ${name}:`);
    print(`  the text first ${percent(topOne)}, among the first five ${percent(topFive)} (wanted: 70 %)`);
    for (const [at, { query }] of paraphrasePairs.entries()) {
      const place = places[at] ?? 0;
      if (place > 5) print(`    ${place}: ${query}`);
    }
  }
}
await model.close();
