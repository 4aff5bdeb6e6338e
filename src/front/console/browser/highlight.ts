/** A line cut into what matched and what did not. Pure. */
export interface Piece {
  readonly text: string;
  readonly matched: boolean;
}

/**
 * `match` is what the server says was matched; it may reach past the line, and then its first line is marked. Every other
 * place with the same characters is marked too, in any case for plain text, because a person looks for the words.
 */
export function piecesOf(line: string, match: string, anyCase: boolean): Piece[] {
  const wanted = firstLineOf(match);
  if (wanted === '') return [{ text: line, matched: false }];
  const pieces: Piece[] = [];
  const pattern = new RegExp(escaped(wanted), anyCase ? 'giu' : 'gu');
  let from = 0;
  for (const found of line.matchAll(pattern)) {
    if (found.index > from) pieces.push({ text: line.slice(from, found.index), matched: false });
    pieces.push({ text: found[0], matched: true });
    from = found.index + found[0].length;
  }
  if (from < line.length) pieces.push({ text: line.slice(from), matched: false });
  return pieces;
}

function firstLineOf(match: string): string {
  return match.split(/\r?\n/).find((part) => part !== '') ?? '';
}

/** Every sign that means something in a pattern, as itself. */
function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
