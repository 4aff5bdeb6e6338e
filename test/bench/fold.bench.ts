/**
 * How fast text folds, in MB of source a second, beside its peers: a copy of the bytes, which is the roof, and
 * toLowerCase of the decoded text. Run: node dist/test/bench/fold.bench.js [FILE]
 */
import { readFileSync } from 'node:fs';
import { foldUtf8 } from '../../actors/text/fold.ts';
import { readSources, repositoryRoot } from '../support/repository.ts';

const own = [...readSources(repositoryRoot()).values()].join('\n');
const texts: Readonly<Record<string, Buffer>> = {
  'source code, ASCII': Buffer.from(own.replaceAll(/[^\x00-\x7f]/g, '')),
  'this source code as it is': Buffer.from(own),
  'Cyrillic with spaces': Buffer.from('Съешь ещё этих мягких французских булок '.repeat(20_000)),
  Chinese: Buffer.from('海の潮汐表是一張表格'.repeat(40_000)),
  ...(process.argv[2] === undefined ? {} : { [process.argv[2]]: readFileSync(process.argv[2]) }),
};

/** Megabytes a second of the processor's time, and the best of several rounds: neighbours on the machine take time, they never give any. */
function megabytesPerSecond(bytes: number, run: () => unknown): number {
  const times = Math.max(1, Math.ceil(20_000_000 / bytes));
  let bestSeconds = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < times; i++) run();
    bestSeconds = Math.min(bestSeconds, process.cpuUsage(before).user / 1e6);
  }
  return (bytes * times) / bestSeconds / 1e6;
}

for (const [name, text] of Object.entries(texts)) {
  const target = Buffer.alloc(text.length);
  const figures = {
    foldUtf8: megabytesPerSecond(text.length, () => foldUtf8(text, 0, text.length, target, 0)),
    copy: megabytesPerSecond(text.length, () => text.copy(target)),
    toLowerCase: megabytesPerSecond(text.length, () => Buffer.from(text.toString().toLowerCase())),
  };
  const columns = Object.entries(figures).map(
    ([peer, speed]) => `${peer} ${speed.toFixed(0).padStart(5)} MB/s`,
  );
  process.stdout.write(
    `${name.padEnd(28)} ${(text.length / 1e6).toFixed(2).padStart(6)} MB  ${columns.join('  ')}\n`,
  );
}
