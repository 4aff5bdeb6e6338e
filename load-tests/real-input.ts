/**
 * Real files against ripgrep: loads a folder (the first argument; else the text files of node_modules) into a real
 * server and compares counts, newest hits and places. Three times: as loaded, with every document replaced by loading
 * again, and after a restart. Ends with 1 on any difference.
 */
import { resolve } from 'node:path';
import { type Checked, checkCase, listNewestFirst, type Subject } from './check-search.ts';
import { type Corpus, copyCorpus, readCorpus } from './corpus.ts';
import { runLoad } from './load-command.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { ripgrepIsInstalled, ripgrepOracle } from './ripgrep.ts';
import { searchCases } from './search-cases.ts';
import { temporaryFolder } from './server.ts';

const namespace = 'real-input';
const filesMin = 5_000;
const bytesMin = 50e6;

const say = (line: string) => process.stdout.write(`${line}\n`);

async function realInput(given: string | undefined): Promise<boolean> {
  const corpus = readCorpus(given === undefined ? ownCorpus() : resolve(given));
  say(
    `${corpus.files} files, ${(corpus.bytes / 1e6).toFixed(1)} MB; ${corpus.texts.size} of them can be documents`,
  );
  if (given === undefined && (corpus.files < filesMin || corpus.bytes < bytesMin)) {
    throw new Error(`node_modules is too small: this wants ${filesMin} files and ${bytesMin / 1e6} MB`);
  }
  const server = await startMeasured();
  let right = await loadAndCheck(server, corpus, 'loaded');
  right = (await loadAndCheck(server, corpus, 'loaded again: every document is replaced')) && right;
  const restarted = await restartMeasured(server);
  right = (await check(restarted, corpus, 'after a restart')) && right;
  await restarted.process.stop();
  say(right ? '\nno difference' : '\nDIFFERENT: see above');
  return right;
}

function ownCorpus(): string {
  const folder = temporaryFolder();
  copyCorpus('node_modules', folder);
  return folder;
}

async function loadAndCheck(server: MeasuredServer, corpus: Corpus, title: string): Promise<boolean> {
  const to = { url: server.process.url, key: server.key };
  const { code, output, errors } = await runLoad([corpus.folder, '--namespace', namespace], to);
  say(`\n${output}${errors}`.trimEnd());
  if (code !== 0) throw new Error(`tidebase load ended with ${code}`);
  return check(server, corpus, title);
}

async function check(server: MeasuredServer, corpus: Corpus, title: string): Promise<boolean> {
  const client = new Connections(server.process.url, server.key, 1);
  const newestFirst = await listNewestFirst(client, namespace);
  say(
    `\n${title}\n${'query'.padEnd(58)} ${'count'.padStart(7)} ${'ripgrep'.padStart(7)} ${'ms'.padStart(6)}`,
  );
  let right = isSameSet(newestFirst, corpus.texts);
  if (!right) say(`DIFFERENT: the namespace lists ${newestFirst.length} documents, not ${corpus.texts.size}`);
  const textOf = (id: string) => corpus.texts.get(id) ?? Buffer.alloc(0);
  const subject: Subject = { client, namespace, newestFirst, textOf };
  const oracle = ripgrepOracle(corpus.folder, (id) => corpus.texts.has(id));
  for (const asked of searchCases) {
    const checked = await checkCase(subject, oracle, asked);
    say(row(checked));
    right = right && checked.differences.length === 0;
  }
  client.close();
  return right;
}

function isSameSet(ids: readonly string[], texts: ReadonlyMap<string, Buffer>): boolean {
  return ids.length === texts.size && new Set(ids).size === texts.size && ids.every((id) => texts.has(id));
}

function row({ asked, count, expected, countMs, differences }: Checked): string {
  const query = asked.isRegex ? `/${asked.query.slice(0, 54)}/` : JSON.stringify(asked.query);
  const numbers = [String(count).padStart(7), String(expected).padStart(7), countMs.toFixed(0).padStart(6)];
  const verdict = differences.length === 0 ? 'ok' : ['DIFFERENT', ...differences].join('\n    ');
  return `${query.padEnd(58)} ${numbers.join(' ')} ${verdict}`;
}

if (ripgrepIsInstalled()) process.exitCode = (await realInput(process.argv[2])) ? 0 : 1;
else {
  say('skipped: ripgrep is not installed (apt-get install ripgrep)');
  process.exitCode = 2;
}
