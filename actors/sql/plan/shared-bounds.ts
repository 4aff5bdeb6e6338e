import type { Bound } from './bound.ts';
import type { SqlValue } from './value-list.ts';

/**
 * Keeps the bound expressions of one statement, each once: those that mean the same are one object with one number, which is how they are
 * compared. `at` is no part of what an expression means.
 */
export class SharedBounds {
  readonly #numbers = new Map<Bound, number>();
  readonly #byKey = new Map<string, Bound>();

  /** Answers the one object that stands for all expressions that mean the same. */
  one(bound: Bound): Bound {
    if (this.#numbers.has(bound)) return bound;
    const key = this.#keyOf(bound);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    this.#byKey.set(key, bound);
    this.#numbers.set(bound, this.#numbers.size);
    return bound;
  }

  /** Answers a number that expressions share if they mean the same, and only then. */
  number(bound: Bound): number {
    const one = this.one(bound);
    return this.#numbers.get(one) as number;
  }

  /** Makes the key of an expression from the numbers of its parts, in time that is linear in how many it has. */
  #keyOf(bound: Bound): string {
    const of = (part: Bound) => this.number(part);
    const { kind, type } = bound;
    switch (kind) {
      case 'literal':
        return `${kind} ${type} ${valueKey(bound.value)}`;
      case 'column':
      case 'slot':
      case 'textMatch':
        return `${kind} ${type} ${bound.index}`;
      case 'compare':
      case 'arithmetic':
        return `${kind} ${type} ${bound.operator} ${of(bound.left)} ${of(bound.right)}`;
      case 'logic':
        return `${kind} ${bound.operator} ${bound.operands.map(of).join(' ')}`;
      case 'coalesce':
        return `${kind} ${type} ${bound.operands.map(of).join(' ')}`;
      case 'in': {
        const { operand, list, hasNull, negated } = bound;
        return `${kind} ${of(operand)} ${hasNull} ${negated} ${list.values.map(valueKey).join(',')}`;
      }
      case 'like': {
        const { operand, pattern, escapedBy, negated } = bound;
        return `${kind} ${of(operand)} ${negated} ${JSON.stringify([pattern, escapedBy])}`;
      }
      case 'isNull':
        return `${kind} ${bound.negated} ${of(bound.operand)}`;
      case 'case': {
        const branches = bound.branches.map(({ when, result }) => `${of(when)}:${of(result)}`);
        return `${kind} ${type} ${branches.join(' ')} ${of(bound.otherwise)}`;
      }
      case 'truncate':
        return `${kind} ${bound.unit} ${of(bound.operand)}`;
      case 'replace':
        return `${kind} ${of(bound.operand)} ${JSON.stringify([bound.pattern, bound.replacement])}`;
      case 'not':
      case 'length':
      case 'minute':
      case 'convert':
        return `${kind} ${type} ${of(bound.operand)}`;
    }
  }
}

/** Writes a value so that 1, 1.0 and '1' differ. */
function valueKey(value: SqlValue): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return typeof value === 'bigint' ? `${value}n` : String(value);
}
