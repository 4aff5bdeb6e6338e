import { limits } from '../../../protocol/limits.ts';
import type { TimeUnit } from '../dates.ts';
import type { Expression, Literal } from '../parse/syntax.ts';
import { SqlError } from '../sql-error.ts';
import type { Bound, SqlType } from './bound.ts';
import {
  boundLiteral,
  commonType,
  comparable,
  converted,
  inSeconds,
  isNull,
  isNumeric,
  typeName,
} from './bound-types.ts';
import { type SqlValue, ValueList } from './value-list.ts';

/** What binding an operator or a function needs of the statement around it. */
export interface Binding {
  /** Binds an expression that it is made of. */
  bind(expression: Expression): Bound;
  /** Binds an expression that must be a condition, and refuses others. */
  condition(expression: Expression): Bound;
  /** Answers the one object that stands for all bound expressions that mean the same as this one. */
  one(bound: Bound): Bound;
}

type Of<K extends Expression['kind']> = Extract<Expression, { kind: K }>;

type Operator = Of<'compare' | 'arithmetic' | 'logic' | 'not' | 'in' | 'like' | 'isNull' | 'case' | 'call'>;

/** Binds an operator, CASE or a function. Throws `SqlError` where it does not take the types that it is given. */
export function bindOperator(expression: Operator, binding: Binding): Bound {
  switch (expression.kind) {
    case 'compare':
      return bindCompare(expression, binding);
    case 'arithmetic':
      return bindArithmetic(expression, binding);
    case 'logic': {
      const operands = expression.operands.map((operand) => binding.condition(operand));
      return { kind: 'logic', operator: expression.operator, operands, type: 'int' };
    }
    case 'not':
      return { kind: 'not', operand: binding.condition(expression.operand), type: 'int' };
    case 'in':
      return bindIn(expression, binding);
    case 'like':
      return bindLike(expression, binding);
    case 'isNull': {
      const operand = binding.bind(expression.operand);
      return { kind: 'isNull', operand, negated: expression.negated, type: 'int' };
    }
    case 'case':
      return bindCase(expression, binding);
    case 'call':
      return bindCall(expression, binding);
  }
}

function bindCompare({ operator, left, right, at }: Of<'compare'>, binding: Binding): Bound {
  const [first, second] = comparable(binding.bind(left), binding.bind(right), at);
  const [one, other] = [binding.one(first), binding.one(second)];
  if (isNull(one) || isNull(other)) return boundLiteral(null);
  return { kind: 'compare', operator, left: one, right: other, type: 'int' };
}

function bindArithmetic({ operator, left, right, at }: Of<'arithmetic'>, binding: Binding): Bound {
  const [first, second] = [binding.bind(left), binding.bind(right)];
  for (const { type } of [first, second])
    if (!isNumeric(type)) throw new SqlError(at, `${operator} takes numbers, not ${typeName(type)}`);
  if (isNull(first) || isNull(second)) return boundLiteral(null);
  const type = first.type === 'float' || second.type === 'float' ? 'float' : 'int';
  const [one, other] = [first, second].map((side) => binding.one(converted(side, type)));
  return { kind: 'arithmetic', operator, left: one as Bound, right: other as Bound, type, at };
}

function bindIn({ operand, list, negated, at }: Of<'in'>, binding: Binding): Bound {
  const bound = binding.bind(operand);
  if (isNull(bound)) return boundLiteral(null);
  const given = list.filter(({ value }) => value !== null);
  const hasNull = given.length < list.length;
  let common = bound;
  for (const item of given) [common] = comparable(common, boundLiteral(item.value), item.at);
  const values = given.map((item) =>
    literalValue(comparable(common, boundLiteral(item.value), item.at)[1], item),
  );
  if (values.length > limits.sqlInListMax)
    throw new SqlError(at, `IN takes at most ${limits.sqlInListMax} values: these are ${values.length}`);
  return {
    kind: 'in',
    operand: binding.one(common),
    list: new ValueList(values),
    hasNull,
    negated,
    type: 'int',
  };
}

function bindLike({ operand, pattern, escapedBy, negated, at }: Of<'like'>, binding: Binding): Bound {
  const bound = binding.bind(operand);
  if (isNull(bound)) return boundLiteral(null);
  if (bound.type !== 'text') throw new SqlError(at, `LIKE takes text, not ${typeName(bound.type)}`);
  return { kind: 'like', operand: bound, pattern, escapedBy, negated, type: 'int' };
}

function bindCase({ branches, otherwise, at }: Of<'case'>, binding: Binding): Bound {
  const whens = branches.map(({ when }) => binding.condition(when));
  const results = branches.map(({ result }) => binding.bind(result));
  results.push(otherwise === null ? boundLiteral(null) : binding.bind(otherwise));
  const type = commonType(results, at);
  const [...same] = results.map((result) => binding.one(converted(result, type)));
  const last = same.pop() as Bound;
  return {
    kind: 'case',
    branches: whens.map((when, i) => ({ when, result: same[i] as Bound })),
    otherwise: last,
    type,
  };
}

function bindCall({ name, arguments: args, at }: Of<'call'>, binding: Binding): Bound {
  switch (name) {
    case 'length': {
      const operand = bindArgument(args, { at, name: 'LENGTH', types: ['text'] }, binding);
      return isNull(operand) ? boundLiteral(null) : { kind: 'length', operand, type: 'int' };
    }
    case 'extract': {
      const operand = bindArgument(args, { at, name: 'EXTRACT', types: ['time', 'date', 'int'] }, binding);
      return isNull(operand)
        ? boundLiteral(null)
        : { kind: 'minute', operand: binding.one(inSeconds(operand)), type: 'int' };
    }
    case 'date_trunc':
      return bindTruncate(args, at, binding);
    case 'regexp_replace':
      return bindReplace(args, at, binding);
    case 'coalesce':
      return bindCoalesce(args, at, binding);
  }
}

/** Binds the only argument of a function, which is NULL or of one of some types. */
function bindArgument(
  args: readonly Expression[],
  { at, name, types }: { readonly at: number; readonly name: string; readonly types: readonly SqlType[] },
  binding: Binding,
): Bound {
  const [argument] = args;
  if (argument === undefined || args.length > 1) throw new SqlError(at, `${name} takes one value`);
  const bound = binding.bind(argument);
  if (bound.type !== 'null' && !types.includes(bound.type))
    throw new SqlError(
      argument.at,
      `${name} takes ${types.map(typeName).join(' or ')}, not ${typeName(bound.type)}`,
    );
  return bound;
}

function bindTruncate(args: readonly Expression[], at: number, binding: Binding): Bound {
  const [unit, value] = args;
  if (unit === undefined || value === undefined || args.length > 2)
    throw new SqlError(at, "DATE_TRUNC takes a unit and a value: DATE_TRUNC('hour', x)");
  const name = unit.kind === 'literal' && typeof unit.value === 'string' ? unit.value.toLowerCase() : '';
  if (name !== 'minute' && name !== 'hour' && name !== 'day')
    throw new SqlError(unit.at, "the unit of DATE_TRUNC is 'minute', 'hour' or 'day'");
  const types = ['time', 'date', 'int'] as const;
  const operand = bindArgument([value], { at, name: 'DATE_TRUNC', types }, binding);
  if (isNull(operand)) return boundLiteral(null);
  return {
    kind: 'truncate',
    unit: name satisfies TimeUnit,
    operand: binding.one(inSeconds(operand)),
    type: 'time',
  };
}

function bindReplace(args: readonly Expression[], at: number, binding: Binding): Bound {
  const [value, pattern, replacement] = args;
  if (value === undefined || pattern === undefined || replacement === undefined || args.length > 3)
    throw new SqlError(
      at,
      "REGEXP_REPLACE takes a value, a pattern and a replacement: REGEXP_REPLACE(x, '^a', 'b')",
    );
  const operand = bindArgument([value], { at, name: 'REGEXP_REPLACE', types: ['text'] }, binding);
  const [regex, text] = [stringOf(pattern, 'pattern'), stringOf(replacement, 'replacement')];
  if (text.length > limits.patternCharactersMax)
    throw new SqlError(replacement.at, `a replacement has at most ${limits.patternCharactersMax} characters`);
  if (isNull(operand)) return boundLiteral(null);
  return { kind: 'replace', operand, pattern: regex, replacement: text, at: pattern.at, type: 'text' };
}

function bindCoalesce(args: readonly Expression[], at: number, binding: Binding): Bound {
  if (args.length === 0) throw new SqlError(at, 'COALESCE takes at least one value');
  const bound = args.map((argument) => binding.bind(argument));
  const type = commonType(bound, at);
  const operands = bound
    .filter((value) => !isNull(value))
    .map((value) => binding.one(converted(value, type)));
  const [first] = operands;
  if (first === undefined) return boundLiteral(null);
  return operands.length === 1 ? first : { kind: 'coalesce', operands, type };
}

function literalValue(bound: Bound, { at }: Literal): SqlValue {
  if (bound.kind !== 'literal')
    throw new SqlError(at, "IN takes values, such as 1 or 'a', and no expressions");
  return bound.value;
}

function stringOf(expression: Expression, what: string): string {
  if (expression.kind === 'literal' && typeof expression.value === 'string') return expression.value;
  throw new SqlError(expression.at, `the ${what} of REGEXP_REPLACE is a string in single quotes`);
}
