/** A mutation in a copy of the compiled tree, and what the simulation says to it. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runJob } from './jobs.ts';
import type { Edit, Mutation } from './mutations.ts';
import type { SeedViolation } from './seed-runs.ts';

export interface Caught {
  readonly mutation: Mutation;
  /** Seeds run; the last one caught it, where one did. */
  readonly seeds: number;
  readonly violation: SeedViolation | null;
  readonly elapsedMs: number;
}

/** What a simulation is made of. */
const folders = ['actors', 'protocol', 'src', 'test/simulation', 'test/support'];

export async function catchMutation(mutation: Mutation, seeds: number, first = 1): Promise<Caught> {
  const began = performance.now();
  const folder = copyOfBuild();
  try {
    for (const edit of editsOf(mutation)) mutateFile(join(folder, 'dist', edit.file), mutation.name, edit);
    const program = join(folder, 'dist/test/simulation/simulate.js');
    const servers = ['--servers', String(mutation.servers ?? 1)];
    const options = [
      ...servers,
      '--job',
      '--until-violation',
      '--first',
      String(first),
      '--seeds',
      String(seeds),
    ];
    const summary = await runJob(program, options);
    return {
      mutation,
      seeds: summary.seeds,
      violation: summary.violations[0] ?? null,
      elapsedMs: performance.now() - began,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function editsOf(mutation: Mutation): readonly Edit[] {
  return [mutation, ...(mutation.also ?? [])];
}

/** Throws where the text is not there, or twice: the protocol has changed, and the mutation must follow. */
export function mutateText(text: string, name: string, { find, replace }: Edit): string {
  const pieces = text.split(find);
  if (pieces.length !== 2) throw new Error(`${name}: its text is there ${pieces.length - 1} times`);
  return pieces.join(replace);
}

function mutateFile(path: string, name: string, edit: Edit): void {
  writeFileSync(path, mutateText(readFileSync(path, 'utf8'), name, edit));
}

/** The root of the compiled tree. */
export const buildFolder = fileURLToPath(new URL('../..', import.meta.url));

function copyOfBuild(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-mutation-'));
  const root = join(buildFolder, '..');
  for (const part of folders)
    cpSync(join(buildFolder, part), join(folder, 'dist', part), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  if (existsSync(join(root, 'node_modules')))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}
