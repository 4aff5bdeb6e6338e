/**
 * RE2's binding rewrites what it takes for JavaScript's forms (a slash, \uXXXX, \cX, `(?<name>`) without looking whether
 * they stand in `\Q…\E` or in a class, where they are text. So such text is written out, before the binding sees it.
 */
export function writeOutText(pattern: string): string {
  let written = '';
  for (let at = 0; at < pattern.length; ) {
    const part = partAt(pattern, at);
    written += part.written;
    at = part.end;
  }
  return written;
}

/** Every ASCII character that is no letter or digit may be written by its number; NUL has no escape of its own. */
export function writeOutLiteral(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9\u0080-\uffff]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

/** A piece of a pattern that is read as one: quoted text, a class, an escape, or a character. */
export interface PatternPart {
  readonly written: string;
  /** Where the next part begins. */
  readonly end: number;
}

/** Answers the piece of a pattern that begins at `at`. */
export function partAt(pattern: string, at: number): PatternPart {
  if (pattern.startsWith('\\Q', at)) return quotedText(pattern, at);
  if (pattern.charAt(at) === '[') return characterClass(pattern, at);
  const end = at + (pattern.charAt(at) === '\\' ? 2 : 1);
  return { written: pattern.slice(at, end), end };
}

/** To the end where nothing ends it. */
function quotedText(pattern: string, at: number): PatternPart {
  const from = at + 2;
  const found = pattern.indexOf('\\E', from);
  const to = found < 0 ? pattern.length : found;
  // Even nothing keeps repetition operators apart.
  const written = from === to ? '\\Q\\E' : writeOutLiteral(pattern.slice(from, to));
  return { written, end: found < 0 ? to : found + 2 };
}

/** A bracket at its beginning is text, as are those of `[:alpha:]`. */
function characterClass(pattern: string, at: number): PatternPart {
  const begun = /\[\^?\]?/y;
  begun.lastIndex = at;
  let written = begun.exec(pattern)?.[0] ?? '';
  let end = at + written.length;
  const item = /\[:\^?\w*:\]|\\.|[^\]]/sy;
  for (;;) {
    item.lastIndex = end;
    const text = item.exec(pattern)?.[0];
    if (text === undefined) return { written, end };
    written += text === '(' ? '\\x28' : text;
    end += text.length;
  }
}
