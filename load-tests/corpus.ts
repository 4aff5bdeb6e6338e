import { isUtf8 } from 'node:buffer';
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { limits } from '../protocol/limits.ts';

/** Real files to load: those of an installed node_modules that people wrote or could read. */
const extensions = new Set(
  '.js .cjs .mjs .ts .cts .mts .md .json .map .c .cc .cpp .h .py .html .txt .d'.split(' '),
);

export interface Corpus {
  readonly folder: string;
  readonly files: number;
  readonly bytes: number;
  /** Bytes of each file that can be a document. */
  readonly texts: ReadonlyMap<string, Buffer>;
}

/** Copies a folder's text files to another folder, which stays as it is while others install packages. */
export function copyCorpus(from: string, to: string): void {
  for (const path of textFilesBelow(from)) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    copyFileSync(join(from, path), join(to, path));
  }
}

/** Paths within the folder. */
export function textFilesBelow(folder: string): string[] {
  return filesBelow(folder).filter((path) => extensions.has(extname(path)));
}

/** Everything that is to be a document, judged by this file's own reading of the rules. */
export function readCorpus(folder: string): Corpus {
  return readFiles(folder, filesBelow(folder));
}

/** The same of some files of the folder. */
export function readFiles(folder: string, paths: readonly string[]): Corpus {
  const texts = new Map<string, Buffer>();
  let bytes = 0;
  for (const path of paths) {
    const text = readFileSync(join(folder, path));
    bytes += text.byteLength;
    const isDocument = text.byteLength <= limits.documentTextBytesMax && isUtf8(text);
    if (isDocument && Buffer.byteLength(path) <= limits.documentIdBytesMax) texts.set(path, text);
  }
  return { folder, files: paths.length, bytes, texts };
}

/** Paths of all files within the folder; links are left out. */
export function filesBelow(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(root, path);
    return entry.isFile() ? [path] : [];
  });
}
