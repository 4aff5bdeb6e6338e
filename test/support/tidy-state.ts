import { posix } from 'node:path';
import type { Texts } from './tidy-documents.ts';
import type { Files } from './tidy-rules.ts';

/** What changes at the level of a module: a variable, or a container that is filled later. Tables are made whole, or are typed Readonly…. */
const state =
  /^(?:export )?(?:let (\w+)|const (\w+) = new (?:WeakMap|WeakSet|Map|Set|LruMap)(?:<[^\n]*>)?\(\))/gm;
const heading = '## State of a thread';

/**
 * State of a module that the README of its room does not list, with its file, under "State of a thread"; and what is listed there and
 * is gone. Whoever reads a function sees neither who else changes such state nor when it goes, so there is little of it, and it is
 * said why. `apart`: programs that have a page to themselves.
 */
export function hiddenStateProblems(files: Files, documents: Texts, apart: readonly string[]): string[] {
  const found = [...files.values()]
    .filter(({ path }) => /^(?:protocol|src|actors)\//.test(path) && !apart.some((it) => path.startsWith(it)))
    .flatMap(({ path, code }) =>
      [...code.matchAll(state)].map(([, variable, container]) => ({
        path,
        name: variable ?? container ?? '',
      })),
    );
  const lists = new Map([...documents].map(([path, text]) => [path, listedIn(path, text)]));
  const unlisted = found.filter(
    ({ path, name }) => !lists.get(readmeOf(path, documents))?.has(`${path} ${name}`),
  );
  const there = new Set(found.map(({ path, name }) => `${path} ${name}`));
  return [
    ...unlisted.map(
      ({ path, name }) =>
        `${path}: keeps ${name} for the whole thread; put it into an object that is passed, or list it in ${readmeOf(path, documents)} under "State of a thread"`,
    ),
    ...[...lists].flatMap(([readme, list]) =>
      [...list].filter((each) => !there.has(each)).map((each) => `${readme}: lists ${each}, which is gone`),
    ),
  ];
}

/** The README of the innermost folder around a file that has one. */
function readmeOf(path: string, documents: Texts): string {
  for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder)) {
    const readme = `${folder}/README.md`;
    if (documents.has(readme)) return readme;
  }
  return 'README.md';
}

/** Each file and name of a README's list, as `path name`. A point begins with files, each before its names, and ends them with a colon. */
function listedIn(readme: string, text: string): ReadonlySet<string> {
  const section = text.split(heading)[1]?.split('\n## ')[0] ?? '';
  const listed = new Set<string>();
  for (const [, words = ''] of section.matchAll(/^\* ([^:]*):/gm)) {
    let file = '';
    for (const [, word = ''] of words.matchAll(/`([^`]+)`/g)) {
      if (word.endsWith('.ts')) file = posix.join(posix.dirname(readme), word);
      else listed.add(`${file} ${word}`);
    }
  }
  return listed;
}
