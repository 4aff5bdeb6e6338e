import type { Expression } from './syntax.ts';

/** The expressions that one is made of directly. */
export function expressionParts(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'aggregate':
      return expression.argument === null ? [] : [expression.argument];
    case 'compare':
    case 'arithmetic':
      return [expression.left, expression.right];
    case 'logic':
      return expression.operands;
    case 'not':
    case 'in':
    case 'like':
    case 'isNull':
      return [expression.operand];
    case 'case': {
      const { branches, otherwise } = expression;
      const parts = branches.flatMap(({ when, result }) => [when, result]);
      return otherwise === null ? parts : [...parts, otherwise];
    }
    case 'call':
      return expression.arguments;
    default:
      return [];
  }
}

/** Copies an expression with others in place of those that it is made of directly. */
export function withParts(expression: Expression, part: (part: Expression) => Expression): Expression {
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
