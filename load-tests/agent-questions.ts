import { readFileSync } from 'node:fs';

/** The questions of an agent's day: a person's sentence, and what it asks for. `agent-questions.json` has them. */
export type Question = { readonly ask: string } & (
  | { readonly kind: 'definition' | 'struct' | 'macro' | 'depends' | 'body'; readonly of: string }
  | { readonly kind: 'files-with'; readonly words: readonly string[]; readonly folder?: string }
  | { readonly kind: 'files-in'; readonly folder: string }
  | { readonly kind: 'lines'; readonly file: string; readonly from: number; readonly to: number }
  | { readonly kind: 'fullest-folder'; readonly by: 'files' | 'bytes' }
  | { readonly kind: 'count'; readonly pattern: string; readonly isRegex?: boolean }
  | { readonly kind: 'largest' | 'average-size'; readonly extension: string }
  | { readonly kind: 'extensions' }
  | { readonly kind: 'function-of'; readonly message: string }
  | { readonly kind: 'includes'; readonly file: string }
);

export function readQuestions(): readonly Question[] {
  return JSON.parse(readFileSync('load-tests/agent-questions.json', 'utf8')) as Question[];
}
