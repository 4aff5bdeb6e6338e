/**
 * `CREATE TABLE name (column TYPE …, …)`, or the list of columns alone, as an import's `schema`. Types are those of common SQL
 * dialects and of ClickHouse; what a dialect says beside them (NOT NULL, DEFAULT, keys, ENGINE …) is passed over.
 */
import { quoted, wrongParameter } from './import-error.ts';
import type { ColumnKind } from './value-kind.ts';

export interface DefinedColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

const kindsOfTypes: Readonly<Record<string, ColumnKind>> = {
  ...named(
    'int',
    'INT INTEGER BIGINT SMALLINT TINYINT INT2 INT4 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 HUGEINT',
  ),
  ...named('float', 'REAL DOUBLE FLOAT FLOAT4 FLOAT8 FLOAT32 FLOAT64 DECIMAL NUMERIC'),
  ...named('text', 'TEXT VARCHAR CHAR CHARACTER STRING FIXEDSTRING UUID JSON ENUM8 ENUM16'),
  ...named('bool', 'BOOL BOOLEAN'),
  ...named('date', 'DATE DATE32'),
  ...named('time', 'TIMESTAMP DATETIME TIMESTAMPTZ DATETIME64'),
};

function named(kind: ColumnKind, types: string): Record<string, ColumnKind> {
  return Object.fromEntries(types.split(' ').map((type) => [type, kind]));
}

/** Types that only say something of the one in their brackets. */
const wrappers = new Set(['NULLABLE', 'LOWCARDINALITY']);
/** Words with which an item of the list begins that is no column. */
const keyWords = new Set([
  'PRIMARY',
  'UNIQUE',
  'KEY',
  'CONSTRAINT',
  'FOREIGN',
  'INDEX',
  'CHECK',
  'PROJECTION',
]);

/** Throws ApiError 422. */
export function parseTableDefinition(definition: string): DefinedColumn[] {
  const scan = new Scan(tokensOf(definition));
  scan.openList();
  const columns: DefinedColumn[] = [];
  const names = new Set<string>();
  do {
    if (scan.isEnd()) break;
    const column = scan.item();
    if (column === null) continue;
    if (names.has(column.name)) throw wrong(`the column ${quoted(column.name)} comes twice`);
    names.add(column.name);
    columns.push(column);
  } while (scan.takes(','));
  if (columns.length === 0) throw wrong('it defines no column');
  return columns;
}

function wrong(problem: string) {
  return wrongParameter('schema', problem);
}

interface Token {
  readonly text: string;
  /** A name in quotes is never a word of the language. */
  readonly isQuoted: boolean;
}

const tokenPattern =
  /\s+|--[^\n]*|\/\*[\s\S]*?\*\/|"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|\[([^\]]*)\]|('(?:[^']|'')*')|([\p{L}_][\p{L}\p{N}_$]*|\d+(?:\.\d+)?)|(.)/gsu;

function tokensOf(definition: string): Token[] {
  const tokens: Token[] = [];
  for (const [, double, back, bracket, string, word, sign] of definition.matchAll(tokenPattern)) {
    const name = double?.replaceAll('""', '"') ?? back?.replaceAll('``', '`') ?? bracket;
    if (name !== undefined) tokens.push({ text: name, isQuoted: true });
    else if (string !== undefined) tokens.push({ text: string, isQuoted: true });
    else if (word !== undefined || sign !== undefined)
      tokens.push({ text: word ?? sign ?? '', isQuoted: false });
  }
  return tokens;
}

class Scan {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** Past everything before the first column. */
  openList(): void {
    if (this.#word() === 'CREATE') {
      while (this.#at < this.#tokens.length && !this.#isSign('(')) this.#at++;
      if (!this.takes('(')) throw wrong('CREATE TABLE has no list of columns in brackets');
    } else this.takes('(');
  }

  takes(sign: string): boolean {
    if (!this.#isSign(sign)) return false;
    this.#at++;
    return true;
  }

  isEnd(): boolean {
    return this.#at >= this.#tokens.length || this.#isSign(')');
  }

  /** A column, or null for a key or constraint. */
  item(): DefinedColumn | null {
    const first = this.#tokens[this.#at];
    const isKey = keyWords.has(this.#word() ?? '') && !this.#isColumnNamedSo();
    if (first === undefined || isKey) {
      this.#skipItem();
      return null;
    }
    if (!first.isQuoted && !/^[\p{L}_]/u.test(first.text))
      throw wrong(`a column's name was expected, not ${quoted(first.text)}`);
    this.#at++;
    const kind = this.#type(first.text);
    this.#skipItem();
    return { name: first.text, kind };
  }

  /** `key TEXT` is a column, `KEY (a)` and `PRIMARY KEY (a)` are none. */
  #isColumnNamedSo(): boolean {
    const next = this.#tokens[this.#at + 1];
    return next !== undefined && !next.isQuoted && kindsOfTypes[next.text.toUpperCase()] !== undefined;
  }

  #type(column: string): ColumnKind {
    const type = this.#word();
    if (type === null) throw wrong(`the column ${quoted(column)} has no type`);
    this.#at++;
    if (wrappers.has(type) && this.takes('(')) {
      const kind = this.#type(column);
      this.#skipItem();
      this.takes(')');
      return kind;
    }
    const kind = kindsOfTypes[type];
    if (kind === undefined)
      throw wrong(
        `the column ${quoted(column)} has the unknown type ${quoted(type)}: types are INT, BIGINT, SMALLINT, REAL, DOUBLE, FLOAT, DECIMAL, TEXT, VARCHAR, CHAR, BOOL, DATE, TIMESTAMP and DATETIME`,
      );
    return kind;
  }

  /** To the comma or bracket that ends it. */
  #skipItem(): void {
    let depth = 0;
    for (; this.#at < this.#tokens.length; this.#at++) {
      if (this.#isSign('(')) depth++;
      else if (this.#isSign(')')) {
        if (depth === 0) return;
        depth--;
      } else if (depth === 0 && this.#isSign(',')) return;
    }
  }

  #isSign(sign: string): boolean {
    const token = this.#tokens[this.#at];
    return token !== undefined && !token.isQuoted && token.text === sign;
  }

  #word(): string | null {
    const token = this.#tokens[this.#at];
    if (token === undefined || token.isQuoted || !/^[\p{L}_]/u.test(token.text)) return null;
    return token.text.toUpperCase();
  }
}
