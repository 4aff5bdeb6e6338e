import { parseDate, parseTime, secondsOfDay } from '../dates.ts';
import { shortened } from '../parse/shortened.ts';
import type { Literal } from '../parse/syntax.ts';
import { SqlError } from '../sql-error.ts';
import type { Bound, SqlType } from './bound.ts';
import type { SqlValue } from './value-list.ts';

/** Makes a value of a statement a bound literal, of the type that it was written with. */
export function boundLiteral(value: Literal['value']): Bound {
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

/** Whether an expression is NULL in every row. */
export function isNull({ type }: Bound): boolean {
  return type === 'null';
}

export function isNumeric(type: SqlType): boolean {
  return type === 'int' || type === 'float' || type === 'null';
}

const typeNames: Readonly<Record<SqlType, string>> = {
  int: 'an int',
  float: 'a float',
  text: 'text',
  date: 'a date',
  time: 'a time',
  null: 'NULL',
};

/** A type as error sentences call it. */
export function typeName(type: SqlType): string {
  return typeNames[type];
}

/**
 * Converts two expressions to one type, in which they can be compared: a string beside a date or a time is read as one. Throws
 * `SqlError` where there is no such type; `at`: where the comparison stands.
 */
export function comparable(left: Bound, right: Bound, at: number): [Bound, Bound] {
  if (isNull(left) || isNull(right) || left.type === right.type) return [left, right];
  if (isDated(left.type) && isTextLiteral(right)) return datedWith(left, right, at);
  if (isDated(right.type) && isTextLiteral(left)) {
    const [second, first] = datedWith(right, left, at);
    return [first, second];
  }
  const type = widest(left.type, right.type);
  if (type === null)
    throw new SqlError(at, `${typeName(left.type)} and ${typeName(right.type)} can not be compared`);
  return [converted(left, type), converted(right, type)];
}

/** Answers the type that results of CASE or COALESCE have in common. Throws `SqlError` where there is none. */
export function commonType(values: readonly Bound[], at: number): SqlType {
  let type: SqlType = 'null';
  for (const value of values) {
    const wider = widest(type, value.type);
    if (wider === null)
      throw new SqlError(
        at,
        `${typeName(type)} and ${typeName(value.type)} can not be results of one expression`,
      );
    type = wider;
  }
  return type;
}

/** Converts an expression to a type that is as wide as its own: an int to a float, a date to the time of its begin. */
export function converted(bound: Bound, type: SqlType): Bound {
  if (bound.type === type || isNull(bound)) return { ...bound, type: isNull(bound) ? type : bound.type };
  if (bound.kind === 'literal') {
    const value = bound.type === 'date' ? (bound.value as number) * secondsOfDay : Number(bound.value);
    return { kind: 'literal', value, type };
  }
  return { kind: 'convert', operand: bound, type };
}

/** Makes a date the time of its begin, which counts seconds as numbers and times do. */
export function inSeconds(bound: Bound): Bound {
  return bound.type === 'date' ? converted(bound, 'time') : bound;
}

function isDated(type: SqlType): boolean {
  return type === 'date' || type === 'time';
}

function isTextLiteral(bound: Bound): boolean {
  return bound.type === 'text' && bound.kind === 'literal';
}

function datedWith(dated: Bound, text: Bound, at: number): [Bound, Bound] {
  const written = (text as { value: SqlValue }).value as string;
  const days = parseDate(written);
  if (dated.type === 'date' && days !== null) return [dated, { kind: 'literal', value: days, type: 'date' }];
  const seconds = parseTime(written);
  if (seconds === null)
    throw new SqlError(at, `${shortened(written)} does not read as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS`);
  return [converted(dated, 'time'), { kind: 'literal', value: seconds, type: 'time' }];
}

function widest(a: SqlType, b: SqlType): SqlType | null {
  if (a === b || b === 'null') return a;
  if (a === 'null') return b;
  if (isNumeric(a) && isNumeric(b)) return 'float';
  return isDated(a) && isDated(b) ? 'time' : null;
}
