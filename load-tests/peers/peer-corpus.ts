/** The rows that every program of `npm run peers` is given, and the questions with their true answers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../src/base/assert.ts';
import { writeLogRows } from '../load/log-rows.ts';
import { rareWord } from '../log-line-texts.ts';
import { temporaryFolder } from '../server.ts';
import { clusteredVectors, rowOf, trueNeighbours, type VectorRows } from '../vector-set.ts';
import type { Question } from './peer.ts';

export interface PeerRow {
  readonly id: string;
  readonly text: string;
  readonly level: string;
  readonly host: string;
  readonly status: number;
  readonly took_ms: number;
}

export interface PeerCorpus {
  readonly rows: readonly PeerRow[];
  /** A row a line, as JSON. */
  readonly file: string;
  /** A text a line. */
  readonly textFile: string;
  /** A vector for each row. */
  readonly vectors: VectorRows;
  readonly questions: readonly Question[];
}

const dims = 128;
const seed = 20_260_101;
const variants = 5;
export const nearestWanted = 10;
const regexes = [
  'took_ms=19[0-9]{2}\\.',
  'took_ms=18[5-9][0-9]\\.',
  'pid=3000[0-9] ',
  'POST /v2/users/[0-9]{1,3}/',
  'node-0[1-3].*status=500 took_ms=1[0-9]{3}',
];

export async function makePeerCorpus(count: number): Promise<PeerCorpus> {
  const { file, traces } = await writeLogRows(count);
  const rows = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as PeerRow);
  const textFile = join(temporaryFolder(), 'texts.log');
  writeFileSync(textFile, `${rows.map(({ text }) => text).join('\n')}\n`);
  const vectors = clusteredVectors(count + variants, dims, seed);
  return { rows, file, textFile, vectors, questions: questionsOf(rows, traces, vectors) };
}

function questionsOf(rows: readonly PeerRow[], traces: readonly string[], vectors: VectorRows): Question[] {
  const countOf = (keeps: (row: PeerRow) => boolean) => rows.filter(keeps).length;
  const upTo = Array.from({ length: variants }, (_, at) => at);
  const live = Int32Array.from(rows, (_, at) => at);
  return [
    ...upTo.map((at): Question => {
      const text = must(traces[at * 7], 'a trace');
      return { kind: 'rare', text, expected: countOf((row) => row.text.includes(text)) };
    }),
    { kind: 'word', text: rareWord, expected: countOf(({ text }) => text.includes(rareWord)) },
    ...regexes.map((regex): Question => {
      const pattern = new RegExp(regex);
      return { kind: 'regex', regex, expected: countOf(({ text }) => pattern.test(text)) };
    }),
    ...upTo.map((at): Question => {
      const columns = { host: `node-${at * 11 + 1}`, status: 500 };
      const expected = countOf(({ host, status }) => host === columns.host && status === columns.status);
      return { kind: 'filter', columns, expected };
    }),
    ...upTo.map((at): Question => {
      const columns = { level: ['INFO', 'DEBUG', 'WARN', 'ERROR', 'INFO'][at] ?? '' };
      const expected = countOf(({ text, level }) => text.includes(rareWord) && level === columns.level);
      return { kind: 'both', text: rareWord, columns, expected };
    }),
    { kind: 'groups', expected: groupsOf(rows) },
    ...upTo.map((at): Question => {
      const vector = rowOf(vectors, rows.length + at);
      const [near = []] = trueNeighbours(vectors, live, vector, {
        count: nearestWanted,
        selections: [() => true],
      });
      return {
        kind: 'nearest',
        vector,
        expected: near.map(({ document }) => must(rows[document], 'a row').id),
      };
    }),
  ];
}

/** `HOST COUNT` of each, sorted. */
function groupsOf(rows: readonly PeerRow[]): string[] {
  const counts = new Map<string, number>();
  for (const { host } of rows) counts.set(host, (counts.get(host) ?? 0) + 1);
  return [...counts].map(([host, count]) => `${host} ${count}`).sort();
}

export function vectorAt({ vectors }: PeerCorpus, row: number): number[] {
  return [...rowOf(vectors, row)];
}
