/**
 * `npm run peers`: the same rows and questions to Tidebase and to six other programs, each started and ended by this one, or
 * skipped with a sentence where it can't be had. Every answer is held to what is true of the rows. Ends with 1 where an answer of
 * ours was wrong, or less than nine tenths of the nearest were found; what others answer is told. The table is on the page of
 * `npm run load`, too.
 *
 *   --quick   --rows=50000   --times=20 (each question)   --only=tidebase,ripgrep   --out=load-tests/results
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { machineFacts, machineLines } from './bench-report.ts';
import { isQuick } from './judge.ts';
import { numberOption, textOption } from './options.ts';
import { askPeer, type PeerReport } from './peers/ask-peers.ts';
import { chroma } from './peers/chroma.ts';
import { csearch } from './peers/csearch.ts';
import { duckdb } from './peers/duckdb.ts';
import { lancedb } from './peers/lancedb.ts';
import { makePeerCorpus } from './peers/peer-corpus.ts';
import { type PeersResult, peersFile, peersFormat, peersTable } from './peers/peers-table.ts';
import { postgres } from './peers/postgres.ts';
import { ripgrep } from './peers/ripgrep.ts';
import { tidebase } from './peers/tidebase.ts';

const peers = [tidebase, ripgrep, csearch, duckdb, lancedb, chroma, postgres];
const recallMin = 0.9;
const say = (line: string) => process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const rows = numberOption('rows', isQuick ? 5_000 : 50_000);
  const times = numberOption('times', isQuick ? 3 : 20);
  const only = textOption('only')?.toLowerCase().split(',');
  for (const line of machineLines()) say(line);
  const corpus = await makePeerCorpus(rows);
  const reports: PeerReport[] = [];
  for (const peer of peers.filter(({ name }) => only?.includes(name.toLowerCase()) ?? true)) {
    const report = await askPeer(peer, corpus, times);
    say(
      `\n${peer.name}: ${report.skipped === null ? `${report.version}; ${peer.about}` : `skipped: ${report.skipped}`}`,
    );
    for (const wrong of report.wrong) say(`    WRONG ${wrong}`);
    reports.push(report);
  }
  const result: PeersResult = {
    format: peersFormat,
    began: new Date().toISOString(),
    machine: machineFacts(),
    rows,
    isQuick,
    reports,
  };
  for (const line of peersTable(result)) say(line);
  const folder = resolve(textOption('out') ?? 'load-tests/results');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, peersFile), `${JSON.stringify(result)}\n`);
  const own = reports.find(({ name }) => name === tidebase.name);
  return own === undefined || (own.wrong.length === 0 && (own.recall ?? 0) >= recallMin) ? 0 : 1;
}

process.exitCode = await main();
