/**
 * A source file as the house's rules see it: its code without the contents of comments, strings and patterns (they are
 * blanked, so that places stay where they are), its comments, and the imports it makes. A scanner of tokens, no parser:
 * our own formatted TypeScript is all it has to read.
 */
import { posix } from 'node:path';

export interface ScannedSource {
  readonly code: string;
  readonly comments: string;
  readonly strings: readonly { readonly at: number; readonly value: string }[];
  readonly texts: readonly Text[];
}

/** A quoted string, or a piece of a template between its expressions. */
export interface Text {
  readonly at: number;
  readonly value: string;
  /** The string or template begins with it. */
  readonly opens: boolean;
  /** The string or template ends with it. */
  readonly closes: boolean;
}

export interface Import {
  /** As written. */
  readonly specifier: string;
  /** `import type` and `export type`: gone after compilation. */
  readonly typeOnly: boolean;
  readonly line: number;
}

/** What may stand before the slash that opens a pattern, unlike one that divides. */
const beforePattern =
  /(?:[(,=:[!&|?{};+\-*%<>~^}]|\b(?:return|typeof|case|in|of|void|throw|else|do|await|yield))$/;

export function scanSource(text: string): ScannedSource {
  const code = text.split('');
  const comments = text.replace(/[^\n]/g, ' ').split('');
  const strings: { at: number; value: string }[] = [];
  const texts: Text[] = [];
  /** Depths of braces at which a template's expression ends. */
  const templates: number[] = [];
  let depth = 0;
  const blank = (from: number, to: number) => {
    for (let i = from; i < to; i++) if (code[i] !== '\n') code[i] = ' ';
  };
  const skipTemplate = (from: number): number => {
    const piece = (end: number, closes: boolean) =>
      texts.push({ at: from, value: text.slice(from, end), opens: text[from - 1] === '`', closes });
    for (let at = from; at < text.length; at++) {
      if (text[at] === '\\') at++;
      else if (text[at] === '`') {
        piece(at, true);
        return finish(from, at);
      } else if (text[at] === '$' && text[at + 1] === '{') {
        piece(at, false);
        templates.push(depth++);
        return finish(from, at + 1);
      }
    }
    return text.length;
  };
  const finish = (from: number, end: number): number => {
    blank(from, end);
    return end + 1;
  };
  for (let at = 0; at < text.length; ) {
    const two = text.slice(at, at + 2);
    const one = text[at] ?? '';
    if (two === '//' || two === '/*') {
      const found = two === '//' ? text.indexOf('\n', at) : text.indexOf('*/', at) + 2;
      const end = found < 2 ? text.length : found;
      for (let i = at; i < end; i++) comments[i] = text[i] ?? ' ';
      blank(at, end);
      at = end;
      continue;
    }
    if (one === "'" || one === '"') {
      const end = endOfQuoted(text, at, one);
      strings.push({ at, value: text.slice(at + 1, end) });
      texts.push({ at, value: text.slice(at + 1, end), opens: true, closes: true });
      at = finish(at + 1, end);
    } else if (one === '`') {
      at = skipTemplate(at + 1);
    } else if (one === '/' && beforePattern.test(codeBefore(code, at))) {
      at = finish(at + 1, endOfPattern(text, at));
    } else if (one === '}' && templates.at(-1) === depth - 1) {
      templates.pop();
      depth--;
      at = skipTemplate(at + 1);
    } else {
      if (one === '{') depth++;
      if (one === '}') depth--;
      at++;
    }
  }
  return { code: code.join(''), comments: comments.join(''), strings, texts };
}

/** The last few characters of code before a place. */
function codeBefore(code: readonly string[], at: number): string {
  let end = at;
  while (end > 0 && code[end - 1]?.trim() === '') end--;
  return code.slice(Math.max(0, end - 12), end).join('');
}

function endOfQuoted(text: string, at: number, quote: string): number {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === quote) return i;
  }
  return text.length;
}

function endOfPattern(text: string, at: number): number {
  let inClass = false;
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '[') inClass = true;
    else if (text[i] === ']') inClass = false;
    else if (text[i] === '/' && !inClass) return i;
  }
  return text.length;
}

const importForms = [
  /\b(?:import|export)\b(\s+type\b(?!\s+from\b|\s*,))?[^'";()=]*?\bfrom\s*(?=['"])/g,
  /\bimport()\s*(?=['"])/g,
  /\b(?:import|require)()\s*\(\s*(?=['"])/g,
];

/** Static, dynamic and side-effect imports, re-exports and `require`. */
export function importsOf(scanned: ScannedSource): Import[] {
  const values = new Map(scanned.strings.map(({ at, value }) => [at, value]));
  return importForms.flatMap((form) =>
    [...scanned.code.matchAll(form)].flatMap((match) => {
      const specifier = values.get(match.index + match[0].length);
      if (specifier === undefined) return [];
      return [{ specifier, typeOnly: Boolean(match[1]), line: lineAt(scanned.code, match.index) }];
    }),
  );
}

/** The path that a relative specifier leads to; null for a package. */
export function resolveImport(from: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts');
}

/** The package of a specifier; null for our own files and for what comes with Node. */
export function packageOf(specifier: string): string | null {
  if (specifier.startsWith('.') || specifier.startsWith('/') || specifier.startsWith('node:')) return null;
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let i = 0; i < index; i++) if (text[i] === '\n') line++;
  return line;
}
