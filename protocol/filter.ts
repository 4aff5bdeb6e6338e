/**
 * The metadata filter of search and count. Hand-written, because its keys are the user's data: they live in arrays
 * and are never the names of an object of ours.
 *
 * A filter is a list of terms that must all hold. `{key: 3}` is one `eq`, `{key: [1, 2]}` one `in`,
 * `{key: {gte: 1, lt: 5}}` two terms of the same key.
 */
import { ApiError } from './errors.ts';
import { limits } from './limits.ts';

export type MetaValue = null | boolean | number | bigint | string | readonly MetaValue[] | MetaObject;
/** A JSON object; integers beyond 2^53 are bigint, every other number is a number. */
export interface MetaObject {
  readonly [key: string]: MetaValue;
}

export type RangeOperator = 'gt' | 'gte' | 'lt' | 'lte';
/** What a filter compares with: a scalar, null or an array; never an object, which reads as operators. */
export type FilterValue = Exclude<MetaValue, MetaObject>;

export type FilterTerm =
  | { readonly key: string; readonly operator: 'eq' | 'ne'; readonly value: FilterValue }
  | { readonly key: string; readonly operator: 'in'; readonly values: readonly FilterValue[] }
  | { readonly key: string; readonly operator: RangeOperator; readonly value: number | bigint };

export interface Filter {
  readonly terms: readonly FilterTerm[];
}

const operatorNames = 'in, eq, ne, gt, gte, lt, lte';
/** How many characters of the caller's key an error message shows. */
const shownKeyCharactersMax = 64;

/** The filter that a value of parsed JSON is; its integers may be bigint. Throws ApiError `invalid` with `fields.filter`. */
export function parseFilter(value: unknown): Filter {
  if (!isJsonObject(value)) throw refuse('filter must be a JSON object');
  checkSize(value);
  const keys = Object.keys(value);
  if (keys.length > limits.filterKeysMax)
    throw refuse(`filter may have at most ${limits.filterKeysMax} keys`);
  return { terms: keys.flatMap((key) => termsOfKey(key, value[key])) };
}

function refuse(problem: string): ApiError {
  return new ApiError('invalid', problem.startsWith('filter ') ? problem : `filter: ${problem}`, {
    fields: { filter: problem },
  });
}

function refuseKey(key: string, problem: string): ApiError {
  const shown = key.length <= shownKeyCharactersMax ? key : `${key.slice(0, shownKeyCharactersMax)}…`;
  return refuse(`key ${JSON.stringify(shown.toWellFormed())}: ${problem}`);
}

function termsOfKey(key: string, condition: unknown): FilterTerm[] {
  if (Array.isArray(condition)) return [{ key, operator: 'in', values: inValues(key, condition) }];
  if (!isJsonObject(condition)) return [{ key, operator: 'eq', value: filterValue(key, condition) }];
  const operators = Object.keys(condition);
  if (operators.length === 0)
    throw refuseKey(key, `an object must name an operator (allowed: ${operatorNames})`);
  return operators.map((operator) => termOf(key, operator, condition[operator]));
}

function termOf(key: string, operator: string, operand: unknown): FilterTerm {
  switch (operator) {
    case 'eq':
    case 'ne':
      return { key, operator, value: filterValue(key, operand) };
    case 'in':
      if (!Array.isArray(operand)) throw refuseKey(key, 'operator in takes an array');
      return { key, operator, values: inValues(key, operand) };
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      if (!isFiniteNumber(operand)) throw refuseKey(key, `range operator ${operator} takes a number`);
      return { key, operator, value: operand };
    default:
      throw refuseKey(
        key,
        `unknown operator ${JSON.stringify(shorten(operator))} (allowed: ${operatorNames})`,
      );
  }
}

function shorten(name: string): string {
  return name.slice(0, shownKeyCharactersMax).toWellFormed();
}

function inValues(key: string, values: readonly unknown[]): FilterValue[] {
  if (values.length > limits.filterInValuesMax) {
    throw refuseKey(key, `in takes at most ${limits.filterInValuesMax} values`);
  }
  return values.map((value) => filterValue(key, value));
}

function filterValue(key: string, value: unknown): FilterValue {
  if (!isJsonValue(value)) throw refuseKey(key, 'value is not JSON or its number is out of range');
  if (isJsonObject(value)) {
    throw refuseKey(key, 'value must be a string, a number, true, false, null or an array of them');
  }
  return value;
}

function isFiniteNumber(value: unknown): value is number | bigint {
  return typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value));
}

function isJsonObject(value: unknown): value is MetaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is JSON. Call it after `checkSize`, which bounds the nesting. */
function isJsonValue(value: unknown): value is MetaValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value !== 'object') return isFiniteNumber(value);
  return (Array.isArray(value) ? value : Object.values(value)).every(isJsonValue);
}

function checkSize(filter: MetaObject): void {
  if (jsonBytes(filter, 1) > limits.filterBytesMax) {
    throw refuse(`filter may have at most ${limits.filterBytesMax} bytes of JSON`);
  }
}

/** About the bytes of compact JSON (escapes are counted as what they stand for). Refuses what nests too deep. */
function jsonBytes(value: unknown, depth: number): number {
  if (depth > limits.jsonDepthMax) throw refuse(`filter may nest at most ${limits.jsonDepthMax} deep`);
  if (typeof value === 'string') return Buffer.byteLength(value) + 2;
  if (typeof value !== 'object' || value === null) return String(value).length;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const element of value) bytes += jsonBytes(element, depth + 1) + 1;
    return bytes;
  }
  for (const [key, member] of Object.entries(value)) {
    bytes += Buffer.byteLength(key) + 4 + jsonBytes(member, depth + 1);
  }
  return bytes;
}

/**
 * The plain meaning of a filter over one document's meta, which faster evaluators are compared with.
 * A missing key fails every condition except `ne`.
 */
export function filterMatches(filter: Filter, meta: ReadonlyMap<string, MetaValue> | MetaObject): boolean {
  return filter.terms.every((term) => termMatches(term, memberOf(meta, term.key)));
}

function memberOf(meta: ReadonlyMap<string, MetaValue> | MetaObject, key: string): MetaValue | undefined {
  if (isMap(meta)) return meta.get(key);
  // Only the object's own keys: `constructor` and `toString` are not in the document.
  return Object.hasOwn(meta, key) ? meta[key] : undefined;
}

function isMap(meta: ReadonlyMap<string, MetaValue> | MetaObject): meta is ReadonlyMap<string, MetaValue> {
  return meta instanceof Map;
}

/** Whether one value, or undefined for a missing key, satisfies one term. */
export function termMatches(term: FilterTerm, value: MetaValue | undefined): boolean {
  switch (term.operator) {
    case 'eq':
      return value !== undefined && jsonEquals(value, term.value);
    case 'ne':
      return value === undefined || !jsonEquals(value, term.value);
    case 'in':
      return value !== undefined && term.values.some((each) => jsonEquals(value, each));
    default:
      return isNumber(value) && rangeHolds(term.operator, value, term.value);
  }
}

function rangeHolds(operator: RangeOperator, value: number | bigint, bound: number | bigint): boolean {
  // JavaScript compares a number with a bigint by their exact mathematical values.
  if (operator === 'gt') return value > bound;
  if (operator === 'gte') return value >= bound;
  return operator === 'lt' ? value < bound : value <= bound;
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Equal JSON values: 3 equals 3.0 and 3n, strings compare exactly, arrays and objects by all their parts. */
export function jsonEquals(left: MetaValue, right: MetaValue): boolean {
  if (isNumber(left)) return isNumber(right) && left >= right && left <= right;
  if (typeof left !== 'object' || left === null) return left === right;
  if (typeof right !== 'object' || right === null) return false;
  if (isArray(left) || isArray(right)) return isArray(left) && isArray(right) && arraysEqual(left, right);
  return objectsEqual(left, right);
}

function isArray(value: MetaValue): value is readonly MetaValue[] {
  return Array.isArray(value);
}

function arraysEqual(left: readonly MetaValue[], right: readonly MetaValue[]): boolean {
  if (left.length !== right.length) return false;
  return left.every((element, index) => {
    const other = right[index];
    return other !== undefined && jsonEquals(element, other);
  });
}

function objectsEqual(left: MetaObject, right: MetaObject): boolean {
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => {
    const mine = left[key];
    const other = Object.hasOwn(right, key) ? right[key] : undefined;
    return mine !== undefined && other !== undefined && jsonEquals(mine, other);
  });
}
