/** Files of Debian's packages in a folder of their own, for programs that are asked and not installed. Kept for later runs. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keptFolder } from '../kept-folder.ts';

const run = promisify(execFile);
const getMsMax = 120_000;

export interface DebianPackages {
  readonly packages: readonly string[];
  /** Another release than this machine's, such as `trixie`. */
  readonly release?: string;
}

/** Resolves with the folder in which they are unpacked. Rejects where apt can't get them. */
export async function debianFiles(name: string, { packages, release }: DebianPackages): Promise<string> {
  const folder = join(keptFolder('tidebase-peers'), `debian-${name}`);
  const root = join(folder, 'root');
  const mark = join(folder, 'unpacked');
  if (existsSync(mark)) return root;
  mkdirSync(folder, { recursive: true });
  const options = release === undefined ? [] : await indexOf(folder, release);
  await run('apt-get', [...options, 'download', ...packages], { cwd: folder, timeout: getMsMax });
  for (const file of readdirSync(folder).filter((each) => each.endsWith('.deb')))
    await run('dpkg-deb', ['-x', join(folder, file), root]);
  writeFileSync(mark, packages.join(' '));
  return root;
}

/** Gets a release's list of packages into a folder, and answers apt's options for it. This machine's own lists stay as they are. */
async function indexOf(folder: string, release: string): Promise<string[]> {
  const sources = join(folder, 'sources.list');
  for (const part of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(folder, part), { recursive: true });
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(sources, `deb [signed-by=${keyring}] http://deb.debian.org/debian ${release} main\n`);
  const options = [
    `Dir::Etc::sourcelist=${sources}`,
    'Dir::Etc::sourceparts=-',
    `Dir::State=${join(folder, 'state')}`,
    'Dir::State::status=/dev/null',
    `Dir::Cache=${join(folder, 'cache')}`,
  ].flatMap((option) => ['-o', option]);
  await run('apt-get', [...options, 'update'], { timeout: getMsMax });
  return options;
}
