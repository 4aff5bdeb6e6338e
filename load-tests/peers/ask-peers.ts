import { median } from '../bench-report.ts';
import {
  NotHere,
  type OpenPeer,
  type Peer,
  type PeerAnswer,
  type Question,
  type QuestionKind,
} from './peer.ts';
import type { PeerCorpus } from './peer-corpus.ts';

/** What came of one program. */
export interface PeerReport {
  readonly name: string;
  readonly about: string;
  readonly version: string;
  /** Why it was not asked; null where it was. */
  readonly skipped: string | null;
  /** From nothing to ready: its start, all rows, its indexes. */
  readonly loadSeconds: number;
  /** The median of all askings of a kind, in milliseconds. */
  readonly medianMs: Partial<Readonly<Record<QuestionKind, number>>>;
  /** The share of the true nearest that it found; null where it was not asked. */
  readonly recall: number | null;
  /** Answers that are not true, each in words. */
  readonly wrong: readonly string[];
}

/** Gives a program the rows, asks everything that it can be asked, one at a time, and ends it. */
export async function askPeer(peer: Peer, corpus: PeerCorpus, times: number): Promise<PeerReport> {
  const { name, about } = peer;
  const nothing = { name, about, version: '', loadSeconds: 0, medianMs: {}, recall: null, wrong: [] };
  const began = performance.now();
  let open: OpenPeer;
  try {
    open = await peer.open(corpus);
  } catch (error) {
    if (error instanceof NotHere) return { ...nothing, skipped: error.message };
    throw error;
  }
  const loadSeconds = (performance.now() - began) / 1_000;
  try {
    return {
      ...nothing,
      version: open.version,
      skipped: null,
      loadSeconds,
      ...(await askAll(open, corpus, times)),
    };
  } finally {
    await open.close();
  }
}

async function askAll(
  peer: OpenPeer,
  { questions }: PeerCorpus,
  times: number,
): Promise<Pick<PeerReport, 'medianMs' | 'recall' | 'wrong'>> {
  const took = new Map<QuestionKind, number[]>();
  const recalls: number[] = [];
  const wrong: string[] = [];
  for (const question of questions.filter(({ kind }) => peer.kinds.includes(kind))) {
    const answer = await peer.ask(question);
    if (question.vector !== undefined) recalls.push(recallOf(answer, question.expected));
    else if (!isSame(answer, question.expected))
      wrong.push(`${wordsOf(question)}: ${shown(answer)}, not ${shown(question.expected)}`);
    const known = took.get(question.kind) ?? [];
    for (let time = 0; time < times; time++) {
      const began = performance.now();
      await peer.ask(question);
      known.push(performance.now() - began);
    }
    took.set(question.kind, known);
  }
  return {
    medianMs: Object.fromEntries([...took].map(([kind, all]) => [kind, median(all)])),
    recall: recalls.length === 0 ? null : recalls.reduce((sum, each) => sum + each, 0) / recalls.length,
    wrong,
  };
}

function isSame(answer: PeerAnswer, expected: PeerAnswer): boolean {
  return JSON.stringify(answer) === JSON.stringify(expected);
}

function recallOf(answer: PeerAnswer, expected: PeerAnswer): number {
  if (typeof answer === 'number' || typeof expected === 'number') return Number.NaN;
  const found = new Set(answer);
  return expected.filter((id) => found.has(id)).length / expected.length;
}

function wordsOf({ kind, text, regex, columns }: Question): string {
  return [kind, text, regex, columns === undefined ? undefined : JSON.stringify(columns)]
    .filter(Boolean)
    .join(' ');
}

const shown = (answer: PeerAnswer) => JSON.stringify(answer).slice(0, 60);
