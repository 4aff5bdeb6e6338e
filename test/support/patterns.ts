/**
 * Random texts, and random patterns made from such a text, so that many of them match it: parts of it in their order,
 * each as it is, in another case, escaped, as a class, an alternative, repeated, or left out for a wildcard.
 */
type Random = () => number;

const alphabet = [
  ...'aaabbbccddeekkssiiXYZ  \n\t.-_(){}[]*+?^$|\\/09',
  ...'kKsSiIåÅßẞſ\u212a\u212bİıäÄéÉσΣςΩ\u2126жЖ潮汐😀𐐀𐐨\ufb01',
  'e\u0301',
  'A\u030a',
  'ab',
  'foo',
];

function below(random: Random, end: number): number {
  return Math.floor(random() * end);
}

function oneOf<T>(random: Random, items: readonly T[]): T {
  return items[below(random, items.length)] as T;
}

export function randomText(random: Random): string {
  return Array.from({ length: below(random, 24) }, () => oneOf(random, alphabet)).join('');
}

export function randomPattern(random: Random, text: string): string {
  const characters = [...text];
  const flags = random() < 0.6 ? oneOf(random, ['(?i)', '(?s)', '(?is)', '(?m)', '(?i-s)', '(?U)']) : '';
  const start = below(random, characters.length + 1);
  const pieces: string[] = [];
  for (let at = start; at < characters.length && pieces.length < 8; ) {
    const length = Math.min(1 + below(random, 5), characters.length - at);
    pieces.push(randomPiece(random, characters.slice(at, at + length), 2));
    at += length;
    if (random() < 0.15) at += below(random, 3);
  }
  const before = random() < 0.1 ? oneOf(random, ['^', '\\A', '\\b', '\\B', '(?m)^']) : '';
  const after = random() < 0.1 ? oneOf(random, ['$', '\\z', '\\b', '(?m)$']) : '';
  return `${flags}${before}${pieces.join(random() < 0.15 ? '.*' : '')}${after}`;
}

function randomPiece(random: Random, characters: readonly string[], depth: number): string {
  const literal = () => characters.map((character) => randomCharacter(random, character)).join('');
  if (depth === 0 || random() < 0.45) return literal();
  const inner = () => randomPiece(random, characters, depth - 1);
  const other = () => randomPiece(random, [...randomText(random)].slice(0, 4), depth - 1);
  return oneOf(random, [
    () => `(${inner()}|${other()})`,
    () => `(?:${other()}|${inner()}|${other()})`,
    () => `(?P<n${below(random, 1e6)}>${inner()})`,
    () => `(?i:${inner()})`,
    () => `(?:${inner()})${randomRepetition(random)}`,
    () => `${literal()}${randomRepetition(random)}`,
    () => `(?:${other()})?${inner()}`,
    () => `${inner()}(?:${other()})*`,
    () => oneOf(random, ['.*', '.+', '(?s:.*)', `.{0,${characters.length}}`, `(?s:.{${characters.length}})`]),
    () => `\\Q${characters.join('')}\\E`,
  ])();
}

function randomRepetition(random: Random): string {
  const lazy = random() < 0.2 ? '?' : '';
  return oneOf(random, ['*', '+', '?', '{1}', '{1,2}', '{0,3}', '{1,}', '{2}', '{2,5}', '{3}']) + lazy;
}

function randomCharacter(random: Random, character: string): string {
  const codePoint = character.codePointAt(0) ?? 0;
  const escaped = codePoint < 0x80 && !/[0-9A-Za-z]/.test(character) ? hexadecimal(codePoint) : character;
  if (random() < 0.6) return escaped;
  return oneOf(random, [
    () => hexadecimal(codePoint),
    () => otherCase(character, escaped),
    () => `[${escaped}${oneOf(random, ['', 'xyz', '0-9', 'Ω-ς', '[:space:]', '\\d', '\\p{Han}', '\\w'])}]`,
    () => `[^${oneOf(random, ['x', 'qQ', '0-9', '\\S', '[:^alpha:]', 'j-l'])}]`,
    () => '.',
    () =>
      oneOf(random, ['\\w', '\\W', '\\s', '\\S', '\\pL', '\\PL', '\\p{Greek}', '\\p{^Lu}', '\\p{Letter}']),
    () => `[${hexadecimal(codePoint)}-${hexadecimal(codePoint + below(random, 30))}]`,
    () => `${escaped}\\b`,
    () => `${escaped}(?i)`,
    () => `(?-i:${escaped})`,
    () => `\\u{${codePoint.toString(16)}}`,
  ])();
}

function hexadecimal(codePoint: number): string {
  return `\\x{${codePoint.toString(16)}}`;
}

function otherCase(character: string, escaped: string): string {
  const upper = character.toUpperCase();
  const changed = upper === character ? character.toLowerCase() : upper;
  return [...changed].length === 1 && changed !== character ? changed : escaped;
}
