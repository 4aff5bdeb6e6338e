import type { Chance } from '../test/simulation/chance.ts';
import { countMatching, quoted } from './re2-oracle.ts';
import type { SearchCase } from './search-cases.ts';

/**
 * Patterns of known frequency, found by counting in the texts: what a figure of speed is worth depends on how much there
 * is to find.
 */
export interface CountedPattern extends SearchCase {
  readonly documents: number;
}

export interface Patterns {
  readonly selectiveLiterals: readonly CountedPattern[];
  readonly selectiveRegexes: readonly CountedPattern[];
  readonly frequentWords: readonly CountedPattern[];
  /** A pattern of which no three bytes in a row are known. */
  readonly scanning: CountedPattern;
}

const selectiveMin = 1;
const selectiveMax = 30;
const frequentShare = 0.3;
const drawsMax = 400;
/** Documents from which frequent words are guessed before they are counted in all. */
const sampleDocuments = 300;

export function findPatterns(texts: readonly Buffer[], chance: Chance, perClass: number): Patterns {
  const literals = selective(texts, perClass, () => ({ query: longWord(texts, chance), isRegex: false }));
  const regexes = selective(texts, perClass, () => ({
    query: loosened(longWord(texts, chance)),
    isRegex: true,
  }));
  const scanning = { query: '[0-9]\\w[0-9]\\w[0-9]\\w[0-9]\\w[0-9]\\w[0-9]{6}q', isRegex: true };
  return {
    selectiveLiterals: literals,
    selectiveRegexes: regexes,
    frequentWords: frequent(texts, chance, perClass),
    scanning: { ...scanning, documents: countMatching(texts, scanning) },
  };
}

export function patternLine({ query, isRegex, documents }: CountedPattern): string {
  return `${isRegex ? `/${query}/` : JSON.stringify(query)} in ${documents}`;
}

function selective(texts: readonly Buffer[], wanted: number, draw: () => SearchCase): CountedPattern[] {
  const found = new Map<string, CountedPattern>();
  for (let tries = 0; tries < drawsMax && found.size < wanted; tries++) {
    const asked = draw();
    if (asked.query === '' || found.has(asked.query)) continue;
    const documents = countMatching(texts, asked);
    if (documents >= selectiveMin && documents <= selectiveMax)
      found.set(asked.query, { ...asked, documents });
  }
  if (found.size === 0) throw new Error('no selective pattern was found');
  return [...found.values()];
}

function longWord(texts: readonly Buffer[], chance: Chance): string {
  const text = chance.pick(texts);
  const at = chance.integer(0, Math.max(0, text.length - 4_000));
  const words = text.toString('latin1', at, at + 4_000).match(/\b[A-Za-z][A-Za-z0-9_]{11,30}\b/g) ?? [];
  return words.length === 0 ? '' : chance.pick(words);
}

/** A pattern for the word and others like it: its middle may be other letters. */
function loosened(word: string): string {
  if (word === '') return '';
  const third = Math.floor(word.length / 3);
  return `${quoted(word.slice(0, third + 2))}[A-Za-z0-9_]*${quoted(word.slice(-third))}\\b`;
}

function frequent(texts: readonly Buffer[], chance: Chance, wanted: number): CountedPattern[] {
  const counts = new Map<string, number>();
  for (let i = 0; i < sampleDocuments; i++) {
    const words = new Set(
      chance
        .pick(texts)
        .toString('latin1')
        .match(/[A-Za-z]{4,}/g) ?? [],
    );
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const candidates = [...counts]
    .filter(([, count]) => count > sampleDocuments * frequentShare)
    .map(([word]) => word);
  const found: CountedPattern[] = [];
  // By chance: the most frequent ones all stand in every file's first line.
  while (candidates.length > 0 && found.length < wanted) {
    const [query = ''] = candidates.splice(chance.integer(0, candidates.length - 1), 1);
    const documents = countMatching(texts, { query, isRegex: false });
    if (documents > texts.length * frequentShare) found.push({ query, isRegex: false, documents });
  }
  if (found.length === 0) throw new Error(`no word stands in ${frequentShare * 100} % of the documents`);
  return found;
}
