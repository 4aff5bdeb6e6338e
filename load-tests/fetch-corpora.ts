/**
 * `npm run corpora`: gets the Debian packages that the corpora are made of, unpacks them below the temporary folder, and
 * makes folders of plain text. Installs nothing and needs no rights; what is there already is not got again. Ends with 1
 * where a package cannot be had or a corpus is smaller than the judging wants.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type CorpusName,
  corporaFolder,
  corpusNames,
  kernelPackage,
  kernelRoot,
  kernelTarball,
  madeBytes,
  madeMark,
  type Part,
  packageNames,
  recipes,
  textsFolder,
} from './corpora.ts';
import { filesBelow } from './corpus.ts';
import { piecesOf, plainText } from './plain-text.ts';

const bytesMin = 50e6;
const packages = join(corporaFolder, 'packages');
const unpacked = join(corporaFolder, 'unpacked');
const say = (line: string) => process.stdout.write(`${line}\n`);

function main(): boolean {
  for (const name of corpusNames.filter((each) => !existsSync(madeMark(each)))) {
    getPackages(recipes[name].map((part) => part.package));
    make(name);
  }
  for (const name of corpusNames) {
    say(`${name.padEnd(8)} ${(madeBytes(name) / 1e6).toFixed(1)} MB in ${textsFolder(name)}`);
  }
  return corpusNames.every((name) => madeBytes(name) >= bytesMin);
}

function getPackages(wanted: readonly string[]): void {
  const missing = packageNames.filter((name) => wanted.includes(name) && !existsSync(join(unpacked, name)));
  if (missing.length === 0) return;
  mkdirSync(packages, { recursive: true });
  say(`apt-get download ${missing.join(' ')}`);
  run('apt-get', ['download', '-q', ...missing], packages, 'is the list of packages there? apt-get update');
  for (const name of missing) {
    const file = readdirSync(packages).find((each) => each.startsWith(`${name}_`)) ?? name;
    // A name that is there is a package that was unpacked to its end.
    const half = join(unpacked, `${name}.half`);
    rmSync(half, { recursive: true, force: true });
    mkdirSync(half, { recursive: true });
    run('dpkg-deb', ['-x', join(packages, file), half], packages);
    if (name === kernelPackage) unpackKernel(half);
    run('mv', [half, join(unpacked, name)], packages);
    rmSync(join(packages, file));
  }
}

function unpackKernel(folder: string): void {
  const folders = corpusNames
    .flatMap((name): readonly Part[] => recipes[name])
    .filter((part) => part.package === kernelPackage)
    .flatMap((part) => part.folders.map((each) => `${kernelRoot}/${each.split('/')[0]}`));
  run('tar', ['-xJf', join(folder, kernelTarball), '-C', folder, ...new Set(folders)], folder);
  rmSync(join(folder, kernelTarball));
}

function run(program: string, args: readonly string[], cwd: string, advice = ''): void {
  const { status, error } = spawnSync(program, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  if (error !== undefined || status !== 0) {
    throw new Error(`${program} ${args[0]} ended with ${error?.message ?? status}. ${advice}`);
  }
}

function make(name: CorpusName): void {
  const to = textsFolder(name);
  rmSync(to, { recursive: true, force: true });
  let bytes = 0;
  for (const part of recipes[name]) {
    const root = join(unpacked, part.package, part.package === kernelPackage ? kernelRoot : '');
    for (const folder of part.folders)
      bytes += makeFolder({ root, folder, part, to: join(to, part.package) });
  }
  writeFileSync(madeMark(name), String(bytes));
}

function makeFolder(from: {
  readonly root: string;
  readonly folder: string;
  readonly part: Part;
  readonly to: string;
}): number {
  let bytes = 0;
  for (const path of filesBelow(join(from.root, from.folder)).filter((each) =>
    from.part.endings.test(each),
  )) {
    const plain = plainText(path, readFileSync(join(from.root, from.folder, path)));
    if (plain === null) continue;
    const file = join(from.to, from.folder, plain.path);
    mkdirSync(dirname(file), { recursive: true });
    piecesOf(plain.text).forEach((piece, i) => {
      writeFileSync(i === 0 ? file : `${file}~${i}`, piece);
      bytes += piece.length;
    });
  }
  return bytes;
}

process.exitCode = main() ? 0 : 1;
