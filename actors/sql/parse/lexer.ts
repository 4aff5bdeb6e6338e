import { SqlError } from '../sql-error.ts';

/** A piece of a statement, from `at` to before `end`. Keywords are names here; the parser knows which names mean something where. */
export type Token = { readonly at: number; readonly end: number } & (
  | { readonly kind: 'name'; readonly text: string; readonly quoted: boolean }
  | { readonly kind: 'string'; readonly text: string }
  /** `text`: the digits as they were written, without a sign. */
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'symbol'; readonly text: Symbols }
  | { readonly kind: 'end' }
);

const symbols = [
  '<>',
  '!=',
  '<=',
  '>=',
  '=',
  '<',
  '>',
  '+',
  '-',
  '*',
  '/',
  '%',
  '(',
  ')',
  ',',
  '.',
  ';',
  '||',
] as const;
export type Symbols = (typeof symbols)[number];

const space = /(?:\s+|--[^\n]*|\/\*[\s\S]*?\*\/)*/uy;
const bareName = /[\p{L}_][\p{L}\p{N}_$]*/uy;
const number = /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/uy;

/** Cuts a statement into tokens; the last one is of kind `end`. Throws `SqlError`. */
export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = [];
  let at = skipSpace(sql, 0);
  while (at < sql.length) {
    const token = tokenAt(sql, at);
    tokens.push(token);
    at = skipSpace(sql, token.end);
  }
  tokens.push({ kind: 'end', at, end: at });
  return tokens;
}

function skipSpace(sql: string, from: number): number {
  space.lastIndex = from;
  space.exec(sql);
  return space.lastIndex;
}

function tokenAt(sql: string, at: number): Token {
  const character = sql[at] as string;
  if (character === "'") {
    const { text, end } = quotedAt(sql, at, "'");
    return { kind: 'string', text, at, end };
  }
  if (character === '"') {
    const { text, end } = quotedAt(sql, at, '"');
    if (text === '')
      throw new SqlError(at, 'a name is empty: write at least one character between the double quotes');
    return { kind: 'name', text, quoted: true, at, end };
  }
  const name = matchAt(bareName, sql, at);
  if (name !== null) return { kind: 'name', text: name, quoted: false, at, end: at + name.length };
  const digits = matchAt(number, sql, at);
  if (digits !== null) {
    const end = at + digits.length;
    if (matchAt(bareName, sql, end) !== null)
      throw new SqlError(end, 'a letter stands right after a number: put a space between them');
    return { kind: 'number', text: digits, at, end };
  }
  if (sql.startsWith('/*', at)) throw new SqlError(at, 'a comment does not end: close it with */');
  const text = symbols.find((symbol) => sql.startsWith(symbol, at));
  if (text !== undefined) return { kind: 'symbol', text, at, end: at + text.length };
  const shown = JSON.stringify(String.fromCodePoint(sql.codePointAt(at) as number));
  throw new SqlError(at, `${shown} means nothing in SQL; names with such characters stand in double quotes`);
}

/** Reads what stands between quotes, which are doubled inside; `end` is behind the closing quote. */
function quotedAt(sql: string, at: number, quote: string): { readonly text: string; readonly end: number } {
  let text = '';
  for (let from = at + 1; ; ) {
    const close = sql.indexOf(quote, from);
    if (close < 0)
      throw new SqlError(
        at,
        quote === "'" ? "a string does not end: close it with '" : 'a name does not end: close it with "',
      );
    text += sql.slice(from, close);
    if (sql[close + 1] !== quote) return { text, end: close + 1 };
    text += quote;
    from = close + 2;
  }
}

function matchAt(pattern: RegExp, sql: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(sql)?.[0] ?? null;
}
