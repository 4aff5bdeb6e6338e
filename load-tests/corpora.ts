import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Corpus, filesBelow, readFiles } from './corpus.ts';
import { keptFolder } from './kept-folder.ts';
import { temporaryFolder } from './server.ts';

/**
 * Three corpora of real text out of Debian's packages (of Debian 12), the same bytes on every machine that has the same
 * versions of them. `npm run corpora` gets the packages and makes the folders; this file says what they consist of and
 * reads them.
 */
export interface Part {
  readonly package: string;
  /** Within the package, or within the tarball of sources that it holds. */
  readonly folders: readonly string[];
  /** The endings of file names that are taken. */
  readonly endings: RegExp;
}

/** Holds its files in a tarball, not as themselves. */
export const kernelPackage = 'linux-source-6.1';
export const kernelTarball = 'usr/src/linux-source-6.1.tar.xz';
export const kernelRoot = 'linux-source-6.1';

const kernel = (folders: string, endings: RegExp): Part => ({
  package: kernelPackage,
  folders: folders.split(' '),
  endings,
});
const pages = (name: string, folder: string, endings = /\.html$/): Part => ({
  package: name,
  folders: [folder],
  endings,
});
const handbook = 'usr/share/doc/debian-handbook/html';
const manual = /\.[1-9]\w*\.gz$/;
/** English is everywhere: only these catalogues are mostly of other letters. */
const catalogues = 'ar be bg bn el fa he hi hy ja ka ko mr ru sr ta te th uk zh_CN zh_TW';

const prose: readonly Part[] = [
  pages('anarchism', 'usr/share/doc/anarchism'),
  {
    package: 'debian-handbook',
    folders: ['en-US', 'de-DE', 'es-ES', 'fr-FR', 'it-IT', 'pt-BR'].map((each) => `${handbook}/${each}`),
    endings: /\.html$/,
  },
  pages('python3.11-doc', 'usr/share/doc/python3.11/html/_sources', /\.txt$/),
  pages('sqlite3-doc', 'usr/share/doc/sqlite3'),
  pages('postgresql-doc-15', 'usr/share/doc/postgresql-doc-15/html'),
  pages('perl-doc', 'usr/share', /\.(pod|pod\.gz|[1-9]\w*\.gz)$/),
  pages('erlang-doc', 'usr/share/doc/erlang-doc'),
  kernel('Documentation', /^(?!translations\/).*\.(rst|txt)$/),
];

const scripts: readonly Part[] = [
  ...['ja', 'ru', 'zh-cn', 'ko', 'el', 'hi'].map((each) =>
    pages(`libreoffice-help-${each}`, 'usr/share/libreoffice/help'),
  ),
  ...['ja', 'zh', 'ru'].map((each) => pages(`manpages-${each}`, 'usr/share/man', manual)),
  {
    package: 'debian-handbook',
    folders: ['ja-JP', 'ru-RU', 'zh-CN', 'zh-TW', 'ko-KR', 'ar-MA', 'fa-IR', 'el-GR', 'vi-VN'].map(
      (each) => `${handbook}/${each}`,
    ),
    endings: /\.html$/,
  },
  {
    package: 'iso-codes',
    folders: catalogues.split(' ').map((each) => `usr/share/locale/${each}`),
    endings: /\.mo$/,
  },
  pages(
    'unicode-data',
    'usr/share/unicode',
    /^(?:.*\/)?(?:NormalizationTest|CaseFolding|NamesList|emoji-test|Unihan_Readings)\.txt$/,
  ),
  kernel('Documentation/translations', /\.(rst|txt)$/),
];

export const recipes = {
  source: [
    kernel(
      'block crypto fs include init io_uring ipc kernel lib mm net security sound tools virt',
      /(?:\.(?:[chSs]|py|sh|pl|rs|lds|json|txt)|Makefile|Kconfig)$/,
    ),
  ],
  prose,
  unicode: scripts,
} as const satisfies Readonly<Record<string, readonly Part[]>>;
export type CorpusName = keyof typeof recipes;
export const corpusNames = Object.keys(recipes) as readonly CorpusName[];

export const packageNames: readonly string[] = [
  ...new Set(corpusNames.flatMap((name) => recipes[name].map((part) => part.package))),
];

/** Everything that is downloaded and made. `TMPDIR` moves it. */
export const corporaFolder = keptFolder('tidebase-corpora');
export const textsFolder = (name: CorpusName): string => join(corporaFolder, 'texts', name);
/** There when the corpus was made to its end, by this recipe. */
export const madeMark = (name: CorpusName): string =>
  join(corporaFolder, 'texts', `${name}.${digestOf(recipeText(name)).slice(0, 12)}`);

function recipeText(name: CorpusName): string {
  return recipes[name]
    .map((part) => [part.package, ...part.folders, part.endings.source].join(' '))
    .join('\n');
}

/**
 * The files of a corpus up to so many bytes, in an order that has nothing to do with their folders, so that a small part
 * of a corpus is like the whole. Throws where it is not on this machine.
 */
export function readCorpusOf(name: CorpusName, bytesMax: number): Corpus {
  if (!existsSync(madeMark(name))) {
    throw new Error(
      `the corpus "${name}" is not on this machine: npm run corpora (downloads ${packageNames.length} Debian packages, 300 MB)`,
    );
  }
  const folder = textsFolder(name);
  const paths: string[] = [];
  let bytes = 0;
  for (const path of filesBelow(folder).toSorted(byDigest())) {
    const size = statSync(join(folder, path)).size;
    if (bytes + size > bytesMax) continue;
    bytes += size;
    paths.push(path);
  }
  return readFiles(folder, paths);
}

/** The same files in a folder of their own, for programs that search folders. */
export function linkedFolder(corpus: Corpus): string {
  const to = temporaryFolder();
  for (const path of corpus.texts.keys()) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    linkSync(join(corpus.folder, path), join(to, path));
  }
  return to;
}

function byDigest(): (a: string, b: string) => number {
  const digests = new Map<string, string>();
  const of = (path: string) => {
    const known = digests.get(path) ?? digestOf(path);
    digests.set(path, known);
    return known;
  };
  return (a, b) => (of(a) < of(b) ? -1 : 1);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Bytes of a corpus as it was made. */
export function madeBytes(name: CorpusName): number {
  return Number(readFileSync(madeMark(name), 'utf8'));
}
