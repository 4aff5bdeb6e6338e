/**
 * Operations and internal calls are listed once, in the tables of protocol/. Whoever needs those that write, or are metered, or
 * anything else, asks their row: a list beside the table is the one that somebody forgets.
 */
import { internalCallList } from '../../protocol/internal-calls.ts';
import { type Operation, operationNames } from '../../protocol/operations.ts';

const tables = /^protocol\/(operations(\.ts$|\/)|internal-calls\.ts$)/;
const sides = /^(protocol|src|actors)\//;

const names: ReadonlySet<string> = new Set([...operationNames, ...internalCallList.map(({ name }) => name)]);

const text = `'[^'\\n]*'`;
const element = `(?:${text}|internalCalls\\.\\w+)`;
const value = `(?:${text}|true|false|null|-?[\\d_.]+)`;
const separator = '\\s*,\\s*';
/** Literals that hold nothing but texts, numbers and the like: lists, lists of pairs, and records. Dispatch to functions is none. */
const literals = [
  new RegExp(`\\[\\s*${element}(?:${separator}${element})+,?\\s*\\]`, 'g'),
  new RegExp(
    `\\[\\s*\\[${element}${separator}${value}\\](?:${separator}\\[${element}${separator}${value}\\])+,?\\s*\\]`,
    'g',
  ),
  new RegExp(`\\{\\s*\\w+:\\s*${value}(?:${separator}\\w+:\\s*${value})+,?\\s*\\}`, 'g'),
  new RegExp(`[!=]== ${element}\\s*(?:\\|\\||&&)\\s*[\\w.]+ [!=]== ${element}`, 'g'),
];

/** A sentence for each literal outside the tables that names two operations or internal calls, or more. */
export function nameListProblems(sources: ReadonlyMap<string, string>): string[] {
  return [...sources]
    .filter(([path]) => sides.test(path) && !tables.test(path))
    .flatMap(([path, source]) => {
      const withoutComments = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
      return literals
        .flatMap((literal) => [...withoutComments.matchAll(literal)])
        .map(([found]) => ({ found, named: namedIn(found) }))
        .filter(({ named }) => named.length > 1)
        .map(({ named }) => `${path}: lists ${named.join(', ')}; ask their rows in protocol/ instead`);
    });
}

function namedIn(literal: string): string[] {
  const words = literal.match(/'[^'\n]*'|internalCalls\.\w+|\w+(?=:)/g) ?? [];
  return words.map((word) => word.replaceAll("'", '')).filter((word) => names.has(word) || isInternal(word));
}

function isInternal(word: string): boolean {
  return word.startsWith('internalCalls.');
}

/** Where an operation's branch stands, by who serves it: the folders of it, and the file that most branches are in. */
const servers: Readonly<
  Record<Operation['serves'], { readonly folders: readonly string[]; readonly usually: string }>
> = {
  front: { folders: ['src/front/'], usually: 'src/front/account-operations.ts' },
  tenant: { folders: ['actors/tenant/'], usually: 'actors/tenant/tenant-calls.ts' },
  namespace: {
    folders: ['actors/namespace/', 'actors/host/'],
    usually: 'actors/namespace/namespace-queries.ts',
  },
};

/** A sentence for each operation that is built and that nobody asks for by its name where its row says that it is served. */
export function unservedProblems(
  operations: readonly Pick<Operation, 'name' | 'built' | 'serves' | 'changes'>[],
  sources: ReadonlyMap<string, string>,
): string[] {
  return operations
    .filter(({ built, changes }) => built && changes === null)
    .filter(({ name, serves }) => {
      const branch = new RegExp(`(?:\\bcase |=== |\\[\\s*)'${name}'`);
      const { folders } = servers[serves];
      return ![...sources].some(
        ([path, source]) => folders.some((folder) => path.startsWith(folder)) && branch.test(source),
      );
    })
    .map(
      ({ name, serves }) =>
        `${name} is built, and nobody does it: add a branch for '${name}' to ${servers[serves].usually}, or say built: false in its row`,
    );
}
