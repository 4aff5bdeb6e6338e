import { dirname, join, normalize } from 'node:path';

/**
 * The rules of what is written in Markdown and in comments: README stays short and leads to every decision, links lead to
 * files, and nothing rests on pages outside the repository. Each is a pure function from texts to sentences, one a violation.
 */
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
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '');
  return [...prose.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link));
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
