/**
 * The form of re2-search.txt: `strings` and the texts, then `regexps` and each pattern with one line a text. Such a line
 * has four columns, the second the leftmost-first match anywhere in the text: `-`, or places of the match and its groups.
 */
export interface Re2Case {
  readonly pattern: string;
  readonly text: string;
  /** Byte offsets. */
  readonly leftmostFirst: { readonly start: number; readonly end: number } | null;
}

export function readRe2Cases(data: string): Re2Case[] {
  const cases: Re2Case[] = [];
  let texts: string[] = [];
  let isReadingTexts = false;
  let [pattern, at] = ['', 0];
  for (const line of data.split('\n')) {
    if (line === 'strings') {
      texts = [];
      isReadingTexts = true;
    } else if (line === 'regexps') {
      isReadingTexts = false;
    } else if (line.startsWith('"')) {
      if (isReadingTexts) texts.push(unquote(line));
      else [pattern, at] = [unquote(line), 0];
    } else if (/^[-\d]/.test(line)) {
      cases.push({ pattern, text: texts[at++] ?? '', leftmostFirst: spanOf(line.split(';')[1] ?? '-') });
    }
  }
  return cases;
}

function spanOf(column: string): Re2Case['leftmostFirst'] {
  const [match] = column.split(' ');
  if (match === undefined || match === '-') return null;
  const [start, end] = match.split('-').map(Number);
  return { start: start ?? 0, end: end ?? 0 };
}

/** Quoted as Go does it, which is JSON but for these escapes, and for control characters as they are. */
function unquote(line: string): string {
  const json = line.replaceAll(
    /\\(x([0-9a-f]{2})|a|v|\\)|[\x00-\x1f]/g,
    (found, name?: string, code?: string) => {
      if (name === '\\') return found;
      if (name === undefined) return `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
      return `\\u${(code ?? (name === 'a' ? '07' : '0b')).padStart(4, '0')}`;
    },
  );
  return JSON.parse(json) as string;
}
