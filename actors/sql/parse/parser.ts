import { limits } from '../../../protocol/limits.ts';
import { SqlError } from '../sql-error.ts';
import { type Symbols, type Token, tokensOf } from './lexer.ts';
import {
  type AggregateName,
  aggregateNames,
  type CaseBranch,
  type Comparison,
  type Expression,
  type FunctionName,
  type Literal,
  type OrderItem,
  type Select,
  type SelectItem,
  type Statement,
} from './syntax.ts';

/**
 * Parses one statement, by recursive descent with one method for each rule: a SELECT over the one table `docs` (WHERE, GROUP
 * BY, HAVING, ORDER BY, LIMIT, OFFSET), SHOW COLUMNS or DESCRIBE. Throws `SqlError`. Where other dialects have something that
 * this one has not, the error names it, and says what to write instead where there is such a thing.
 */
export function parseSql(sql: string): Statement {
  return new Parser(tokensOf(sql)).statement();
}

/** Names that end an expression: none of them is a column unless it is quoted. */
const reserved = new Set(
  (
    'select from where group by having order limit offset as and or not in like escape is null case when then else end ' +
    'asc desc nulls between distinct union intersect except join left right inner outer full cross on using true false ' +
    'with over partition exists any all interval cast'
  ).split(' '),
);

/** What is asked for most often and is not there. */
const unsupported: ReadonlyMap<string, string> = new Map(
  Object.entries({
    between: 'BETWEEN is not supported; write x >= a AND x <= b',
    union: 'UNION is not supported: a request is one SELECT',
    intersect: 'INTERSECT is not supported: a request is one SELECT',
    except: 'EXCEPT is not supported: a request is one SELECT',
    join: 'joins are not supported: docs is the only table',
    left: 'joins are not supported: docs is the only table',
    right: 'joins are not supported: docs is the only table',
    inner: 'joins are not supported: docs is the only table',
    outer: 'joins are not supported: docs is the only table',
    full: 'joins are not supported: docs is the only table',
    cross: 'joins are not supported: docs is the only table',
    over: 'window functions are not supported',
    exists: 'subqueries are not supported',
    any: 'subqueries are not supported',
    all: 'ALL is not supported',
    interval: 'INTERVAL is not supported',
    cast: 'CAST is not supported: values have the types that they were written with',
    distinct: 'DISTINCT stands in an aggregate: COUNT(DISTINCT x). Instead of SELECT DISTINCT use GROUP BY',
  }),
);

const functionNames: ReadonlyMap<string, Exclude<FunctionName, 'extract'>> = new Map([
  ['length', 'length'],
  ['char_length', 'length'],
  ['strlen', 'length'],
  ['date_trunc', 'date_trunc'],
  ['regexp_replace', 'regexp_replace'],
  ['coalesce', 'coalesce'],
]);

const allowedFunctions =
  'COUNT, SUM, AVG, MIN, MAX, LENGTH, DATE_TRUNC, EXTRACT, REGEXP_REPLACE, COALESCE, and in WHERE contains and grep';

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

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;
  #expressions = 0;
  #textMatches = 0;
  /** Aggregates do not nest, and text is matched in WHERE alone. */
  #inAggregate = false;
  #clause: 'select' | 'where' | 'group by' | 'having' | 'order by' = 'select';

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  statement(): Statement {
    const statement = this.#isWord('show') || this.#isWord('describe') ? this.#show() : this.#select();
    this.#takeSymbol(';');
    if (this.#token.kind !== 'end') throw this.#unexpected('the end of the statement');
    return statement;
  }

  #show(): Statement {
    const isShow = this.#takeWord('show');
    if (isShow) this.#expectWord('columns');
    else this.#expectWord('describe');
    const hasTable = isShow ? this.#takeWord('from') : !this.#isEnd;
    if (hasTable) this.#table();
    return { kind: 'showColumns' };
  }

  get #isEnd(): boolean {
    return this.#token.kind === 'end' || this.#isSymbol(';');
  }

  #select(): Select {
    if (this.#isWord('with'))
      throw new SqlError(this.#token.at, 'WITH is not supported: a request is one SELECT');
    this.#expectWord('select');
    const items = this.#items();
    this.#expectWord('from');
    this.#table();
    this.#clause = 'where';
    const where = this.#takeWord('where') ? this.#expression() : null;
    this.#clause = 'group by';
    const groupBy = this.#takeWords('group', 'by') ? this.#list(() => this.#expression()) : [];
    this.#clause = 'having';
    const having = this.#takeWord('having') ? this.#expression() : null;
    this.#clause = 'order by';
    const orderBy = this.#takeWords('order', 'by') ? this.#list(() => this.#orderItem()) : [];
    const limit = this.#takeWord('limit') ? this.#count('LIMIT') : null;
    const offset = this.#takeWord('offset') ? this.#count('OFFSET') : 0;
    return { kind: 'select', items, where, groupBy, having, orderBy, limit, offset };
  }

  #items(): readonly SelectItem[] | null {
    if (this.#isWord('distinct')) throw new SqlError(this.#token.at, refusalOf('distinct'));
    const { at } = this.#token;
    if (!this.#takeSymbol('*')) {
      const items = this.#list(() => this.#item());
      if (items.length <= limits.sqlColumnsMax) return items;
      throw new SqlError(at, `an answer has at most ${limits.sqlColumnsMax} columns`);
    }
    if (this.#isSymbol(',')) throw new SqlError(this.#token.at, '* stands alone: name the columns instead');
    return null;
  }

  #item(): SelectItem {
    const expression = this.#expression();
    if (this.#takeWord('as')) return { expression, alias: this.#nameText('a name for the column') };
    const { kind } = this.#token;
    const isBare = kind === 'name' && (this.#token.quoted || !reserved.has(this.#token.text.toLowerCase()));
    return { expression, alias: isBare ? this.#nameText('a name') : null };
  }

  #table(): void {
    const { at } = this.#token;
    const name = this.#nameText('docs');
    if (name.toLowerCase() !== 'docs') throw new SqlError(at, `the only table is docs, not ${show(name)}`);
    if (this.#isSymbol(',')) throw new SqlError(this.#token.at, refusalOf('join'));
  }

  #orderItem(): OrderItem {
    const expression = this.#expression();
    const descending = this.#takeWord('desc');
    if (!descending) this.#takeWord('asc');
    let nullsFirst = false;
    if (this.#takeWord('nulls')) {
      nullsFirst = this.#takeWord('first');
      if (!nullsFirst) this.#expectWord('last');
    }
    return { expression, descending, nullsFirst };
  }

  #count(clause: string): number {
    const token = this.#token;
    const value = token.kind === 'number' && /^\d+$/u.test(token.text) ? Number(token.text) : Number.NaN;
    if (!Number.isSafeInteger(value)) throw this.#unexpected(`a whole number after ${clause}`);
    this.#next++;
    return value;
  }

  #list<T>(item: () => T): T[] {
    const items = [item()];
    while (this.#takeSymbol(',')) items.push(item());
    return items;
  }

  /** Each level of parentheses, CASE, NOT or a call is one deeper. */
  #expression(): Expression {
    if (++this.#depth > limits.sqlDepthMax)
      throw new SqlError(
        this.#token.at,
        `expressions stand in each other at most ${limits.sqlDepthMax} deep`,
      );
    const expression = this.#logic('or', () => this.#logic('and', () => this.#not()));
    this.#depth--;
    return expression;
  }

  #logic(operator: 'and' | 'or', operand: () => Expression): Expression {
    const first = operand();
    if (!this.#isWord(operator)) return first;
    const operands = [first];
    while (this.#takeWord(operator)) operands.push(operand());
    return this.#made({ kind: 'logic', operator, operands, at: first.at });
  }

  #not(): Expression {
    const { at } = this.#token;
    let negations = 0;
    while (this.#takeWord('not')) negations++;
    const operand = this.#predicate();
    return negations % 2 === 0 ? operand : this.#made({ kind: 'not', operand, at });
  }

  #predicate(): Expression {
    const left = this.#sum();
    const { at } = this.#token;
    const operator = this.#token.kind === 'symbol' ? comparisons[this.#token.text] : undefined;
    if (operator !== undefined) {
      this.#next++;
      const compared = this.#made({ kind: 'compare', operator, left, right: this.#sum(), at: left.at });
      if (this.#token.kind === 'symbol' && comparisons[this.#token.text] !== undefined)
        throw new SqlError(this.#token.at, 'comparisons do not follow each other: write a < b AND b < c');
      return compared;
    }
    if (this.#takeWord('is')) {
      const negated = this.#takeWord('not');
      this.#expectWord('null');
      return this.#made({ kind: 'isNull', operand: left, negated, at: left.at });
    }
    const negated = this.#takeWord('not');
    if (this.#takeWord('in')) return this.#in(left, negated);
    if (this.#takeWord('like')) return this.#like(left, negated);
    if (this.#isWord('ilike'))
      throw new SqlError(at, "ILIKE is not supported: contains(text, '…') finds text, ignoring case");
    if (negated || this.#isWord('between')) throw this.#unexpected('IN or LIKE');
    return left;
  }

  #in(operand: Expression, negated: boolean): Expression {
    this.#expectSymbol('(');
    if (this.#isWord('select')) throw new SqlError(this.#token.at, 'subqueries are not supported');
    const { at } = this.#token;
    const expressions = this.#expressions;
    const list = this.#list(() => {
      // They are bounded as a list, and cost little.
      this.#expressions = expressions;
      return this.#literal();
    });
    if (list.length > limits.sqlInListMax)
      throw new SqlError(at, `IN takes at most ${limits.sqlInListMax} values: these are ${list.length}`);
    this.#expectSymbol(')');
    return this.#made({ kind: 'in', operand, list, negated, at: operand.at });
  }

  #like(operand: Expression, negated: boolean): Expression {
    const { at } = this.#token;
    const pattern = this.#string('a pattern in single quotes after LIKE');
    if (pattern.length > limits.patternCharactersMax)
      throw new SqlError(at, `a pattern of LIKE has at most ${limits.patternCharactersMax} characters`);
    let escapedBy: string | null = null;
    if (this.#takeWord('escape')) {
      const escapedAt = this.#token.at;
      escapedBy = this.#string('a character in single quotes after ESCAPE');
      if ([...escapedBy].length !== 1) throw new SqlError(escapedAt, 'ESCAPE takes one character');
    }
    return this.#made({ kind: 'like', operand, pattern, escapedBy, negated, at: operand.at });
  }

  #sum(): Expression {
    let left = this.#unary();
    for (let terms = 1; ; terms++) {
      const { at } = this.#token;
      if (this.#isSymbol('*') || this.#isSymbol('/') || this.#isSymbol('%') || this.#isSymbol('||'))
        throw new SqlError(at, `${(this.#token as { text: string }).text} is not supported: + and - are`);
      const operator = this.#takeSymbol('+') ? '+' : this.#takeSymbol('-') ? '-' : null;
      if (operator === null) return left;
      if (terms === limits.sqlTermsMax)
        throw new SqlError(at, `a sum has at most ${limits.sqlTermsMax} terms`);
      left = this.#made({ kind: 'arithmetic', operator, left, right: this.#unary(), at: left.at });
    }
  }

  /** Of a sign and a number one literal is made. */
  #unary(): Expression {
    const { at } = this.#token;
    let negative = false;
    while (this.#isSymbol('+') || this.#isSymbol('-')) {
      if (this.#isSymbol('-')) negative = !negative;
      this.#next++;
    }
    if (this.#token.kind === 'number') return this.#number(at, negative);
    const operand = this.#primary();
    if (!negative) return operand;
    const zero = this.#made({ kind: 'literal', value: 0n, at });
    return this.#made({ kind: 'arithmetic', operator: '-', left: zero, right: operand, at });
  }

  #primary(): Expression {
    const token = this.#token;
    const { at } = token;
    if (token.kind === 'number') return this.#number(at, false);
    if (token.kind === 'string') {
      this.#next++;
      return this.#made({ kind: 'literal', value: token.text, at });
    }
    if (this.#takeSymbol('(')) {
      if (this.#isWord('select')) throw new SqlError(this.#token.at, 'subqueries are not supported');
      const inner = this.#expression();
      this.#expectSymbol(')');
      return inner;
    }
    if (this.#isSymbol('*')) throw new SqlError(at, '* stands alone after SELECT, or in COUNT(*)');
    if (token.kind !== 'name') throw this.#unexpected('a value, a column or a function');
    return token.quoted ? this.#column() : this.#word(token.text.toLowerCase(), at);
  }

  #word(word: string, at: number): Expression {
    if (word === 'case') return this.#case();
    if (word === 'null' || word === 'true' || word === 'false') {
      this.#next++;
      return this.#made({ kind: 'literal', value: word === 'null' ? null : word === 'true' ? 1n : 0n, at });
    }
    const refusal = unsupported.get(word);
    if (refusal !== undefined) throw new SqlError(at, refusal);
    if (reserved.has(word)) throw this.#unexpected('a value, a column or a function');
    const isCall = this.#tokens[this.#next + 1]?.kind === 'symbol' && this.#isSymbolAt(this.#next + 1, '(');
    return isCall ? this.#call(word, at) : this.#column();
  }

  #column(): Expression {
    const token = this.#token as Extract<Token, { kind: 'name' }>;
    this.#next++;
    if (this.#isSymbol('.'))
      throw new SqlError(this.#token.at, 'columns stand without a table: docs is the only one');
    return this.#made({ kind: 'name', name: token.text, quoted: token.quoted, at: token.at });
  }

  #call(word: string, at: number): Expression {
    this.#next += 2;
    const aggregate = aggregateNames.find((name) => name === word);
    if (aggregate !== undefined) return this.#aggregate(aggregate, at);
    if (word === 'contains' || word === 'grep') return this.#textMatch(word, at);
    if (word === 'extract') return this.#extract(at);
    const name = functionNames.get(word);
    if (name === undefined) {
      const known = ['nullif', 'concat', 'substring', 'lower', 'upper', 'round'].includes(word)
        ? ''
        : ' known here';
      throw new SqlError(
        at,
        `the function ${word.toUpperCase()} is not${known === '' ? ' supported' : known}; these are: ${allowedFunctions}`,
      );
    }
    const args = this.#isSymbol(')') ? [] : this.#list(() => this.#expression());
    this.#expectSymbol(')');
    this.#refuseOver();
    return this.#made({ kind: 'call', name, arguments: args, at });
  }

  #aggregate(name: AggregateName, at: number): Expression {
    if (this.#inAggregate) throw new SqlError(at, 'aggregates do not stand in each other');
    if (this.#clause === 'where' || this.#clause === 'group by')
      throw new SqlError(
        at,
        `an aggregate can not stand in ${this.#clause.toUpperCase()}; HAVING takes them`,
      );
    this.#inAggregate = true;
    const isStar = name === 'count' && this.#takeSymbol('*');
    const distinct = !isStar && this.#takeWord('distinct');
    const argument = isStar ? null : this.#expression();
    if (this.#isSymbol(',')) throw new SqlError(this.#token.at, `${name.toUpperCase()} takes one value`);
    this.#expectSymbol(')');
    this.#refuseOver();
    this.#inAggregate = false;
    const counts = distinct && name !== 'min' && name !== 'max';
    return this.#made({ kind: 'aggregate', name, argument, distinct: counts, at });
  }

  #refuseOver(): void {
    if (this.#isWord('over')) throw new SqlError(this.#token.at, refusalOf('over'));
    if (this.#isWord('filter'))
      throw new SqlError(this.#token.at, 'FILTER is not supported: use CASE inside the aggregate');
  }

  #textMatch(word: 'contains' | 'grep', at: number): Expression {
    if (this.#clause !== 'where') throw new SqlError(at, `${word}() stands in WHERE alone`);
    if (++this.#textMatches > limits.sqlTextPredicatesMax)
      throw new SqlError(at, `a query has at most ${limits.sqlTextPredicatesMax} of contains() and grep()`);
    const example = `${word}(text, '${word === 'grep' ? 'regex' : 'words'}')`;
    const column = this.#token;
    if (column.kind !== 'name' || column.text.toLowerCase() !== 'text')
      throw new SqlError(column.at, `${word} looks at the text of documents: write ${example}`);
    this.#next++;
    this.#expectSymbol(',');
    const query = this.#string(`what to look for, in single quotes: ${example}`);
    this.#expectSymbol(')');
    return this.#made({ kind: 'textMatch', match: { regex: word === 'grep', query, at }, at });
  }

  #extract(at: number): Expression {
    const field = this.#token;
    if (field.kind !== 'name') throw this.#unexpected('MINUTE');
    if (field.text.toLowerCase() !== 'minute')
      throw new SqlError(field.at, `EXTRACT knows MINUTE alone, not ${show(field.text)}`);
    this.#next++;
    this.#expectWord('from');
    const operand = this.#expression();
    this.#expectSymbol(')');
    return this.#made({ kind: 'call', name: 'extract', arguments: [operand], at });
  }

  #case(): Expression {
    const { at } = this.#token;
    this.#expectWord('case');
    if (!this.#isWord('when')) throw new SqlError(this.#token.at, 'CASE is followed by WHEN and a condition');
    const branches: CaseBranch[] = [];
    while (this.#takeWord('when')) {
      const when = this.#expression();
      this.#expectWord('then');
      branches.push({ when, result: this.#expression() });
    }
    const otherwise = this.#takeWord('else') ? this.#expression() : null;
    this.#expectWord('end');
    return this.#made({ kind: 'case', branches, otherwise, at });
  }

  #literal(): Literal {
    const { at } = this.#token;
    const value = this.#unary();
    if (value.kind !== 'literal')
      throw new SqlError(at, "IN takes values, such as 1 or 'a', and no expressions");
    return value;
  }

  #number(at: number, negative: boolean): Literal {
    const { text } = this.#token as { text: string };
    this.#next++;
    const literal = (value: bigint | number): Literal =>
      this.#made({ kind: 'literal', value, at }) as Literal;
    if (/^\d+$/u.test(text)) {
      const value = negative ? -BigInt(text) : BigInt(text);
      // As JSON numbers: what 64 bits do not hold is a float.
      return literal(value > int64Max || value < -int64Max - 1n ? Number(value) : value);
    }
    const value = Number(text);
    if (!Number.isFinite(value)) throw new SqlError(at, 'a number that is too large');
    return literal(negative ? -value : value);
  }

  #string(expected: string): string {
    const token = this.#token;
    if (token.kind !== 'string') throw this.#unexpected(expected);
    this.#next++;
    return token.text;
  }

  #nameText(expected: string): string {
    const token = this.#token;
    if (token.kind !== 'name' || (!token.quoted && reserved.has(token.text.toLowerCase())))
      throw this.#unexpected(expected);
    this.#next++;
    return token.text;
  }

  #made(expression: Expression): Expression {
    if (++this.#expressions > limits.sqlExpressionsMax)
      throw new SqlError(expression.at, `a statement has at most ${limits.sqlExpressionsMax} expressions`);
    return expression;
  }

  get #token(): Token {
    return this.#tokens[this.#next] as Token;
  }

  #isWord(word: string): boolean {
    const token = this.#token;
    return token.kind === 'name' && !token.quoted && token.text.toLowerCase() === word;
  }

  #takeWord(word: string): boolean {
    const isWord = this.#isWord(word);
    if (isWord) this.#next++;
    return isWord;
  }

  #takeWords(first: string, second: string): boolean {
    if (!this.#takeWord(first)) return false;
    this.#expectWord(second);
    return true;
  }

  #expectWord(word: string): void {
    if (!this.#takeWord(word)) throw this.#unexpected(word.toUpperCase());
  }

  #isSymbolAt(index: number, symbol: Symbols): boolean {
    const token = this.#tokens[index];
    return token?.kind === 'symbol' && token.text === symbol;
  }

  #isSymbol(symbol: Symbols): boolean {
    return this.#isSymbolAt(this.#next, symbol);
  }

  #takeSymbol(symbol: Symbols): boolean {
    const isSymbol = this.#isSymbol(symbol);
    if (isSymbol) this.#next++;
    return isSymbol;
  }

  #expectSymbol(symbol: Symbols): void {
    if (!this.#takeSymbol(symbol)) throw this.#unexpected(symbol);
  }

  #unexpected(expected: string): SqlError {
    const token = this.#token;
    if (token.kind === 'name' && !token.quoted) {
      const refusal = unsupported.get(token.text.toLowerCase());
      if (refusal !== undefined) return new SqlError(token.at, refusal);
    }
    const found = token.kind === 'end' ? 'the statement ends' : `there is ${show(token.text)}`;
    return new SqlError(token.at, `${found} where ${expected} should stand`);
  }
}

function refusalOf(word: string): string {
  return unsupported.get(word) ?? `${word.toUpperCase()} is not supported`;
}

function show(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
