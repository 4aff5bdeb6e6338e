import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder, wherever the compiled tests are: above them, else the folder the command was started in. */
export function repositoryRoot(): string {
  const isRoot = (folder: string) =>
    existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'test/run.ts'));
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (isRoot(folder)) return folder;
    if (dirname(folder) === folder) break;
  }
  if (isRoot(process.cwd())) return process.cwd();
  throw new Error(`no repository above ${fileURLToPath(import.meta.url)} nor at ${process.cwd()}`);
}

/** Path from the root, with slashes, to the file's text. */
export type Sources = ReadonlyMap<string, string>;

const sourceFolders = ['protocol', 'src', 'actors', 'test', 'load-tests'];

/** Every TypeScript file of ours, in the order of their paths; declarations of other people's modules are left out. */
export function readSources(root: string): Sources {
  const paths = sourceFolders.flatMap((folder) => filesUnder(root, folder));
  const ours = paths.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts')).toSorted();
  return new Map(ours.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

/** Paths of all files of a folder and those below it; none where there is no such folder. */
export function filesUnder(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesUnder(root, path) : [path];
  });
}
