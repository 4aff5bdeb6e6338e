/**
 * The style of error sentences: they begin in lower case and have no full stop, so that a caller can put them behind a name and a
 * colon. Checked in what is given to an error, an assertion or a refusal, and in what is called `sentence`.
 */
import type { Files } from './tidy-rules.ts';
import { lineAt, type Text } from './tidy-source.ts';

const beginnings =
  /\b(?:new \w*Error|invalidField|documentError|damaged|must|assert|refus\w+|rateLimited)\s*\(|\bsentence\s*=(?!=)/g;
/** A word of prose with a capital: names in capitals (`GROUP BY`), with hyphens or dots, and what stands in quotes are none. */
const capital = /^([A-Z][a-z']*)(?=[ ,:;])/;
/** Names that are written with a capital wherever they stand. */
const names: ReadonlySet<string> = new Set(['Authorization', 'Tidebase']);
const fullStop = /(?:[^\s.][.!]|^[.!])$/;

/** A sentence for each text of an error that begins with a capital or ends with a full stop. */
export function errorSentenceProblems(files: Files): string[] {
  return [...files.values()]
    .filter(({ path }) => /^(?:protocol|src|actors)\//.test(path))
    .flatMap(({ path, code, texts }) => {
      const spans = [...code.matchAll(beginnings)].map((match) => spanOf(code, match));
      return texts
        .filter(({ at }) => spans.some(([from, end]) => at >= from && at < end))
        .filter(isOutOfStyle)
        .map(
          ({ at, value }) =>
            `${path}:${lineAt(code, at)}: "${value}": an error begins in lower case and has no full stop`,
        );
    });
}

/** From a match to the bracket that closes its call, or to the end of its statement. */
function spanOf(code: string, match: RegExpExecArray): readonly [from: number, end: number] {
  const from = match.index + match[0].length;
  if (!match[0].endsWith('(')) return [from, code.indexOf(';', from)];
  let depth = 1;
  let at = from;
  while (at < code.length && depth > 0) {
    if (code[at] === '(') depth++;
    if (code[at] === ')') depth--;
    at++;
  }
  return [from, at];
}

function isOutOfStyle({ value, opens, closes }: Text): boolean {
  const [, word] = capital.exec(value) ?? [];
  return (opens && word !== undefined && !names.has(word)) || (closes && fullStop.test(value));
}
