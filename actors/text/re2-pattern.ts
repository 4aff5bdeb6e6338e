/**
 * The pattern that RE2 is given by its binding: JavaScript's \uXXXX, \u{X}, \cX and (?<name>…) become RE2's own forms,
 * and a slash is escaped, whatever it stands in but for text that was written out before. Names of Unicode groups are
 * left as they are: nobody here looks them up.
 */
export function patternForRe2(pattern: string): string {
  if (pattern === '') return '(?:)';
  const unicode = /^\\u([0-9a-fA-F]{1,4})/;
  let made = '';
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at, at + 6);
    const four = unicode.exec(rest);
    if (four !== null) {
      made += `\\x{${four[1]}}`;
      at += four[0].length;
    } else if (rest.startsWith('\\u{')) {
      made += '\\x';
      at += 2;
    } else if (/^\\c[A-Z]/.test(rest)) {
      made += `\\x${(rest.charCodeAt(2) - 0x40).toString(16).padStart(2, '0')}`;
      at += 3;
    } else if (rest.startsWith('\\')) {
      made += rest.slice(0, 2);
      at += 2;
    } else if (rest.startsWith('/')) {
      made += '\\/';
      at += 1;
    } else if (/^\(\?<(?![=!])/.test(rest)) {
      made += '(?P<';
      at += 3;
    } else {
      made += rest.charAt(0);
      at += 1;
    }
  }
  return made;
}
