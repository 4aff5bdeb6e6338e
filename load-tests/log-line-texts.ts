/**
 * Lines of a log as services write them: a time, a level, a host, ids, a path, and a message of words of which a few are
 * frequent and most are rare. About 300 bytes each; the same ones for the same chance.
 */
import type { Chance } from '../test/simulation/chance.ts';

/** Stands in one line of a hundred, and in no other. */
export const rareWord = 'quarantined';
/** Stands in most lines: the share of lines of the level INFO. */
export const frequentWord = 'INFO';
const rareShare = 0.01;

const levels = { INFO: 80, DEBUG: 10, WARN: 7, ERROR: 3 } as const;
const verbs = ['GET', 'POST', 'PUT', 'DELETE'] as const;
const resources = 'users orders invoices sessions carts payments shipments reports exports uploads'.split(
  ' ',
);
const syllables = 'ba co di fe gu ha jo ki la me no pu ra se ti vo wa xe yo zu'.split(' ');
const vocabularySize = 5_000;
const messageWords = 22;
const firstMs = Date.UTC(2026, 0, 1);
const linesPerSecond = 40;

export interface LogLine {
  readonly id: string;
  readonly text: string;
}

export function* logLines(count: number, chance: Chance): Generator<LogLine, undefined> {
  for (let i = 0; i < count; i++) yield { id: `line-${String(i).padStart(8, '0')}`, text: lineOf(i, chance) };
  return undefined;
}

/** What only the given line says: its trace. Needs the same chance as the lines had. */
export function traceOf({ text }: LogLine): string {
  return /trace=(\w+)/.exec(text)?.[1] ?? '';
}

const hex = (chance: Chance, digits: number) =>
  Array.from({ length: digits / 4 }, () => chance.integer(0, 0xffff).toString(16).padStart(4, '0')).join('');

function lineOf(i: number, chance: Chance): string {
  const time = new Date(firstMs + Math.floor((i * 1_000) / linesPerSecond)).toISOString();
  const host = `node-${String(chance.integer(1, 60)).padStart(2, '0')}.eu-${chance.integer(1, 3)}.example.net`;
  const path = `/v2/${chance.pick(resources)}/${chance.integer(1, 900_000)}/${chance.pick(resources)}`;
  const words = Array.from({ length: messageWords }, () => skewedWord(chance));
  if (chance.happens(rareShare)) words[chance.integer(0, words.length - 1)] = rareWord;
  return (
    `${time} ${chance.weighted(levels)} ${host} service=${chance.pick(resources)}-api pid=${chance.integer(300, 32_000)} ` +
    `trace=${hex(chance, 16)} ${chance.pick(verbs)} ${path} status=${chance.pick([200, 200, 200, 204, 304, 404, 500])} ` +
    `took_ms=${(chance.fraction() ** 4 * 2_000).toFixed(1)} msg="${words.join(' ')}"`
  );
}

/** By Zipf's law, roughly: the word of rank r about 1/r as often as the first. */
function skewedWord(chance: Chance): string {
  let rank = Math.floor(vocabularySize ** chance.fraction());
  let word = '';
  do {
    word += syllables[rank % syllables.length];
    rank = Math.floor(rank / syllables.length);
  } while (rank > 0);
  return `${word}n`;
}
