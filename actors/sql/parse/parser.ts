import { limits } from '../../../protocol/limits.ts';
import { SqlError } from '../sql-error.ts';
import { allowedFunctions, functionNames, refusalOf, reserved, unsupported } from './keywords.ts';
import { type Symbols, type Token, tokensOf } from './lexer.ts';
import { shortened } from './shortened.ts';
import {
  type AggregateName,
  aggregateNames,
  type CaseBranch,
  type Comparison,
  type Expression,
  type Literal,
  type OrderItem,
  type Select,
  type SelectItem,
  type Statement,
} from './syntax.ts';
import { TokenCursor } from './token-cursor.ts';

/**
 * Parses one statement, by recursive descent with one method for each rule: a SELECT over the one table `docs` (WHERE, GROUP
 * BY, HAVING, ORDER BY, LIMIT, OFFSET), SHOW COLUMNS or DESCRIBE. Throws `SqlError`. Where other dialects have something that
 * this one has not, the error names it, and says what to write instead where there is such a thing.
 */
export function parseSql(sql: string): Statement {
  return new Parser(tokensOf(sql)).statement();
}

const comparisons: Readonly<Partial<Record<Symbols, Comparison>>> = {
  '=': '=',
  '<>': '<>',
  '!=': '<>',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
};

const int64Max = 2n ** 63n - 1n;

/** Functions that SQL has elsewhere, and not here. */
const missingFunctions: ReadonlySet<string> = new Set([
  'nullif',
  'concat',
  'substring',
  'lower',
  'upper',
  'round',
]);

class Parser {
  readonly #tokens: TokenCursor;
  #depth = 0;
  #expressions = 0;
  #textMatches = 0;
  /** Whether an aggregate is being parsed: another must not stand in it. */
  #inAggregate = false;
  /** The clause that is being parsed: some allow no aggregates, and WHERE alone has text matches. */
  #clause: 'select' | 'where' | 'group by' | 'having' | 'order by' = 'select';

  constructor(tokens: readonly Token[]) {
    this.#tokens = new TokenCursor(tokens);
  }

  statement(): Statement {
    const statement =
      this.#tokens.isWord('show') || this.#tokens.isWord('describe') ? this.#show() : this.#select();
    this.#tokens.takeSymbol(';');
    if (this.#tokens.token.kind !== 'end') throw this.#tokens.unexpected('the end of the statement');
    return statement;
  }

  #show(): Statement {
    const isShow = this.#tokens.takeWord('show');
    if (isShow) this.#tokens.expectWord('columns');
    else this.#tokens.expectWord('describe');
    const hasTable = isShow ? this.#tokens.takeWord('from') : !this.#isEnd;
    if (hasTable) this.#table();
    return { kind: 'showColumns' };
  }

  get #isEnd(): boolean {
    return this.#tokens.token.kind === 'end' || this.#tokens.isSymbol(';');
  }

  #select(): Select {
    if (this.#tokens.isWord('with'))
      throw new SqlError(this.#tokens.token.at, 'WITH is not supported: a request is one SELECT');
    this.#tokens.expectWord('select');
    const items = this.#items();
    this.#tokens.expectWord('from');
    this.#table();
    this.#clause = 'where';
    const where = this.#tokens.takeWord('where') ? this.#expression() : null;
    this.#clause = 'group by';
    const groupBy = this.#tokens.takeWords('group', 'by') ? this.#list(() => this.#expression()) : [];
    this.#clause = 'having';
    const having = this.#tokens.takeWord('having') ? this.#expression() : null;
    this.#clause = 'order by';
    const orderBy = this.#tokens.takeWords('order', 'by') ? this.#list(() => this.#orderItem()) : [];
    const limit = this.#tokens.takeWord('limit') ? this.#count('LIMIT') : null;
    const offset = this.#tokens.takeWord('offset') ? this.#count('OFFSET') : 0;
    return { kind: 'select', items, where, groupBy, having, orderBy, limit, offset };
  }

  #items(): readonly SelectItem[] | null {
    if (this.#tokens.isWord('distinct')) throw new SqlError(this.#tokens.token.at, refusalOf('distinct'));
    const { at } = this.#tokens.token;
    if (!this.#tokens.takeSymbol('*')) {
      const items = this.#list(() => this.#item());
      if (items.length <= limits.sqlColumnsMax) return items;
      throw new SqlError(
        at,
        `an answer has at most ${limits.sqlColumnsMax} columns: these are ${items.length}`,
      );
    }
    if (this.#tokens.isSymbol(','))
      throw new SqlError(this.#tokens.token.at, '* stands alone: name the columns instead');
    return null;
  }

  #item(): SelectItem {
    const expression = this.#expression();
    if (this.#tokens.takeWord('as'))
      return { expression, alias: this.#tokens.expectName('a name for the column') };
    const { kind } = this.#tokens.token;
    const isBare =
      kind === 'name' && (this.#tokens.token.quoted || !reserved.has(this.#tokens.token.text.toLowerCase()));
    return { expression, alias: isBare ? this.#tokens.expectName('a name') : null };
  }

  #table(): void {
    const { at } = this.#tokens.token;
    const name = this.#tokens.expectName('docs');
    if (name.toLowerCase() !== 'docs')
      throw new SqlError(at, `the only table is docs, not ${shortened(name)}`);
    if (this.#tokens.isSymbol(',')) throw new SqlError(this.#tokens.token.at, refusalOf('join'));
  }

  #orderItem(): OrderItem {
    const expression = this.#expression();
    const descending = this.#tokens.takeWord('desc');
    if (!descending) this.#tokens.takeWord('asc');
    let nullsFirst = false;
    if (this.#tokens.takeWord('nulls')) {
      nullsFirst = this.#tokens.takeWord('first');
      if (!nullsFirst) this.#tokens.expectWord('last');
    }
    return { expression, descending, nullsFirst };
  }

  #count(clause: string): number {
    const token = this.#tokens.token;
    const value = token.kind === 'number' && /^\d+$/u.test(token.text) ? Number(token.text) : Number.NaN;
    if (!Number.isSafeInteger(value)) throw this.#tokens.unexpected(`a whole number after ${clause}`);
    this.#tokens.advance();
    return value;
  }

  #list<T>(item: () => T): T[] {
    const items = [item()];
    while (this.#tokens.takeSymbol(',')) items.push(item());
    return items;
  }

  /** Parses an expression. Each level of parentheses, CASE or a call is one deeper, and depth has a limit. */
  #expression(): Expression {
    if (++this.#depth > limits.sqlDepthMax)
      throw new SqlError(
        this.#tokens.token.at,
        `expressions are nested more than ${limits.sqlDepthMax} deep: use fewer parentheses, calls or CASE`,
      );
    const expression = this.#logic('or', () => this.#logic('and', () => this.#not()));
    this.#depth--;
    return expression;
  }

  #logic(operator: 'and' | 'or', operand: () => Expression): Expression {
    const first = operand();
    if (!this.#tokens.isWord(operator)) return first;
    const operands = [first];
    while (this.#tokens.takeWord(operator)) operands.push(operand());
    return this.#made({ kind: 'logic', operator, operands, at: first.at });
  }

  #not(): Expression {
    const { at } = this.#tokens.token;
    let negations = 0;
    while (this.#tokens.takeWord('not')) negations++;
    const operand = this.#predicate();
    return negations % 2 === 0 ? operand : this.#made({ kind: 'not', operand, at });
  }

  #predicate(): Expression {
    const left = this.#sum();
    const { at } = this.#tokens.token;
    const operator = this.#tokens.token.kind === 'symbol' ? comparisons[this.#tokens.token.text] : undefined;
    if (operator !== undefined) {
      this.#tokens.advance();
      const compared = this.#made({ kind: 'compare', operator, left, right: this.#sum(), at: left.at });
      if (this.#tokens.token.kind === 'symbol' && comparisons[this.#tokens.token.text] !== undefined)
        throw new SqlError(
          this.#tokens.token.at,
          'comparisons do not follow each other: write a < b AND b < c',
        );
      return compared;
    }
    if (this.#tokens.takeWord('is')) {
      const negated = this.#tokens.takeWord('not');
      this.#tokens.expectWord('null');
      return this.#made({ kind: 'isNull', operand: left, negated, at: left.at });
    }
    const negated = this.#tokens.takeWord('not');
    if (this.#tokens.takeWord('in')) return this.#in(left, negated);
    if (this.#tokens.takeWord('like')) return this.#like(left, negated);
    if (this.#tokens.isWord('ilike'))
      throw new SqlError(at, "ILIKE is not supported: contains(text, '…') finds text, ignoring case");
    if (negated || this.#tokens.isWord('between')) throw this.#tokens.unexpected('IN or LIKE');
    return left;
  }

  #in(operand: Expression, negated: boolean): Expression {
    this.#tokens.expectSymbol('(');
    if (this.#tokens.isWord('select'))
      throw new SqlError(
        this.#tokens.token.at,
        'subqueries are not supported: send the inner SELECT as a request of its own',
      );
    const { at } = this.#tokens.token;
    const expressions = this.#expressions;
    const list = this.#list(() => {
      // The values do not count as expressions: the list has a limit of its own, and they cost little.
      this.#expressions = expressions;
      return this.#literal();
    });
    if (list.length > limits.sqlInListMax)
      throw new SqlError(at, `IN takes at most ${limits.sqlInListMax} values: these are ${list.length}`);
    this.#tokens.expectSymbol(')');
    return this.#made({ kind: 'in', operand, list, negated, at: operand.at });
  }

  #like(operand: Expression, negated: boolean): Expression {
    const { at } = this.#tokens.token;
    const pattern = this.#tokens.expectString('a pattern in single quotes after LIKE');
    if (pattern.length > limits.patternCharactersMax)
      throw new SqlError(at, `a pattern of LIKE has at most ${limits.patternCharactersMax} characters`);
    let escapedBy: string | null = null;
    if (this.#tokens.takeWord('escape')) {
      const escapedAt = this.#tokens.token.at;
      escapedBy = this.#tokens.expectString('a character in single quotes after ESCAPE');
      if ([...escapedBy].length !== 1) throw new SqlError(escapedAt, 'ESCAPE takes one character');
    }
    return this.#made({ kind: 'like', operand, pattern, escapedBy, negated, at: operand.at });
  }

  #sum(): Expression {
    let left = this.#unary();
    for (let terms = 1; ; terms++) {
      const { at } = this.#tokens.token;
      if (
        this.#tokens.isSymbol('*') ||
        this.#tokens.isSymbol('/') ||
        this.#tokens.isSymbol('%') ||
        this.#tokens.isSymbol('||')
      )
        throw new SqlError(
          at,
          `${(this.#tokens.token as { text: string }).text} is not supported: + and - are`,
        );
      const operator = this.#tokens.takeSymbol('+') ? '+' : this.#tokens.takeSymbol('-') ? '-' : null;
      if (operator === null) return left;
      if (terms === limits.sqlTermsMax)
        throw new SqlError(at, `a sum has at most ${limits.sqlTermsMax} terms`);
      left = this.#made({ kind: 'arithmetic', operator, left, right: this.#unary(), at: left.at });
    }
  }

  /** Parses signs and what they stand before; with a number they become one literal. */
  #unary(): Expression {
    const { at } = this.#tokens.token;
    let negative = false;
    while (this.#tokens.isSymbol('+') || this.#tokens.isSymbol('-')) {
      if (this.#tokens.isSymbol('-')) negative = !negative;
      this.#tokens.advance();
    }
    if (this.#tokens.token.kind === 'number') return this.#number(at, negative);
    const operand = this.#primary();
    if (!negative) return operand;
    const zero = this.#made({ kind: 'literal', value: 0n, at });
    return this.#made({ kind: 'arithmetic', operator: '-', left: zero, right: operand, at });
  }

  #primary(): Expression {
    const token = this.#tokens.token;
    const { at } = token;
    if (token.kind === 'number') return this.#number(at, false);
    if (token.kind === 'string') {
      this.#tokens.advance();
      return this.#made({ kind: 'literal', value: token.text, at });
    }
    if (this.#tokens.takeSymbol('(')) {
      if (this.#tokens.isWord('select'))
        throw new SqlError(
          this.#tokens.token.at,
          'subqueries are not supported: send the inner SELECT as a request of its own',
        );
      const inner = this.#expression();
      this.#tokens.expectSymbol(')');
      return inner;
    }
    if (this.#tokens.isSymbol('*')) throw new SqlError(at, '* stands alone after SELECT, or in COUNT(*)');
    if (token.kind !== 'name') throw this.#tokens.unexpected('a value, a column or a function');
    return token.quoted ? this.#column() : this.#word(token.text.toLowerCase(), at);
  }

  #word(word: string, at: number): Expression {
    if (word === 'case') return this.#case();
    if (word === 'null' || word === 'true' || word === 'false') {
      this.#tokens.advance();
      return this.#made({ kind: 'literal', value: word === 'null' ? null : word === 'true' ? 1n : 0n, at });
    }
    const refusal = unsupported.get(word);
    if (refusal !== undefined) throw new SqlError(at, refusal);
    if (reserved.has(word)) throw this.#tokens.unexpected('a value, a column or a function');
    const isCall = this.#tokens.isFollowedBy('(');
    return isCall ? this.#call(word, at) : this.#column();
  }

  #column(): Expression {
    const token = this.#tokens.token as Extract<Token, { kind: 'name' }>;
    this.#tokens.advance();
    if (this.#tokens.isSymbol('.'))
      throw new SqlError(this.#tokens.token.at, 'columns stand without a table: docs is the only one');
    return this.#made({ kind: 'name', name: token.text, quoted: token.quoted, at: token.at });
  }

  #call(word: string, at: number): Expression {
    this.#tokens.advance();
    this.#tokens.advance();
    const aggregate = aggregateNames.find((name) => name === word);
    if (aggregate !== undefined) return this.#aggregate(aggregate, at);
    if (word === 'contains' || word === 'grep') return this.#textMatch(word, at);
    if (word === 'extract') return this.#extract(at);
    const name = functionNames.get(word);
    if (name === undefined) {
      const why = missingFunctions.has(word) ? 'supported' : 'known here';
      throw new SqlError(
        at,
        `the function ${word.toUpperCase()} is not ${why}; these are: ${allowedFunctions}`,
      );
    }
    const args = this.#tokens.isSymbol(')') ? [] : this.#list(() => this.#expression());
    this.#tokens.expectSymbol(')');
    this.#refuseOver();
    return this.#made({ kind: 'call', name, arguments: args, at });
  }

  #aggregate(name: AggregateName, at: number): Expression {
    if (this.#inAggregate) throw new SqlError(at, 'an aggregate can not stand in another');
    if (this.#clause === 'where' || this.#clause === 'group by')
      throw new SqlError(
        at,
        `an aggregate can not stand in ${this.#clause.toUpperCase()}: HAVING takes aggregates`,
      );
    this.#inAggregate = true;
    const isStar = name === 'count' && this.#tokens.takeSymbol('*');
    const distinct = !isStar && this.#tokens.takeWord('distinct');
    const argument = isStar ? null : this.#expression();
    if (this.#tokens.isSymbol(','))
      throw new SqlError(this.#tokens.token.at, `${name.toUpperCase()} takes one value`);
    this.#tokens.expectSymbol(')');
    this.#refuseOver();
    this.#inAggregate = false;
    const counts = distinct && name !== 'min' && name !== 'max';
    return this.#made({ kind: 'aggregate', name, argument, distinct: counts, at });
  }

  #refuseOver(): void {
    if (this.#tokens.isWord('over')) throw new SqlError(this.#tokens.token.at, refusalOf('over'));
    if (this.#tokens.isWord('filter'))
      throw new SqlError(this.#tokens.token.at, 'FILTER is not supported: use CASE inside the aggregate');
  }

  #textMatch(word: 'contains' | 'grep', at: number): Expression {
    if (this.#clause !== 'where') throw new SqlError(at, `${word}() stands in WHERE alone`);
    if (++this.#textMatches > limits.sqlTextPredicatesMax)
      throw new SqlError(at, `a query has at most ${limits.sqlTextPredicatesMax} of contains() and grep()`);
    const example = `${word}(text, '${word === 'grep' ? 'regex' : 'words'}')`;
    const column = this.#tokens.token;
    if (column.kind !== 'name' || column.text.toLowerCase() !== 'text')
      throw new SqlError(column.at, `${word} looks at the text of documents: write ${example}`);
    this.#tokens.advance();
    this.#tokens.expectSymbol(',');
    const query = this.#tokens.expectString(`what to look for, in single quotes: ${example}`);
    this.#tokens.expectSymbol(')');
    return this.#made({ kind: 'textMatch', match: { regex: word === 'grep', query, at }, at });
  }

  #extract(at: number): Expression {
    const field = this.#tokens.token;
    if (field.kind !== 'name') throw this.#tokens.unexpected('MINUTE');
    if (field.text.toLowerCase() !== 'minute')
      throw new SqlError(field.at, `EXTRACT knows MINUTE alone, not ${shortened(field.text)}`);
    this.#tokens.advance();
    this.#tokens.expectWord('from');
    const operand = this.#expression();
    this.#tokens.expectSymbol(')');
    return this.#made({ kind: 'call', name: 'extract', arguments: [operand], at });
  }

  #case(): Expression {
    const { at } = this.#tokens.token;
    this.#tokens.expectWord('case');
    if (!this.#tokens.isWord('when'))
      throw new SqlError(this.#tokens.token.at, 'CASE is followed by WHEN and a condition');
    const branches: CaseBranch[] = [];
    while (this.#tokens.takeWord('when')) {
      const when = this.#expression();
      this.#tokens.expectWord('then');
      branches.push({ when, result: this.#expression() });
    }
    const otherwise = this.#tokens.takeWord('else') ? this.#expression() : null;
    this.#tokens.expectWord('end');
    return this.#made({ kind: 'case', branches, otherwise, at });
  }

  #literal(): Literal {
    const { at } = this.#tokens.token;
    const value = this.#unary();
    if (value.kind !== 'literal')
      throw new SqlError(at, "IN takes values, such as 1 or 'a', and no expressions");
    return value;
  }

  #number(at: number, negative: boolean): Literal {
    const { text } = this.#tokens.token as { text: string };
    this.#tokens.advance();
    const literal = (value: bigint | number): Literal =>
      this.#made({ kind: 'literal', value, at }) as Literal;
    if (/^\d+$/u.test(text)) {
      const value = negative ? -BigInt(text) : BigInt(text);
      // As with JSON numbers, what 64 bits do not hold is a float.
      return literal(value > int64Max || value < -int64Max - 1n ? Number(value) : value);
    }
    const value = Number(text);
    if (!Number.isFinite(value)) throw new SqlError(at, 'a number is too large: floats go up to 1.8e308');
    return literal(negative ? -value : value);
  }

  #made(expression: Expression): Expression {
    if (++this.#expressions > limits.sqlExpressionsMax)
      throw new SqlError(expression.at, `a statement has at most ${limits.sqlExpressionsMax} expressions`);
    return expression;
  }
}
