import { limits } from '../../../protocol/limits.ts';
import { assert } from '../../../src/base/assert.ts';
import { expressionParts, withParts } from '../parse/expression-parts.ts';
import { shortened } from '../parse/shortened.ts';
import type { Expression, OrderItem, Select, SelectItem, TextMatch } from '../parse/syntax.ts';
import { SqlError } from '../sql-error.ts';
import { type Binding, bindOperator } from './bind-operators.ts';
import type { Bound, BoundAggregate, BoundOrder, Output, SelectPlan, SqlColumn, SqlType } from './bound.ts';
import { allParts, makesTexts } from './bound-parts.ts';
import { boundLiteral, isNumeric, typeName } from './bound-types.ts';
import { repeatedIn, weighed } from './plan-weight.ts';
import { SharedBounds } from './shared-bounds.ts';
import { Aliases, type ColumnNames, columnNames } from './statement-names.ts';

/**
 * Binds a SELECT to the columns that there are, and answers its plan. Pure; throws `SqlError`.
 *
 * Names: a column of that very name, otherwise the one that differs in case alone. GROUP BY and HAVING take an alias where no
 * column has the name, ORDER BY takes the alias first. In a grouped query whatever equals a key stands for it.
 *
 * Each expression is bound once, however often an alias or a position stands for it, and bound expressions that mean the same are
 * one object: binding takes time in proportion to the statement's length.
 */
export function bindSelect(select: Select, columns: readonly SqlColumn[]): SelectPlan {
  return new Binder(select, columns, Number.POSITIVE_INFINITY).plan();
}

/**
 * Binds as `bindSelect` does, in steps of a few milliseconds between which others may have their turn. A step ends by an error
 * wherever it is; the next one begins anew and finds all that was bound, because a bound expression is known by what was written.
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

/** How many expressions are bound in one step. */
const boundAtOnce = 512;

/** How many columns an error sentence lists. */
const shownColumnsMax = 12;

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
  /** What expressions were bound to, over rows and over groups. */
  readonly #boundOfRows = new Map<Expression, Bound>();
  readonly #boundOfGroups = new Map<Expression, Bound>();
  /** Expressions without their aliases. */
  readonly #resolvedOf = new Map<Expression, Expression>();
  /** Whether expressions are bound over groups now. */
  #isGrouped = false;
  #distinctCount = 0;
  /** How many columns WHERE reads; null until it is bound. */
  #whereColumns: number | null = null;
  readonly #boundAtOnce: number;
  #boundCount = 0;
  readonly #binding: Binding = {
    bind: (expression) => this.#bind(expression),
    condition: (expression) => this.#condition(expression),
    one: (bound) => this.#shared.one(bound),
  };

  constructor(select: Select, columns: readonly SqlColumn[], boundAtOnceMax: number) {
    this.#boundAtOnce = boundAtOnceMax;
    this.#select = select;
    this.#known = columns;
    this.#items =
      select.items ??
      columns.map(({ name }) => ({ expression: { kind: 'name', name, quoted: true, at: 0 }, alias: null }));
    this.#names = columnNames(columns);
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
    const all = boundWhere === null ? later : [boundWhere, ...later];
    const parts = allParts(all);
    const whereReplaces = boundWhere !== null && allParts([boundWhere]).some(makesTexts);
    const plan: SelectPlan = {
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
      replaces: parts.some(makesTexts),
      whereReplaces,
      repeated: repeatedIn(all),
      weight: weighed(later, this.#keys, this.#aggregates),
      whereWeight: boundWhere === null ? 0 : weighed([boundWhere], [], []),
    };
    checkPlan(plan, parts);
    return plan;
  }

  #nameOf({ alias, expression }: SelectItem, at: number): string {
    if (alias !== null) return alias;
    if (expression.kind !== 'name') return `c${at + 1}`;
    return this.#names.find(expression)?.name ?? expression.name;
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

  /** Binds ORDER BY, each key once: where it stands for the second time, rows are alike in it. */
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

  /** Answers the item at a position of the list where a whole number stands for it, otherwise null. */
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

  /** Answers the item whose alias a name is that no column has, otherwise null. */
  #byAlias(expression: Expression): Expression | null {
    if (expression.kind !== 'name' || this.#names.find(expression) !== null) return null;
    const item = this.#aliased(expression);
    return item === null ? null : this.#ungroupable(item, this.#isGrouped ? '' : 'GROUP BY');
  }

  /** Answers what `#withoutAliases` does, the same object each time. */
  #resolved(expression: Expression): Expression {
    const known = this.#resolvedOf.get(expression) ?? this.#withoutAliases(expression);
    this.#resolvedOf.set(expression, known);
    return known;
  }

  /** Replaces aliases that no column has as its name by what they stand for. */
  #withoutAliases(expression: Expression): Expression {
    if (expression.kind !== 'name') return withParts(expression, (part) => this.#withoutAliases(part));
    return this.#names.find(expression) === null ? (this.#aliased(expression) ?? expression) : expression;
  }

  #aliased(expression: Expression): Expression | null {
    return expression.kind === 'name' ? this.#aliases.find(expression) : null;
  }

  /** Binds what must be true or false: a condition, or a number, which is true where it is not 0. */
  #condition(expression: Expression): Bound {
    const bound = this.#bind(expression);
    if (isNumeric(bound.type)) return bound;
    throw new SqlError(expression.at, `a condition is needed here, and this is ${typeName(bound.type)}`);
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
    return this.#aggregateParts.isIn(expression);
  }

  /** Answers the slot of the key that an expression is equal to; null where it is equal to none. */
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
        return boundLiteral(expression.value);
      case 'name':
        return this.#name(expression);
      case 'aggregate':
        return this.#aggregate(expression);
      case 'textMatch':
        this.#textMatches.push(expression.match);
        return { kind: 'textMatch', index: this.#textMatches.length - 1, type: 'int' };
      default:
        return bindOperator(expression, this.#binding);
    }
  }

  #name(expression: Extract<Expression, { kind: 'name' }>): Bound {
    const column = this.#names.find(expression);
    if (column === null) throw this.#unknown(expression);
    if (this.#isGrouped)
      throw new SqlError(
        expression.at,
        `${shortened(column.name)} must stand in GROUP BY or in an aggregate`,
      );
    if (column.type === 'null') return boundLiteral(null);
    let index = this.#columnNumbers.get(column.name);
    if (index === undefined) {
      index = this.#columns.push(column.name) - 1;
      this.#columnNumbers.set(column.name, index);
    }
    return { kind: 'column', index, type: column.type };
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
      return new SqlError(
        at,
        `${shortened(name)} may be ${names}: write it as one of them, in double quotes`,
      );
    }
    const names = this.#known.slice(0, shownColumnsMax).map((column) => column.name);
    const more = this.#known.length > names.length ? ', …: SHOW COLUMNS lists them' : '';
    return new SqlError(at, `there is no column ${shortened(name)}; there are: ${names.join(', ')}${more}`);
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
}

/** Asserts that what a plan's expressions point to is there. */
function checkPlan(plan: SelectPlan, parts: readonly Bound[]): void {
  const { columns, whereColumns, textMatches, grouping } = plan;
  const slots = grouping === null ? 0 : grouping.keys.length + grouping.aggregates.length;
  assert(whereColumns <= columns.length, () => `${whereColumns} columns of WHERE, of ${columns.length}`);
  for (const part of parts) {
    if (part.kind !== 'column' && part.kind !== 'slot' && part.kind !== 'textMatch') continue;
    const count = { column: columns.length, slot: slots, textMatch: textMatches.length }[part.kind];
    assert(part.index < count, () => `${part.kind} ${part.index} of ${count}`);
  }
}

/** Knows in which expressions an aggregate stands; each is looked at once. */
class AggregateParts {
  readonly #known = new Map<Expression, boolean>();

  isIn(expression: Expression): boolean {
    let known = this.#known.get(expression);
    if (known === undefined) {
      known = expression.kind === 'aggregate' || expressionParts(expression).some((part) => this.isIn(part));
      this.#known.set(expression, known);
    }
    return known;
  }
}

/** Takes a sum of integers apart into an expression and the integer that is added to it, for `ShiftedSum`. */
function withoutConstant(argument: Bound | null): { readonly argument: Bound | null; readonly plus: bigint } {
  const plain = { argument, plus: 0n };
  if (argument?.kind !== 'arithmetic' || argument.type !== 'int') return plain;
  const { operator, left, right } = argument;
  if (left.kind === 'literal' || right.kind !== 'literal' || typeof right.value !== 'bigint') return plain;
  return { argument: left, plus: operator === '+' ? right.value : -right.value };
}

function typeOfAggregate(name: BoundAggregate['name'], argument: Bound | null, at: number): SqlType {
  const type = argument?.type ?? 'null';
  switch (name) {
    case 'count':
      return 'int';
    case 'min':
    case 'max':
      return type;
    case 'sum':
    case 'avg':
      if (!isNumeric(type))
        throw new SqlError(at, `${name.toUpperCase()} takes numbers, not ${typeName(type)}`);
      return name === 'avg' ? 'float' : type;
  }
}
