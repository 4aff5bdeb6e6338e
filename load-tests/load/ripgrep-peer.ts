import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { missingPrograms } from '../outside-programs.ts';
import type { LoopRequest } from '../request-loop.ts';
import type { LogRows } from './log-rows.ts';
import type { Phase } from './scenario.ts';

const run = promisify(execFile);

export interface SearchedText {
  /** What it is called in the result. */
  readonly name: string;
  readonly ours: LoopRequest;
  /** What ripgrep is given for the same. */
  readonly options: readonly string[];
}

/**
 * The same searches of the same rows by ripgrep, which reads the file of them each time, its start included. Nothing where it is
 * not installed. Each must find something: ripgrep ends with 1 where nothing matches, and that fails the scenario.
 */
export function besideRipgrep({ file }: LogRows, searches: readonly SearchedText[]): readonly Phase[] {
  if (missingPrograms('rg').length > 0) return [];
  return [
    {
      kind: 'peer',
      name: 'ripgrep',
      questions: searches.map(({ name, ours, options }) => ({
        name,
        ours,
        theirs: () => run('rg', ['--no-config', '-c', ...options, file]),
      })),
      close: () => undefined,
    },
  ];
}
