/** The files of `npm run measure -- filter-speed`, and what is true of the lines in them. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { phrase, type ServiceLine, serviceLines } from './corpus/service-lines.ts';

export interface LineFiles {
  /** NDJSON to import, each of at most `rowsPerImport` rows. */
  readonly imports: readonly string[];
  /** The texts of all lines, for ripgrep: as many files as make its threads equally busy. */
  readonly texts: string;
}

const rowsPerImport = 250_000;
const textFiles = 16;
const linesPerWrite = 2_000;

/** Writes the first `stored` of the lines as files to import, and the texts of all of them. */
export function writeLines(
  folder: string,
  { documents, stored, seed }: { readonly documents: number; readonly stored: number; readonly seed: number },
): LineFiles {
  const texts = join(folder, 'texts');
  mkdirSync(texts);
  const imports: string[] = [];
  let pending: ServiceLine[] = [];
  let number = 0;
  let importing = -1;
  const flush = () => {
    const text = openSync(join(texts, `${((number / linesPerWrite) % textFiles) | 0}.txt`), 'a');
    writeSync(text, pending.map((line) => `${line.text}\n`).join(''));
    closeSync(text);
    const rows = pending.slice(0, Math.max(0, stored - number));
    if (rows.length > 0) {
      if (number % rowsPerImport === 0) {
        if (importing >= 0) closeSync(importing);
        imports.push(join(folder, `lines-${imports.length}.ndjson`));
        importing = openSync(imports.at(-1) as string, 'w');
      }
      writeSync(importing, rows.map((line) => `${rowJson(line)}\n`).join(''));
    }
    number += pending.length;
    pending = [];
  };
  for (const line of serviceLines(documents, seed)) if (pending.push(line) === linesPerWrite) flush();
  flush();
  if (importing >= 0) closeSync(importing);
  return { imports, texts };
}

function rowJson({ id, text, meta }: ServiceLine): string {
  return JSON.stringify({ id, text, ...meta });
}

/** What a question asks, and which lines are its answer. */
export interface Question {
  readonly name: string;
  readonly request: {
    readonly q?: string;
    readonly filter?: Readonly<Record<string, unknown>>;
    readonly exact?: boolean;
  };
  readonly holds: (line: ServiceLine) => boolean;
  /** The same to DuckDB, which has the metas; null where it asks for texts. */
  readonly sql: string | null;
  /** Whether ripgrep is asked for `q`. */
  readonly asksRipgrep: boolean;
  readonly barMs: number;
}

/** How many of the first `lines` lines each of the questions finds. */
export function countAnswers(
  questions: readonly Question[],
  { documents, lines, seed }: { readonly documents: number; readonly lines: number; readonly seed: number },
): number[] {
  const counts = questions.map(() => 0);
  let number = 0;
  for (const line of serviceLines(documents, seed)) {
    if (number++ === lines) break;
    questions.forEach(({ holds }, at) => {
      if (holds(line)) (counts[at] as number)++;
    });
  }
  return counts;
}

export const hasPhrase = ({ text }: ServiceLine): boolean => text.includes(phrase);
