/**
 * Lines that services write, each with a meta of four keys: about 350 bytes of 45 words. Every word of a line is drawn by itself, by one chance, so
 * no word keeps to some part of the lines; a phrase of two frequent words stands in every 24th line or so, by chance too.
 */
import { seededRandom } from '../seeded-random.ts';

export interface ServiceLine {
  readonly id: string;
  readonly text: string;
  readonly meta: ServiceMeta;
}

export interface ServiceMeta {
  /** Some 833 lines have the same. */
  readonly host: string;
  readonly level: string;
  /** A whole number under 100,000, each as often. */
  readonly took: number;
  readonly region: string;
}

const lineWords = 45;
const vocabularySize = 20_000;
const phraseShare = 1 / 24;
const linesPerHost = 833;
export const tookBound = 100_000;
const levels = ['error', 'info', 'warn', 'info'] as const;
const regions = ['eu-1', 'eu-2', 'us-1', 'ap-1'] as const;
const syllables = 'ba co di fe gu ha jo ki la me no pu ra se ti vo wa xe yo zu'.split(' ');

/** Its words are frequent ones, which most often stand apart. */
export const phrase = `${wordOf(9)} ${wordOf(14)}`;
/** Stands in one line of five, more or less. */
export const frequentWord = wordOf(60);

export function* serviceLines(count: number, seed: number): Generator<ServiceLine, undefined> {
  const random = seededRandom(seed);
  const words = Array.from({ length: vocabularySize }, (_, rank) => wordOf(rank));
  const hosts = hostsOf(count);
  const below = (bound: number) => Math.floor(random() * bound);
  for (let i = 0; i < count; i++) {
    // A power: words of low rank are frequent, and no word is in nearly all lines.
    const line = Array.from({ length: lineWords }, () => words[Math.floor(random() ** 3 * vocabularySize)]);
    if (random() < phraseShare) line[below(lineWords)] = phrase;
    yield {
      id: `line-${String(i).padStart(8, '0')}`,
      text: line.join(' '),
      meta: {
        host: `h${below(hosts)}`,
        level: levels[below(levels.length)] as string,
        took: below(tookBound),
        region: regions[below(regions.length)] as string,
      },
    };
  }
  return undefined;
}

export function hostsOf(lines: number): number {
  return Math.max(30, Math.round(lines / linesPerHost));
}

function wordOf(rank: number): string {
  let word = '';
  let left = rank + syllables.length;
  do {
    word += syllables[left % syllables.length];
    left = Math.floor(left / syllables.length);
  } while (left > 0);
  return word;
}
