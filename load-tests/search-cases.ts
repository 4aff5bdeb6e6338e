/**
 * What the real-input comparison asks for: rare and common, one byte and many, letters that fold across scripts, lines
 * and text that spans lines. Classes are spelled out, because \w, \d and \b mean other things to other engines.
 */
export interface SearchCase {
  readonly query: string;
  readonly isRegex: boolean;
}

const literals: readonly string[] = [
  'typescript',
  'permission is hereby granted',
  'EXPORT DEFAULT',
  'node:worker_threads',
  '"use strict"',
  '=== null',
  '=> {',
  '.*',
  '\\n',
  '$',
  'q',
  'ab',
  'https://',
  'c++',
  // Signs that fold to ASCII letters: the Kelvin sign, the long s.
  '\u212A',
  'cla\u017F\u017F',
  'é',
  'σίσυφος',
  '日本',
  'no file says this: 7f3a91c2e5',
];

const regexes: readonly string[] = [
  '(?m)^import .* from [\'"][a-z:./]+[\'"];?$',
  '(?m)^export (async )?function [A-Za-z_$][A-Za-z0-9_$]*\\(',
  '(?m)(?i)copyright \\(c\\) [0-9]{4}',
  '(?m)[0-9]+\\.[0-9]+\\.[0-9]+-[a-z]+\\.[0-9]+',
  '(?m)\\}\\n\\nexport ',
  '(?m)^[ \\t]*//.*(TODO|FIXME|XXX)',
  '(?m)https?://[A-Za-z0-9./_-]+\\.(md|html)',
  '(?m)[^\\x00-\\x7F]{3,}',
  '(?m)^#{1,3} [A-Z][a-z]+$',
  '(?m)(catch|finally)[ \\t\\n]*(\\([a-z]+\\)[ \\t\\n]*)?\\{[ \\t\\n]*\\}',
];

export const searchCases: readonly SearchCase[] = [
  ...literals.map((query) => ({ query, isRegex: false })),
  ...regexes.map((query) => ({ query, isRegex: true })),
];
