/**
 * A pattern as the code points that reach RE2, with a place in it. What goes wrong while it is read is NotUnderstood,
 * which never leaves parse-regex.ts: RE2 decides what is an error.
 */
export class PatternScanner {
  readonly #codePoints: readonly number[];
  #at = 0;

  constructor(pattern: string) {
    this.#codePoints = Array.from(pattern, (character) => character.codePointAt(0) ?? 0);
  }

  get at(): number {
    return this.#at;
  }

  set at(place: number) {
    this.#at = place;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#codePoints.length;
  }

  /** The code point `ahead` of the place; -1 past the end. */
  peek(ahead = 0): number {
    return this.#codePoints[this.#at + ahead] ?? -1;
  }

  /** Whether this ASCII text stands here. */
  startsWith(text: string): boolean {
    for (let i = 0; i < text.length; i++) if (this.peek(i) !== text.charCodeAt(i)) return false;
    return true;
  }

  /** Goes past this ASCII text where it stands here, and says whether it did. */
  skip(text: string): boolean {
    if (!this.startsWith(text)) return false;
    this.#at += text.length;
    return true;
  }

  next(): number {
    if (this.isAtEnd) throw new NotUnderstood();
    return this.#codePoints[this.#at++] ?? -1;
  }

  /** Goes past the next occurrence of this character and answers what stood before it; null where there is none. */
  until(character: string): string | null {
    const end = this.#codePoints.indexOf(character.charCodeAt(0), this.#at);
    if (end < 0) return null;
    const passed = this.#codePoints.slice(this.#at, end);
    this.#at = end + 1;
    return passed.map((codePoint) => String.fromCodePoint(codePoint)).join('');
  }

  /** A decimal number without needless zeros, as RE2 reads the bounds of repetitions; null where there is none. */
  number(): number | null {
    const digit = (ahead: number) => this.peek(ahead) - 0x30;
    const isDigit = (value: number) => value >= 0 && value <= 9;
    if (!isDigit(digit(0)) || (digit(0) === 0 && isDigit(digit(1)))) return null;
    let value = 0;
    // RE2 stops adding at a hundred million, which is far over any bound that it takes.
    while (isDigit(digit(0))) value = Math.min(value * 10 + this.next() - 0x30, 100_000_000);
    return value;
  }
}

export class NotUnderstood extends Error {}
