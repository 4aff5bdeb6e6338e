/**
 * The rules of what is written in Markdown and in comments: README stays short and leads to every decision, links lead to
 * files, and nothing rests on pages outside the repository. Each is a pure function from texts to sentences, one a violation.
 */
import { dirname, join, normalize } from 'node:path';

export type Texts = ReadonlyMap<string, string>;

const readmeLinesMax = 150;
/** A line that is longer hides what the limit of lines is for. */
const readmeLineCharactersMax = 140;
/** Pages that were beside the repository when parts of it were written. */
const outsidePages = /\b(?:service|decisions|house|isolation)\.md\b/;

/** README has too many lines, or lines that are too long to read. */
export function readmeLengthProblems(readme: string): string[] {
  const lines = readme.trimEnd().split('\n');
  const tooLong = lines.flatMap((line, i) =>
    line.length > readmeLineCharactersMax
      ? [`README.md:${i + 1}: has ${line.length} characters, of ${readmeLineCharactersMax}`]
      : [],
  );
  if (lines.length <= readmeLinesMax) return tooLong;
  return [
    `README.md: has ${lines.length} lines, of ${readmeLinesMax}; move something to the README of its room`,
    ...tooLong,
  ];
}

/** A link of a document, from its own folder, that leads to no file or folder of the repository. */
export function deadLinkProblems(documents: Texts, exists: (path: string) => boolean): string[] {
  return [...documents].flatMap(([path, text]) =>
    linksOf(text)
      .filter((link) => !exists(normalize(join(dirname(path), link))))
      .map((link) => `${path}: links to ${link}, which is not there`),
  );
}

/** A link of a document to a heading that the document at its end does not have. */
export function deadPlaceProblems(documents: Texts): string[] {
  const places = new Map([...documents].map(([path, text]) => [path, placesOf(text)]));
  return [...documents].flatMap(([path, text]) =>
    [...proseOf(text).matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)].flatMap(([, file = '', place = '']) => {
      const target = file === '' ? path : normalize(join(dirname(path), file));
      return places.get(target)?.has(place) === false
        ? [`${path}: links to #${place}, and ${target} has no such heading`]
        : [];
    }),
  );
}

/** Headings as links name them: small letters, hyphens for spaces, no punctuation. */
function placesOf(text: string): ReadonlySet<string> {
  return new Set(
    [...proseOf(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** How documents name a file, and how comments do. */
export const namedFiles = {
  documents: /`([\w.-][\w./-]*\.(?:ts|sh|json|md))`/g,
  comments: /(?<![\w./*-])(\w[\w./-]*\.(?:ts|sh|md))\b/g,
} as const;

/**
 * A file that a document or a comment names and that is not there. Names are given from the root, from the text's own folder or from
 * one above it, or from a side of the house; a file whose folder was just named, by its name alone.
 */
export function lostFileProblems(texts: Texts, paths: readonly string[], named: RegExp): string[] {
  const files = new Set(paths);
  const names = new Set(paths.map((path) => path.slice(path.lastIndexOf('/') + 1)));
  const isThere = (name: string, from: string): boolean => {
    if (!name.includes('/') && names.has(name)) return true;
    if (files.has(`actors/${name}`) || files.has(`src/${name}`)) return true;
    for (let folder = dirname(from); ; folder = dirname(folder)) {
      if (files.has(normalize(join(folder, name)))) return true;
      if (folder === '.') return false;
    }
  };
  return [...texts].flatMap(([path, text]) =>
    [...text.matchAll(named)]
      .filter(([, name = '']) => !isThere(name, path))
      .map(([, name]) => `${path}: names ${name}, which is not there`),
  );
}

/** A name of the code, such as `runSearch` or `Page.take`, that a document has and no source any more. */
export function lostNameProblems(documents: Texts, sources: Texts): string[] {
  const words = new Set([...sources.values()].flatMap((text) => text.match(/[\w$]+/g) ?? []));
  return [...documents].flatMap(([path, text]) =>
    [...proseOf(text).matchAll(/`#?((?:\w+\.)*\w+)`/g)]
      .flatMap(([, name = '']) => name.split('.'))
      .filter((word) => /[a-z][A-Z]/.test(word) && !words.has(word))
      .map((word) => `${path}: names ${word}, which no source has`),
  );
}

/** A document with decisions that README does not link to, so that nobody finds them. */
export function lostDecisionProblems(documents: Texts): string[] {
  const linked = new Set(linksOf(documents.get('README.md') ?? '').map((link) => normalize(link)));
  return [...documents]
    .filter(([path, text]) => path !== 'README.md' && /^## Decisions$/m.test(text) && !linked.has(path))
    .map(([path]) => `${path}: has decisions and README.md has no link to it; name them in its index`);
}

/** A document or source that cites a page outside the repository: a reader cannot open it. */
export function outsidePageProblems(texts: Texts): string[] {
  return [...texts].flatMap(([path, text]) =>
    text.split('\n').flatMap((line, i) => {
      const [page] = outsidePages.exec(line) ?? [];
      return page === undefined ? [] : [`${path}:${i + 1}: cites ${page}; say the rule itself`];
    }),
  );
}

/** Where links lead that stay inside the repository, without the place within the document. */
function linksOf(text: string): string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link));
}

/** A document without its examples of code. */
function proseOf(text: string): string {
  return text.replace(/^ *```[\s\S]*?^ *```$/gm, '');
}

/**
 * What protocol/FORMATS.md does not show: a format of version.ts with its number, or a magic (a text such as `TBMF`) that the
 * sources have.
 */
export function unshownFormatProblems(
  page: string,
  versions: Readonly<Record<string, number>>,
  sources: Texts,
): string[] {
  const rows = Object.entries(versions)
    .filter(([name, version]) => !page.includes(`| \`${name}\` | ${version} |`))
    .map(([name, version]) => `protocol/FORMATS.md: has no row \`${name}\` | ${version} in its versions`);
  const magics = [...sources].flatMap(([path, text]) =>
    [...text.matchAll(/['"](TB[A-Z0-9]{2})['"]/g)]
      .filter(([, magic]) => !page.includes(`\`${magic}\``))
      .map(([, magic]) => `${path}: writes ${magic}, which protocol/FORMATS.md does not show`),
  );
  return [...rows, ...magics];
}

/**
 * Doc comments that begin with "Of": they lean on a noun of another line, which an editor's hover does not show. `rooms`: the
 * folders that have none any more; who cleans another one adds it.
 */
export function leaningCommentProblems(sources: Texts, rooms: readonly string[]): string[] {
  return [...sources].flatMap(([path, text]) =>
    rooms.some((room) => path.startsWith(`${room}/`))
      ? [...text.matchAll(/\/\*\*\s*(?:\*\s*)?Of\b/g)].map(
          ({ index }) =>
            `${path}:${text.slice(0, index).split('\n').length}: a doc comment begins with what the thing is, not with "Of"`,
        )
      : [],
  );
}

/** Comments below a file's imports that no declaration follows: an essay of the file, which readers look for above them, or one that has lost its line. */
export function lowEssayProblems(sources: Texts): string[] {
  return [...sources].flatMap(([path, text]) => {
    const imports = [...text.matchAll(/^import\b[^;]*;$/gm)];
    const first = imports[0]?.index ?? text.length;
    return [...text.matchAll(/^ *\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?=\n| *\/\*\*)/gm)]
      .filter(({ index }) => index > first)
      .map(
        ({ index }) =>
          `${path}:${text.slice(0, index).split('\n').length}: no declaration follows this comment: put the essay of the file above the imports`,
      );
  });
}

/** A comment of more characters, on the first constant or type of a file that exports neither, is the essay of the file. */
const firstCommentCharactersMax = 160;

/**
 * Essays of files that stand on whatever is declared first below the imports, where an editor shows them for a constant or for
 * somebody's components. `rooms`: the folders that have none any more.
 */
export function misplacedEssayProblems(sources: Texts, rooms: readonly string[]): string[] {
  return [...sources].flatMap(([path, text]) => {
    if (!rooms.some((room) => path.startsWith(`${room}/`))) return [];
    const last = [...text.matchAll(/^import\b[^;]*;$/gm)].at(-1);
    if (last === undefined || text.startsWith('/**')) return [];
    const below = text.slice(last.index + last[0].length);
    const [, comment = '', name] =
      /^\s*(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)\n(?:const|let|type|interface) (\w+)/.exec(below) ?? [];
    if (comment.replace(/\s*\n\s*\*\s*/g, ' ').length <= firstCommentCharactersMax) return [];
    return [
      `${path}: tells the story of the file on ${name}: put it above the imports, or on the class or function that it is about`,
    ];
  });
}
