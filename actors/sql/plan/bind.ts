import { limits } from '../../../protocol/limits.ts';
import { parseDate, parseTime, secondsOfDay, type TimeUnit } from '../dates.ts';
import { expressionParts } from '../parse/names-in.ts';
import type { Expression, Literal, OrderItem, Select, SelectItem, TextMatch } from '../parse/syntax.ts';
import { SqlError } from '../sql-error.ts';
import type {
  Bound,
  BoundAggregate,
  BoundOrder,
  Output,
  SelectPlan,
  SqlColumn,
  SqlType,
  SqlValue,
} from './bound.ts';
import { repeatedIn, weighed } from './plan-weight.ts';
import { SharedBounds } from './shared-bounds.ts';

/**
 * A SELECT and the columns that there are → its plan. Pure.
 *
 * Names: a column of that very name, else the one that differs in case alone. GROUP BY and HAVING take an alias where no column
 * has the name, ORDER BY takes the alias first. In a grouped query whatever equals a key stands for it.
 *
 * Each expression is bound once, however often an alias or a position stands for it, and bound expressions that mean the same are
 * one object: binding takes time in proportion to the statement's length.
 */
export function bindSelect(select: Select, columns: readonly SqlColumn[]): SelectPlan {
  return new Binder(select, columns, Number.POSITIVE_INFINITY).plan();
}

/**
 * As `bindSelect`, in steps of a few milliseconds between which others may have their turn. What is bound is known by its expression, so
 * a step that is over ends wherever it is, and the next one finds all of it made.
 */
export function* bindInSteps(
  select: Select,
  columns: readonly SqlColumn[],
): Generator<void, SelectPlan, void> {
  const binder = new Binder(select, columns, boundAtOnce);
  for (;;) {
    try {
      return binder.plan();
    } catch (error) {
      if (!(error instanceof StepOver)) throw error;
    }
    yield;
  }
}

/** Expressions that are bound in one step. */
const boundAtOnce = 512;

class StepOver extends Error {}

class Binder {
  readonly #select: Select;
  readonly #known: readonly SqlColumn[];
  readonly #items: readonly SelectItem[];
  readonly #columns: string[] = [];
  readonly #textMatches: TextMatch[] = [];
  readonly #keys: Bound[] = [];
  readonly #keyNumbers = new Map<Bound, number>();
  readonly #aggregates: BoundAggregate[] = [];
  readonly #aggregateNumbers = new Map<string, number>();
  readonly #names: ColumnNames;
  readonly #aliases: Aliases;
  readonly #columnNumbers = new Map<string, number>();
  readonly #shared = new SharedBounds();
  readonly #aggregateParts = new AggregateParts();
  /** What expressions were bound to, of rows and of groups. */
  readonly #boundOfRows = new Map<Expression, Bound>();
  readonly #boundOfGroups = new Map<Expression, Bound>();
  readonly #resolvedOf = new Map<Expression, Expression>();
  #isGrouped = false;
  #replaces = false;
  #distinctCount = 0;
  /** Once WHERE is bound. */
  #whereColumns: number | null = null;
  readonly #boundAtOnce: number;
  #boundCount = 0;

  constructor(select: Select, columns: readonly SqlColumn[], boundAtOnceMax: number) {
    this.#boundAtOnce = boundAtOnceMax;
    this.#select = select;
    this.#known = columns;
    this.#items =
      select.items ??
      columns.map(({ name }) => ({ expression: { kind: 'name', name, quoted: true, at: 0 }, alias: null }));
    this.#names = new ColumnNames(columns);
    this.#aliases = new Aliases(this.#items);
  }

  plan(): SelectPlan {
    const { where, groupBy, having, orderBy, limit, offset, items } = this.#select;
    this.#isGrouped = false;
    const boundWhere = where === null ? null : this.#condition(where);
    this.#whereColumns ??= this.#columns.length;
    const whereColumns = this.#whereColumns;
    for (const key of groupBy) this.#addKey(key);
    this.#isGrouped =
      groupBy.length > 0 ||
      having !== null ||
      this.#items.some(({ expression }) => this.#hasAggregate(expression)) ||
      orderBy.some(({ expression }) => this.#hasAggregate(expression));
    if (this.#isGrouped && items === null)
      throw new SqlError(0, 'SELECT * does not go with GROUP BY, HAVING or aggregates: name what is wanted');
    const outputs = this.#items.map(
      (item, at): Output => ({
        name: this.#nameOf(item, at),
        expression: this.#bind(item.expression),
      }),
    );
    const boundHaving = having === null ? null : this.#condition(this.#resolved(having));
    const order = this.#order(orderBy);
    const ofRows = [...this.#keys, ...this.#aggregates.flatMap(({ argument }) => argument ?? [])];
    const shown = [...outputs, ...order].map(({ expression }) => expression);
    const later = [...ofRows, ...(boundHaving === null ? [] : [boundHaving]), ...shown];
    return {
      columns: this.#columns,
      whereColumns,
      textMatches: this.#textMatches,
      where: boundWhere,
      grouping: this.#isGrouped ? { keys: this.#keys, aggregates: this.#aggregates } : null,
      having: boundHaving,
      outputs,
      orderBy: order,
      limit: limit ?? Number.POSITIVE_INFINITY,
      offset,
      replaces: this.#replaces,
      repeated: repeatedIn(boundWhere === null ? later : [boundWhere, ...later]),
      weight: weighed(later, this.#keys, this.#aggregates),
      whereWeight: boundWhere === null ? 0 : weighed([boundWhere], [], []),
    };
  }

  #nameOf({ alias, expression }: SelectItem, at: number): string {
    if (alias !== null) return alias;
    if (expression.kind !== 'name') return `c${at + 1}`;
    return this.#find(expression)?.name ?? expression.name;
  }

  #addKey(expression: Expression): void {
    const bound = this.#bind(
      this.#byPosition(expression, 'GROUP BY') ?? this.#byAlias(expression) ?? expression,
    );
    if (this.#keyNumbers.has(bound)) return;
    this.#keyNumbers.set(bound, this.#keys.length);
    if (this.#keys.push(bound) > limits.sqlGroupKeysMax)
      throw new SqlError(expression.at, `GROUP BY takes at most ${limits.sqlGroupKeysMax} keys`);
  }

  /** Each key once: the second time rows are alike in it. */
  #order(items: readonly OrderItem[]): readonly BoundOrder[] {
    const keys = new Map<Bound, BoundOrder>();
    for (const item of items) {
      const key = this.#orderBy(item);
      if (keys.has(key.expression)) continue;
      keys.set(key.expression, key);
      if (keys.size > limits.sqlOrderKeysMax)
        throw new SqlError(item.expression.at, `ORDER BY takes at most ${limits.sqlOrderKeysMax} keys`);
    }
    return [...keys.values()];
  }

  #orderBy({ expression, descending, nullsFirst }: OrderItem): BoundOrder {
    const meant =
      this.#byPosition(expression, 'ORDER BY') ?? this.#aliased(expression) ?? this.#resolved(expression);
    return { expression: this.#bind(meant), descending, nullsFirst };
  }

  /** What stands at a position of the list, for a whole number. */
  #byPosition(expression: Expression, clause: string): Expression | null {
    if (expression.kind !== 'literal' || typeof expression.value !== 'bigint') return null;
    const item = this.#items[Number(expression.value) - 1];
    if (item !== undefined) return this.#ungroupable(item.expression, clause);
    throw new SqlError(expression.at, `${clause} takes positions from 1 to ${this.#items.length}`);
  }

  #ungroupable(expression: Expression, clause: string): Expression {
    if (clause === 'GROUP BY' && this.#hasAggregate(expression))
      throw new SqlError(expression.at, 'an aggregate can not be grouped by');
    return expression;
  }

  /** A name that no column has, and an item does. */
  #byAlias(expression: Expression): Expression | null {
    if (expression.kind !== 'name' || this.#find(expression) !== null) return null;
    const item = this.#aliased(expression);
    return item === null ? null : this.#ungroupable(item, this.#isGrouped ? '' : 'GROUP BY');
  }

  /** As `#withoutAliases`, the same object each time. */
  #resolved(expression: Expression): Expression {
    const known = this.#resolvedOf.get(expression) ?? this.#withoutAliases(expression);
    this.#resolvedOf.set(expression, known);
    return known;
  }

  /** With what they stand for in place of aliases that no column has as its name. */
  #withoutAliases(expression: Expression): Expression {
    if (expression.kind !== 'name') return mapped(expression, (part) => this.#withoutAliases(part));
    return this.#find(expression) === null ? (this.#aliased(expression) ?? expression) : expression;
  }

  #aliased(expression: Expression): Expression | null {
    if (expression.kind !== 'name') return null;
    return this.#aliases.find(expression);
  }

  /** Whatever is true or false: a condition, or a number that is not 0. */
  #condition(expression: Expression): Bound {
    const bound = this.#bind(expression);
    if (bound.type === 'int' || bound.type === 'float' || bound.type === 'null') return bound;
    throw new SqlError(expression.at, `a condition is needed here, and this is ${named(bound.type)}`);
  }

  #bind(expression: Expression): Bound {
    const known = this.#isGrouped ? this.#boundOfGroups : this.#boundOfRows;
    let bound = known.get(expression);
    if (bound === undefined) {
      bound = this.#shared.one(this.#isGrouped ? this.#bindOfGroups(expression) : this.#bindEach(expression));
      known.set(expression, bound);
      if (++this.#boundCount % this.#boundAtOnce === 0) throw new StepOver();
    }
    return bound;
  }

  #bindOfGroups(expression: Expression): Bound {
    if (expression.kind !== 'literal' && !this.#hasAggregate(expression)) {
      const slot = this.#keyLike(expression);
      if (slot !== null) return slot;
    }
    return this.#bindEach(expression);
  }

  #hasAggregate(expression: Expression): boolean {
    return this.#aggregateParts.stand(expression);
  }

  /** The key that this is; null where it is none. */
  #keyLike(expression: Expression): Bound | null {
    const bound = this.#ungrouped(() => this.#bind(expression));
    const index = this.#keyNumbers.get(bound);
    return index === undefined ? null : { kind: 'slot', index, type: bound.type };
  }

  #ungrouped(bind: () => Bound): Bound {
    this.#isGrouped = false;
    const bound = bind();
    this.#isGrouped = true;
    return bound;
  }

  #bindEach(expression: Expression): Bound {
    switch (expression.kind) {
      case 'literal':
        return literal(expression.value);
      case 'name':
        return this.#name(expression);
      case 'aggregate':
        return this.#aggregate(expression);
      case 'compare':
        return this.#compare(expression);
      case 'arithmetic':
        return this.#arithmetic(expression);
      case 'logic': {
        const operands = expression.operands.map((operand) => this.#condition(operand));
        return { kind: 'logic', operator: expression.operator, operands, type: 'int' };
      }
      case 'not':
        return { kind: 'not', operand: this.#condition(expression.operand), type: 'int' };
      case 'in':
        return this.#in(expression);
      case 'like':
        return this.#like(expression);
      case 'isNull':
        return {
          kind: 'isNull',
          operand: this.#bind(expression.operand),
          negated: expression.negated,
          type: 'int',
        };
      case 'case':
        return this.#case(expression);
      case 'call':
        return this.#call(expression);
      case 'textMatch':
        this.#textMatches.push(expression.match);
        return { kind: 'textMatch', index: this.#textMatches.length - 1, type: 'int' };
    }
  }

  #name(expression: Extract<Expression, { kind: 'name' }>): Bound {
    const column = this.#find(expression);
    if (column === null) throw this.#unknown(expression);
    if (this.#isGrouped)
      throw new SqlError(expression.at, `${show(column.name)} must stand in GROUP BY or in an aggregate`);
    if (column.type === 'null') return literal(null);
    let index = this.#columnNumbers.get(column.name);
    if (index === undefined) {
      index = this.#columns.push(column.name) - 1;
      this.#columnNumbers.set(column.name, index);
    }
    return { kind: 'column', index, type: column.type };
  }

  #find(name: { readonly name: string; readonly quoted: boolean }): SqlColumn | null {
    return this.#names.find(name);
  }

  #unknown({ name, at }: Extract<Expression, { kind: 'name' }>): SqlError {
    if (name.toLowerCase() === 'text')
      return new SqlError(
        at,
        "the text of documents is no column: contains(text, 'words') and grep(text, 'regex') look at it",
      );
    const alike = this.#names.alike(name);
    if (alike.length > 1) {
      const names = alike.map((column) => `"${column.name}"`).join(' and ');
      return new SqlError(at, `${show(name)} may be ${names}: write it as one of them, in double quotes`);
    }
    const names = this.#known.slice(0, 12).map((column) => column.name);
    const more = this.#known.length > names.length ? ', …: SHOW COLUMNS lists them' : '';
    return new SqlError(at, `there is no column ${show(name)}; there are: ${names.join(', ')}${more}`);
  }

  #aggregate(expression: Extract<Expression, { kind: 'aggregate' }>): Bound {
    const { name, distinct, at } = expression;
    const given =
      expression.argument === null
        ? null
        : this.#ungrouped(() => this.#bind(expression.argument as Expression));
    const type = typeOfAggregate(name, given, at);
    const { argument, plus } =
      name === 'sum' && !distinct ? withoutConstant(given) : { argument: given, plus: 0n };
    const key = `${name} ${distinct} ${plus} ${argument === null ? '*' : this.#shared.number(argument)}`;
    let number = this.#aggregateNumbers.get(key);
    if (number === undefined) {
      this.#checkAggregates(distinct, at);
      number = this.#aggregates.push({ name, argument, distinct, plus, type, at }) - 1;
      this.#aggregateNumbers.set(key, number);
    }
    return { kind: 'slot', index: this.#keys.length + number, type };
  }

  #checkAggregates(distinct: boolean, at: number): void {
    if (this.#aggregates.length === limits.sqlAggregatesMax)
      throw new SqlError(at, `a statement has at most ${limits.sqlAggregatesMax} aggregates`);
    if (distinct && ++this.#distinctCount > limits.sqlDistinctAggregatesMax)
      throw new SqlError(
        at,
        `a statement has at most ${limits.sqlDistinctAggregatesMax} aggregates with DISTINCT`,
      );
  }

  /** Both as one type, so that they can be compared. */
  #alike(left: Bound, right: Bound, at: number): [Bound, Bound] {
    const [first, second] = alike(left, right, at);
    return [this.#shared.one(first), this.#shared.one(second)];
  }

  #as(bound: Bound, type: SqlType): Bound {
    return this.#shared.one(as(bound, type));
  }

  #compare({ operator, left, right, at }: Extract<Expression, { kind: 'compare' }>): Bound {
    const [first, second] = this.#alike(this.#bind(left), this.#bind(right), at);
    if (isNull(first) || isNull(second)) return literal(null);
    return { kind: 'compare', operator, left: first, right: second, type: 'int' };
  }

  #arithmetic({ operator, left, right, at }: Extract<Expression, { kind: 'arithmetic' }>): Bound {
    const [first, second] = [this.#bind(left), this.#bind(right)];
    for (const { type } of [first, second])
      if (!isNumeric(type)) throw new SqlError(at, `${operator} takes numbers, not ${named(type)}`);
    if (isNull(first) || isNull(second)) return literal(null);
    const type = first.type === 'float' || second.type === 'float' ? 'float' : 'int';
    return {
      kind: 'arithmetic',
      operator,
      left: this.#as(first, type),
      right: this.#as(second, type),
      type,
      at,
    };
  }

  #in({ operand, list, negated, at }: Extract<Expression, { kind: 'in' }>): Bound {
    const bound = this.#bind(operand);
    if (isNull(bound)) return literal(null);
    const given = list.filter(({ value }) => value !== null);
    const hasNull = given.length < list.length;
    let common = bound;
    for (const item of given) [common] = alike(common, literal(item.value), item.at);
    const values = given.map((item) => literalOf(alike(common, literal(item.value), item.at)[1], item));
    if (values.length > limits.sqlInListMax) throw new SqlError(at, 'too many values');
    return { kind: 'in', operand: this.#shared.one(common), values, hasNull, negated, type: 'int' };
  }

  #like({ operand, pattern, escapedBy, negated, at }: Extract<Expression, { kind: 'like' }>): Bound {
    const bound = this.#bind(operand);
    if (isNull(bound)) return literal(null);
    if (bound.type !== 'text') throw new SqlError(at, `LIKE takes text, not ${named(bound.type)}`);
    return { kind: 'like', operand: bound, pattern, escapedBy, negated, type: 'int' };
  }

  #case({ branches, otherwise, at }: Extract<Expression, { kind: 'case' }>): Bound {
    const whens = branches.map(({ when }) => this.#condition(when));
    const results = branches.map(({ result }) => this.#bind(result));
    results.push(otherwise === null ? literal(null) : this.#bind(otherwise));
    const type = commonType(results, at);
    const [...same] = results.map((result) => this.#as(result, type));
    const last = same.pop() as Bound;
    return {
      kind: 'case',
      branches: whens.map((when, i) => ({ when, result: same[i] as Bound })),
      otherwise: last,
      type,
    };
  }

  #call({ name, arguments: args, at }: Extract<Expression, { kind: 'call' }>): Bound {
    switch (name) {
      case 'length': {
        const operand = this.#argument(args, { at, name: 'LENGTH', types: ['text'] });
        return isNull(operand) ? literal(null) : { kind: 'length', operand, type: 'int' };
      }
      case 'extract': {
        const operand = this.#argument(args, { at, name: 'EXTRACT', types: ['time', 'date', 'int'] });
        return isNull(operand)
          ? literal(null)
          : { kind: 'minute', operand: this.#shared.one(asSeconds(operand)), type: 'int' };
      }
      case 'date_trunc':
        return this.#truncate(args, at);
      case 'regexp_replace':
        return this.#replace(args, at);
      case 'coalesce':
        return this.#coalesce(args, at);
    }
  }

  #argument(
    args: readonly Expression[],
    { at, name, types }: { readonly at: number; readonly name: string; readonly types: readonly SqlType[] },
  ): Bound {
    const [argument] = args;
    if (argument === undefined || args.length > 1) throw new SqlError(at, `${name} takes one value`);
    const bound = this.#bind(argument);
    if (bound.type !== 'null' && !types.includes(bound.type))
      throw new SqlError(
        argument.at,
        `${name} takes ${types.map(named).join(' or ')}, not ${named(bound.type)}`,
      );
    return bound;
  }

  #truncate(args: readonly Expression[], at: number): Bound {
    const [unit, value] = args;
    if (unit === undefined || value === undefined || args.length > 2)
      throw new SqlError(at, "DATE_TRUNC takes a unit and a value: DATE_TRUNC('hour', x)");
    const name = unit.kind === 'literal' && typeof unit.value === 'string' ? unit.value.toLowerCase() : '';
    if (name !== 'minute' && name !== 'hour' && name !== 'day')
      throw new SqlError(unit.at, "the unit of DATE_TRUNC is 'minute', 'hour' or 'day'");
    const operand = this.#argument([value], { at, name: 'DATE_TRUNC', types: ['time', 'date', 'int'] });
    if (isNull(operand)) return literal(null);
    return {
      kind: 'truncate',
      unit: name satisfies TimeUnit,
      operand: this.#shared.one(asSeconds(operand)),
      type: 'time',
    };
  }

  #replace(args: readonly Expression[], at: number): Bound {
    const [value, pattern, replacement] = args;
    if (value === undefined || pattern === undefined || replacement === undefined || args.length > 3)
      throw new SqlError(
        at,
        "REGEXP_REPLACE takes a value, a pattern and a replacement: REGEXP_REPLACE(x, '^a', 'b')",
      );
    const operand = this.#argument([value], { at, name: 'REGEXP_REPLACE', types: ['text'] });
    const [regex, text] = [stringOf(pattern, 'pattern'), stringOf(replacement, 'replacement')];
    if (text.length > limits.patternCharactersMax)
      throw new SqlError(
        replacement.at,
        `a replacement has at most ${limits.patternCharactersMax} characters`,
      );
    if (isNull(operand)) return literal(null);
    this.#replaces = true;
    return { kind: 'replace', operand, pattern: regex, replacement: text, at: pattern.at, type: 'text' };
  }

  #coalesce(args: readonly Expression[], at: number): Bound {
    if (args.length === 0) throw new SqlError(at, 'COALESCE takes at least one value');
    const bound = args.map((argument) => this.#bind(argument));
    const type = commonType(bound, at);
    const operands = bound.filter((value) => !isNull(value)).map((value) => this.#as(value, type));
    const [first] = operands;
    if (first === undefined) return literal(null);
    return operands.length === 1 ? first : { kind: 'coalesce', operands, type };
  }
}

/** Names of columns, by themselves and by how they read in lower case. */
class ColumnNames {
  readonly #exact = new Map<string, SqlColumn>();
  readonly #lower = new Map<string, SqlColumn[]>();

  constructor(columns: readonly SqlColumn[]) {
    for (const column of columns) {
      if (!this.#exact.has(column.name)) this.#exact.set(column.name, column);
      const lower = column.name.toLowerCase();
      const same = this.#lower.get(lower);
      if (same === undefined) this.#lower.set(lower, [column]);
      else same.push(column);
    }
  }

  /** The column of that very name, else the only one that differs in case alone. */
  find({ name, quoted }: { readonly name: string; readonly quoted: boolean }): SqlColumn | null {
    const exact = this.#exact.get(name);
    if (exact !== undefined || quoted) return exact ?? null;
    const alike = this.alike(name);
    return alike.length === 1 ? (alike[0] as SqlColumn) : null;
  }

  /** Those that differ in case alone, or not at all. */
  alike(name: string): readonly SqlColumn[] {
    return this.#lower.get(name.toLowerCase()) ?? [];
  }
}

/** What aliases stand for: the first item that has the name, else the first that differs in case alone. */
class Aliases {
  readonly #exact = new Map<string, Expression>();
  readonly #lower = new Map<string, Expression>();

  constructor(items: readonly SelectItem[]) {
    for (const { alias, expression } of items) {
      if (alias === null) continue;
      if (!this.#exact.has(alias)) this.#exact.set(alias, expression);
      const lower = alias.toLowerCase();
      if (!this.#lower.has(lower)) this.#lower.set(lower, expression);
    }
  }

  find({ name, quoted }: { readonly name: string; readonly quoted: boolean }): Expression | null {
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    return quoted ? null : (this.#lower.get(name.toLowerCase()) ?? null);
  }
}

/** In which expressions an aggregate stands. Each is looked at once. */
class AggregateParts {
  readonly #known = new Map<Expression, boolean>();

  stand(expression: Expression): boolean {
    let known = this.#known.get(expression);
    if (known === undefined) {
      known = expression.kind === 'aggregate' || expressionParts(expression).some((part) => this.stand(part));
      this.#known.set(expression, known);
    }
    return known;
  }
}

/** With other parts in place of an expression's own. */
function mapped(expression: Expression, part: (part: Expression) => Expression): Expression {
  switch (expression.kind) {
    case 'aggregate':
      return { ...expression, argument: expression.argument === null ? null : part(expression.argument) };
    case 'compare':
    case 'arithmetic':
      return { ...expression, left: part(expression.left), right: part(expression.right) };
    case 'logic':
      return { ...expression, operands: expression.operands.map(part) };
    case 'not':
    case 'in':
    case 'like':
    case 'isNull':
      return { ...expression, operand: part(expression.operand) };
    case 'case': {
      const branches = expression.branches.map(({ when, result }) => ({
        when: part(when),
        result: part(result),
      }));
      return {
        ...expression,
        branches,
        otherwise: expression.otherwise === null ? null : part(expression.otherwise),
      };
    }
    case 'call':
      return { ...expression, arguments: expression.arguments.map(part) };
    default:
      return expression;
  }
}

function literal(value: Literal['value']): Bound {
  const type: SqlType =
    value === null
      ? 'null'
      : typeof value === 'bigint'
        ? 'int'
        : typeof value === 'number'
          ? 'float'
          : 'text';
  return { kind: 'literal', value, type };
}

function isNull({ type }: Bound): boolean {
  return type === 'null';
}

function isNumeric(type: SqlType): boolean {
  return type === 'int' || type === 'float' || type === 'null';
}

function isDated(type: SqlType): boolean {
  return type === 'date' || type === 'time';
}

const typeNames: Readonly<Record<SqlType, string>> = {
  int: 'an int',
  float: 'a float',
  text: 'text',
  date: 'a date',
  time: 'a time',
  null: 'NULL',
};

function named(type: SqlType): string {
  return typeNames[type];
}

/** Both as one type, so that they can be compared. */
function alike(left: Bound, right: Bound, at: number): [Bound, Bound] {
  if (isNull(left) || isNull(right) || left.type === right.type) return [left, right];
  if (isDated(left.type) && isText(right)) return datedWith(left, right, at);
  if (isDated(right.type) && isText(left)) {
    const [second, first] = datedWith(right, left, at);
    return [first, second];
  }
  const type = widest(left.type, right.type);
  if (type === null)
    throw new SqlError(at, `${named(left.type)} and ${named(right.type)} can not be compared`);
  return [as(left, type), as(right, type)];
}

function isText(bound: Bound): boolean {
  return bound.type === 'text' && bound.kind === 'literal';
}

/** A string that reads as a date or a time is one beside such. */
function datedWith(dated: Bound, text: Bound, at: number): [Bound, Bound] {
  const written = (text as { value: SqlValue }).value as string;
  const days = parseDate(written);
  if (dated.type === 'date' && days !== null) return [dated, { kind: 'literal', value: days, type: 'date' }];
  const seconds = parseTime(written);
  if (seconds === null)
    throw new SqlError(at, `${show(written)} does not read as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS`);
  return [as(dated, 'time'), { kind: 'literal', value: seconds, type: 'time' }];
}

function widest(a: SqlType, b: SqlType): SqlType | null {
  if (a === b || b === 'null') return a;
  if (a === 'null') return b;
  if (isNumeric(a) && isNumeric(b)) return 'float';
  return isDated(a) && isDated(b) ? 'time' : null;
}

function commonType(values: readonly Bound[], at: number): SqlType {
  let type: SqlType = 'null';
  for (const value of values) {
    const wider = widest(type, value.type);
    if (wider === null)
      throw new SqlError(at, `${named(type)} and ${named(value.type)} can not be results of one expression`);
    type = wider;
  }
  return type;
}

function as(bound: Bound, type: SqlType): Bound {
  if (bound.type === type || isNull(bound)) return { ...bound, type: isNull(bound) ? type : bound.type };
  if (bound.kind === 'literal') {
    const value = bound.type === 'date' ? (bound.value as number) * secondsOfDay : Number(bound.value);
    return { kind: 'literal', value, type };
  }
  return { kind: 'convert', operand: bound, type };
}

function asSeconds(bound: Bound): Bound {
  return bound.type === 'date' ? as(bound, 'time') : bound;
}

function literalOf(bound: Bound, { at }: Literal): SqlValue {
  if (bound.kind !== 'literal') throw new SqlError(at, 'IN takes values');
  return bound.value;
}

function stringOf(expression: Expression, what: string): string {
  if (expression.kind === 'literal' && typeof expression.value === 'string') return expression.value;
  throw new SqlError(expression.at, `the ${what} of REGEXP_REPLACE is a string in single quotes`);
}

/** An integer and one that is known, apart. */
function withoutConstant(argument: Bound | null): { readonly argument: Bound | null; readonly plus: bigint } {
  const plain = { argument, plus: 0n };
  if (argument?.kind !== 'arithmetic' || argument.type !== 'int') return plain;
  const { operator, left, right } = argument;
  if (left.kind === 'literal' || right.kind !== 'literal' || typeof right.value !== 'bigint') return plain;
  return { argument: left, plus: operator === '+' ? right.value : -right.value };
}

function typeOfAggregate(name: BoundAggregate['name'], argument: Bound | null, at: number): SqlType {
  if (name === 'count') return 'int';
  const type = argument?.type ?? 'null';
  if (name === 'min' || name === 'max') return type;
  if (!isNumeric(type)) throw new SqlError(at, `${name.toUpperCase()} takes numbers, not ${named(type)}`);
  return name === 'avg' ? 'float' : type;
}

function show(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
