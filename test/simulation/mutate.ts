/** A mutation in a copy of the compiled tree, and what the simulation says to it. */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runJob } from './jobs.ts';
import type { Edit, Mutation, NoticingTest } from './mutations.ts';
import type { SeedViolation } from './seed-runs.ts';

export interface Caught {
  readonly mutation: Mutation;
  /** Seeds run; the last one caught it, where one did. */
  readonly seeds: number;
  readonly violation: SeedViolation | null;
  /** The test that noticed it, where a test and no seed does. */
  readonly test: string | null;
  readonly elapsedMs: number;
}

/** What a simulation is made of. */
const folders = ['actors', 'protocol', 'src', 'test/simulation', 'test/support'];
/** A test that takes longer has not failed of what it asserts. */
const testMsMax = 120_000;
const outShown = 4_000;

export async function catchMutation(mutation: Mutation, seeds: number, first = 1): Promise<Caught> {
  const began = performance.now();
  const folder = copyOfBuild();
  const { noticedBy } = mutation;
  const mutate = () => {
    for (const edit of editsOf(mutation)) mutateFile(join(folder, 'dist', edit.file), mutation.name, edit);
  };
  try {
    if (noticedBy !== undefined) {
      if (await failsIn(folder, noticedBy))
        throw new Error(`"${noticedBy.test}" fails where nothing is broken`);
      mutate();
      const test = (await failsIn(folder, noticedBy)) ? noticedBy.test : null;
      return { mutation, seeds: 0, violation: null, test, elapsedMs: performance.now() - began };
    }
    mutate();
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
      test: null,
      elapsedMs: performance.now() - began,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether the test, which passes where nothing is broken, fails there of what it asserts. */
function failsIn(folder: string, { file, test }: NoticingTest): Promise<boolean> {
  const compiled = join(folder, 'dist/test', `${file}.test.js`);
  const inside = join('test', dirname(file));
  cpSync(join(buildFolder, inside), join(folder, 'dist', inside), { recursive: true });
  const pattern = `^${test.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
  return new Promise((resolve, reject) => {
    const options = [
      '--test',
      '--test-force-exit',
      '--test-reporter=tap',
      `--test-name-pattern=${pattern}`,
      compiled,
    ];
    const child = spawn(process.execPath, options, {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: testMsMax,
    });
    let out = '';
    child.stdout.on('data', (data: Buffer) => {
      out += data.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const isPlayed = out.includes(`# Subtest: ${test}\n`);
      if (!isPlayed) reject(new Error(`"${test}" was not played:\n${out.slice(0, outShown)}`));
      else resolve(code !== 0 && out.includes('not ok'));
    });
  });
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
