import { NotUnderstood, type PatternScanner } from './pattern-scanner.ts';

const codePointMax = 0x10ffff;

const named: ReadonlyMap<string, number> = new Map([
  ['a', 0x07],
  ['f', 0x0c],
  ['n', 0x0a],
  ['r', 0x0d],
  ['t', 0x09],
  ['v', 0x0b],
]);

/** The character that an escape stands for: \n, \x41, \x{10FFFF}, \101, and any ASCII punctuation after a backslash. */
export function parseEscape(scanner: PatternScanner): number {
  scanner.skip('\\');
  const codePoint = scanner.next();
  const character = String.fromCodePoint(codePoint);
  const value = named.get(character);
  if (value !== undefined) return value;
  if (character === 'x') return parseHexadecimal(scanner);
  if (character >= '0' && character <= '7') return parseOctal(scanner, codePoint - 0x30);
  if (codePoint < 0x80 && !/[0-9A-Za-z]/.test(character)) return codePoint;
  throw new NotUnderstood();
}

/** A single digit would be a backreference, except for \0. */
function parseOctal(scanner: PatternScanner, first: number): number {
  const isOctal = () => scanner.peek() >= 0x30 && scanner.peek() <= 0x37;
  if (first !== 0 && !isOctal()) throw new NotUnderstood();
  let value = first;
  for (let digits = 1; digits < 3 && isOctal(); digits++) value = value * 8 + scanner.next() - 0x30;
  return value;
}

function parseHexadecimal(scanner: PatternScanner): number {
  if (!scanner.skip('{'))
    return hexadecimal(String.fromCodePoint(scanner.next(), scanner.next()), /^[0-9a-f]{2}$/i);
  return hexadecimal(scanner.until('}') ?? '', /^[0-9a-f]+$/i);
}

function hexadecimal(digits: string, form: RegExp): number {
  const value = form.test(digits) ? Number.parseInt(digits, 16) : Number.POSITIVE_INFINITY;
  if (value > codePointMax) throw new NotUnderstood();
  return value;
}
