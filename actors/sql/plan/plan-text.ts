import { formatDate, formatTime } from '../dates.ts';
import type { Bound, SelectPlan } from './bound.ts';

/** Writes a plan as text, for developers and tests: one step a line, in the order in which steps are taken. Pure. */
export function planText(plan: SelectPlan): string {
  const { columns, whereColumns, where, textMatches, grouping, having, outputs, orderBy, limit, offset } =
    plan;
  const names = { columns, keys: grouping?.keys.length ?? 0 };
  const text = (bound: Bound) => boundText(bound, names);
  const lines = [
    `read ${listed(columns.slice(0, whereColumns))}, then ${listed(columns.slice(whereColumns))}`,
    ...textMatches.map(
      ({ regex, query }, at) => `texts ${at}: ${regex ? 'grep' : 'contains'} ${JSON.stringify(query)}`,
    ),
  ];
  if (where !== null) lines.push(`where ${text(where)}`);
  if (grouping !== null) {
    lines.push(`group by ${listed(grouping.keys.map((key) => boundText(key, { columns, keys: 0 })))}`);
    for (const { name, argument, distinct, plus, type } of grouping.aggregates) {
      const of = argument === null ? '*' : boundText(argument, { columns, keys: 0 });
      lines.push(
        `  ${name}(${distinct ? 'distinct ' : ''}${of}${plus === 0n ? '' : ` plus ${plus}`}): ${type}`,
      );
    }
  }
  if (having !== null) lines.push(`having ${text(having)}`);
  for (const { expression, descending, nullsFirst } of orderBy)
    lines.push(`order by ${text(expression)}${descending ? ' desc' : ''}${nullsFirst ? ' nulls first' : ''}`);
  if (limit !== Number.POSITIVE_INFINITY || offset > 0)
    lines.push(`rows ${offset} to before ${offset + limit}`);
  for (const { name, expression } of outputs) lines.push(`${name}: ${expression.type} = ${text(expression)}`);
  return `${lines.join('\n')}\n`;
}

function listed(items: readonly string[]): string {
  return items.length === 0 ? 'nothing' : items.join(', ');
}

interface Names {
  readonly columns: readonly string[];
  readonly keys: number;
}

function boundText(bound: Bound, names: Names): string {
  const text = (part: Bound) => boundText(part, names);
  switch (bound.kind) {
    case 'literal':
      return literalText(bound);
    case 'column':
      return names.columns[bound.index] ?? '?';
    case 'slot':
      return bound.index < names.keys ? `key ${bound.index}` : `aggregate ${bound.index - names.keys}`;
    case 'textMatch':
      return `texts ${bound.index}`;
    case 'compare':
    case 'arithmetic':
      return `(${text(bound.left)} ${bound.operator} ${text(bound.right)})`;
    case 'logic':
      return `(${bound.operands.map(text).join(` ${bound.operator} `)})`;
    case 'not':
      return `not ${text(bound.operand)}`;
    case 'in': {
      const values = bound.list.values.map((value) => literalText({ value, type: bound.operand.type }));
      const list = [...values, ...(bound.hasNull ? ['null'] : [])].join(', ');
      return `(${text(bound.operand)}${bound.negated ? ' not' : ''} in ${list})`;
    }
    case 'like':
      return `(${text(bound.operand)}${bound.negated ? ' not' : ''} like ${JSON.stringify(bound.pattern)})`;
    case 'isNull':
      return `(${text(bound.operand)} is${bound.negated ? ' not' : ''} null)`;
    case 'case': {
      const branches = bound.branches.map(({ when, result }) => `${text(when)} → ${text(result)}`);
      return `first of [${[...branches, text(bound.otherwise)].join('; ')}]`;
    }
    case 'coalesce':
      return `first not null of [${bound.operands.map(text).join('; ')}]`;
    case 'length':
    case 'minute':
      return `${bound.kind}(${text(bound.operand)})`;
    case 'truncate':
      return `${bound.unit} of ${text(bound.operand)}`;
    case 'replace':
      return `replace ${JSON.stringify(bound.pattern)} by ${JSON.stringify(bound.replacement)} in ${text(bound.operand)}`;
    case 'convert':
      return `${bound.type} of ${text(bound.operand)}`;
  }
}

function literalText({ value, type }: Pick<Extract<Bound, { kind: 'literal' }>, 'value' | 'type'>): string {
  if (value === null) return 'null';
  if (type === 'date') return formatDate(value as number) ?? '?';
  if (type === 'time') return formatTime(value as number) ?? '?';
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
