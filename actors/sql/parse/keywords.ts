import { aggregateNames, type FunctionName, functions } from './syntax.ts';

/** Words that end an expression: none of them names a column unless it is quoted. */
export const reserved = new Set(
  (
    'select from where group by having order limit offset as and or not in like escape is null case when then else end ' +
    'asc desc nulls between distinct union intersect except join left right inner outer full cross on using true false ' +
    'with over partition exists any all interval cast'
  ).split(' '),
);

/** What other dialects have and this one has not, by the word that begins it: the sentence that refuses it. */
export const unsupported: ReadonlyMap<string, string> = new Map(
  Object.entries({
    between: 'BETWEEN is not supported; write x >= a AND x <= b',
    union: 'UNION is not supported: a request is one SELECT',
    intersect: 'INTERSECT is not supported: a request is one SELECT',
    except: 'EXCEPT is not supported: a request is one SELECT',
    join: 'joins are not supported: docs is the only table',
    left: 'joins are not supported: docs is the only table',
    right: 'joins are not supported: docs is the only table',
    inner: 'joins are not supported: docs is the only table',
    outer: 'joins are not supported: docs is the only table',
    full: 'joins are not supported: docs is the only table',
    cross: 'joins are not supported: docs is the only table',
    over: 'window functions are not supported',
    exists: 'subqueries are not supported',
    any: 'subqueries are not supported',
    all: 'ALL is not supported',
    interval: 'INTERVAL is not supported',
    cast: 'CAST is not supported: values have the types that they were written with',
    distinct: 'DISTINCT stands in an aggregate: COUNT(DISTINCT x). Instead of SELECT DISTINCT use GROUP BY',
  }),
);

/** A function whose arguments stand in parentheses, separated by commas: EXTRACT has a syntax of its own. */
type PlainFunction = Exclude<FunctionName, 'extract'>;

/** Functions by each name that a statement may call them, in lower case: their own, and those of other dialects. */
export const functionNames: ReadonlyMap<string, PlainFunction> = new Map<string, PlainFunction>([
  ...functions.flatMap((name) => (name === 'extract' ? [] : [[name, name] as const])),
  ['char_length', 'length'],
  ['strlen', 'length'],
]);

/** The functions that there are, as an error sentence lists them. */
export const allowedFunctions = `${[...aggregateNames, ...functions].join(', ').toUpperCase()}, and in WHERE contains and grep`;

/** The sentence that refuses what a word, in lower case, begins. */
export function refusalOf(word: string): string {
  return unsupported.get(word) ?? `${word.toUpperCase()} is not supported`;
}
