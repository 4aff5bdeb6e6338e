import { execFileSync } from 'node:child_process';
import { extname } from 'node:path';
import type { Question } from './agent-questions.ts';
import type { Corpus } from './corpus.ts';

/**
 * The right answer to each question, out of the files themselves: by ripgrep where it finds things, else by reading. Nothing here asks
 * the server. Lists are sorted, a thing to a line; a place is `file:line`.
 */
export function truthOf(corpus: Corpus, question: Question): string {
  switch (question.kind) {
    case 'definition': {
      const { file, line } = definitionOf(corpus, question.of);
      return `${file}:${line}`;
    }
    case 'body': {
      const { file, line } = definitionOf(corpus, question.of);
      const below = linesOf(corpus, file).slice(line - 1);
      return below.slice(0, below.indexOf('}') + 1).join('\n');
    }
    case 'struct': {
      const { file, line } = only(ripgrep(corpus, ['-n', `^struct ${question.of} \\{`]).map(placeOf));
      return `${file}:${line}`;
    }
    case 'macro': {
      const { file, line } = only(ripgrep(corpus, ['-n', `^#define\\s+${question.of}\\b`]).map(placeOf));
      const text = linesOf(corpus, file)[line - 1] ?? '';
      const value = text.slice(text.indexOf(question.of) + question.of.length);
      return value.split('/*')[0]?.trim() ?? '';
    }
    case 'depends': {
      const { file, line } = only(ripgrep(corpus, ['-n', `^config ${question.of}$`]).map(placeOf));
      const below = linesOf(corpus, file).slice(line);
      return (below.find((each) => each.trim().startsWith('depends on')) ?? '').trim();
    }
    case 'files-with': {
      const listed = question.words.map((word) => new Set(ripgrep(corpus, ['-l', '-i', '-F', word])));
      const files = [...corpus.texts.keys()].filter((file) => listed.every((each) => each.has(file)));
      return sorted(files.filter((file) => isBelow(file, question.folder)));
    }
    case 'files-in':
      return String([...corpus.texts.keys()].filter((file) => isBelow(file, question.folder)).length);
    case 'lines':
      return linesOf(corpus, question.file)
        .slice(question.from - 1, question.to)
        .join('\n');
    case 'fullest-folder': {
      const weight = (bytes: number) => (question.by === 'files' ? 1 : bytes);
      return largest(sums(corpus, (file, bytes) => [file.slice(0, file.lastIndexOf('/')), weight(bytes)]));
    }
    case 'count':
      return String(
        ripgrep(corpus, ['-l', ...(question.isRegex ? [] : ['-i', '-F']), question.pattern]).length,
      );
    case 'largest':
      return largest(
        sums(corpus, (file, bytes) => [file, extensionOf(file) === question.extension ? bytes : 0]),
      );
    case 'average-size': {
      const sizes = [...corpus.texts]
        .filter(([file]) => extensionOf(file) === question.extension)
        .map(([, text]) => text.length);
      return String(Math.round(sizes.reduce((sum, size) => sum + size, 0) / sizes.length));
    }
    case 'extensions':
      return sorted(
        [...sums(corpus, (file) => [extensionOf(file), 1])].map(([extension, n]) => `${extension} ${n}`),
      );
    case 'function-of':
      return functionAround(corpus, only(ripgrep(corpus, ['-n', '-F', question.message]).map(placeOf)));
    case 'includes':
      return linesOf(corpus, question.file)
        .filter((line) => line.startsWith('#include'))
        .join('\n');
  }
}

interface Place {
  readonly file: string;
  readonly line: number;
}

function ripgrep({ folder }: Corpus, args: readonly string[]): string[] {
  const options = ['-uuu', '-a', '--no-config', '--no-heading', '--sort', 'path'];
  const printed = execFileSync('rg', [...options, ...args, './'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64e6,
  });
  return printed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^\.\//, ''));
}

function placeOf(printed: string): Place {
  const [file = '', line = ''] = printed.split(':', 2);
  return { file, line: Number(line) };
}

/** The place where the body of a function begins, not the one of a declaration: a brace comes before a semicolon. */
function definitionOf(corpus: Corpus, name: string): Place {
  const places = ripgrep(corpus, ['-n', `^[A-Za-z_].*\\b${name}\\(`]).map(placeOf);
  return only(
    places.filter(({ file, line }) => {
      const below = linesOf(corpus, file)
        .slice(line - 1)
        .join('\n');
      return /[;{]/.exec(below)?.[0] === '{';
    }),
  );
}

/** The kernel's style: a function's body opens by a brace in a line of its own. */
function functionAround(corpus: Corpus, { file, line }: Place): string {
  const above = linesOf(corpus, file).slice(0, line);
  const head = above.slice(0, above.lastIndexOf('{')).join('\n');
  return [...head.matchAll(/^[A-Za-z_][^\n]*?\b(\w+)\(/gm)].at(-1)?.[1] ?? '';
}

function linesOf({ texts }: Corpus, file: string): string[] {
  const lines = (texts.get(file) ?? Buffer.alloc(0)).toString().split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

function sums(
  corpus: Corpus,
  of: (file: string, bytes: number) => readonly [string, number],
): Map<string, number> {
  const totals = new Map<string, number>();
  for (const [file, text] of corpus.texts) {
    const [name, value] = of(file, text.length);
    totals.set(name, (totals.get(name) ?? 0) + value);
  }
  return totals;
}

function largest(totals: ReadonlyMap<string, number>): string {
  return [...totals].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? '';
}

const extensionOf = (file: string) => extname(file).slice(1).toLowerCase();
const isBelow = (file: string, folder: string | undefined) =>
  folder === undefined || file.startsWith(`${folder}/`);
const sorted = (things: readonly string[]) => things.toSorted().join('\n');

function only<T>(things: readonly T[]): T {
  const [first, ...others] = things;
  if (first === undefined || others.length > 0)
    throw new Error(`the question has ${things.length} right answers: ${JSON.stringify(things)}`);
  return first;
}
