import { SqlError } from '../sql-error.ts';
import { reserved, unsupported } from './keywords.ts';
import type { Symbols, Token } from './lexer.ts';
import { shortened } from './shortened.ts';

/**
 * A place among the tokens of a statement. `is…` looks at the token there, `take…` goes on behind it where it is what was asked
 * for and answers whether it was, `expect…` throws an `SqlError` where it is not. Words are in lower case.
 */
export class TokenCursor {
  /** Ends with a token of kind `end`, behind which nobody goes. */
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get token(): Token {
    return this.#tokens[this.#next] as Token;
  }

  /** Goes on behind the token. */
  advance(): void {
    this.#next++;
  }

  isWord(word: string): boolean {
    const { token } = this;
    return token.kind === 'name' && !token.quoted && token.text.toLowerCase() === word;
  }

  takeWord(word: string): boolean {
    const isWord = this.isWord(word);
    if (isWord) this.#next++;
    return isWord;
  }

  /** Takes two words of which the second must follow the first. */
  takeWords(first: string, second: string): boolean {
    if (!this.takeWord(first)) return false;
    this.expectWord(second);
    return true;
  }

  expectWord(word: string): void {
    if (!this.takeWord(word)) throw this.unexpected(word.toUpperCase());
  }

  isSymbol(symbol: Symbols): boolean {
    return this.#isSymbolAt(this.#next, symbol);
  }

  /** Whether the token behind this one is the symbol. */
  isFollowedBy(symbol: Symbols): boolean {
    return this.#isSymbolAt(this.#next + 1, symbol);
  }

  takeSymbol(symbol: Symbols): boolean {
    const isSymbol = this.isSymbol(symbol);
    if (isSymbol) this.#next++;
    return isSymbol;
  }

  expectSymbol(symbol: Symbols): void {
    if (!this.takeSymbol(symbol)) throw this.unexpected(symbol);
  }

  /** Takes a string and answers its text; `expected` is what an error says that should stand here. */
  expectString(expected: string): string {
    const { token } = this;
    if (token.kind !== 'string') throw this.unexpected(expected);
    this.#next++;
    return token.text;
  }

  /** Takes a name that is quoted or no reserved word, and answers it. */
  expectName(expected: string): string {
    const { token } = this;
    if (token.kind !== 'name' || (!token.quoted && reserved.has(token.text.toLowerCase())))
      throw this.unexpected(expected);
    this.#next++;
    return token.text;
  }

  /** Makes the error for a token that is something else than was expected. */
  unexpected(expected: string): SqlError {
    const { token } = this;
    if (token.kind === 'name' && !token.quoted) {
      const refusal = unsupported.get(token.text.toLowerCase());
      if (refusal !== undefined) return new SqlError(token.at, refusal);
    }
    const found = token.kind === 'end' ? 'the statement ends' : `there is ${shortened(token.text)}`;
    return new SqlError(token.at, `${found} where ${expected} should stand`);
  }

  #isSymbolAt(index: number, symbol: Symbols): boolean {
    const token = this.#tokens[index];
    return token?.kind === 'symbol' && token.text === symbol;
  }
}
