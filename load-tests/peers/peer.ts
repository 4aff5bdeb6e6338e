import type { PeerCorpus } from './peer-corpus.ts';

/** What may be asked; not every program can be asked everything. */
export const questionKinds = {
  rare: 'count the lines with a text that one line has',
  word: 'count the lines with a word that one in a hundred has',
  regex: 'count the lines that match a regular expression',
  filter: 'count the rows by two columns',
  both: 'count the lines with that word and a column’s value',
  groups: 'count the rows of each host',
  nearest: 'the ten nearest of a vector',
} as const;
export type QuestionKind = keyof typeof questionKinds;

/** A question in the terms that every program has words for. */
export interface Question {
  readonly kind: QuestionKind;
  readonly text?: string;
  readonly regex?: string;
  readonly columns?: Readonly<Record<string, string | number>>;
  readonly vector?: Float32Array;
  /** What is true: a count; of `groups` the counts by host; of `nearest` the ids, the nearest first. */
  readonly expected: PeerAnswer;
}

export type PeerAnswer = number | readonly string[];

/** A program that the same rows are given and the same questions asked. */
export interface Peer {
  readonly name: string;
  /** How it is asked, for people. */
  readonly about: string;
  /** Starts it and gives it the rows. Throws `NotHere` where it can't be had on this machine. */
  open(corpus: PeerCorpus): Promise<OpenPeer>;
}

export interface OpenPeer {
  readonly version: string;
  /** What it can be asked. */
  readonly kinds: readonly QuestionKind[];
  /** One question, from asking to the whole answer. Throws for a kind that is not among its own. */
  ask(question: Question): Promise<PeerAnswer>;
  /** Ends whatever it started. */
  close(): Promise<void>;
}

/** The program can't be had on this machine. The message is a sentence for a person. */
export class NotHere extends Error {
  override name = 'NotHere';
}

export function unasked({ kind }: Question): never {
  throw new Error(`it is not asked ${kind}`);
}
