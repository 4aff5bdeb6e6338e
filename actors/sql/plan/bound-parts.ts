import type { Bound } from './bound.ts';

/** The expressions that one is made of directly. */
export function boundParts(bound: Bound): readonly Bound[] {
  switch (bound.kind) {
    case 'literal':
    case 'column':
    case 'slot':
    case 'textMatch':
      return [];
    case 'compare':
    case 'arithmetic':
      return [bound.left, bound.right];
    case 'logic':
    case 'coalesce':
      return bound.operands;
    case 'case':
      return [...bound.branches.flatMap(({ when, result }) => [when, result]), bound.otherwise];
    default:
      return [bound.operand];
  }
}

/** Lists expressions and all that they are made of, each once. */
export function allParts(roots: readonly Bound[]): readonly Bound[] {
  const seen = new Set<Bound>(roots);
  // A set's iterator comes to what is added meanwhile.
  for (const part of seen) for (const each of boundParts(part)) seen.add(each);
  return [...seen];
}

/**
 * The kinds that make texts of texts, by the names of their functions. What they make of a text and of a frame is bounded
 * (`sqlReplacedBytesMax`, `sqlReplacedFrameBytesMax`), their frames are smaller, and they may interrupt.
 */
const textMakers = { replace: 'REGEXP_REPLACE' } as const satisfies Partial<Record<Bound['kind'], string>>;

export type TextMaker = Extract<Bound, { kind: keyof typeof textMakers }>;

export function makesTexts(bound: Bound): bound is TextMaker {
  return bound.kind in textMakers;
}

/** The name by which a statement calls it. */
export function textMakerName({ kind }: TextMaker): string {
  return textMakers[kind];
}

/** Whether evaluating an expression may take longer than a turn, and so throw an Interruption. */
export function mayInterrupt(bound: Bound): boolean {
  return allParts([bound]).some((part) => part.kind === 'like' || makesTexts(part));
}

/** Adds the columns that an expression reads to `columns`; answers whether it depends on columns alone. */
export function collectColumns(bound: Bound, columns: Set<number>): boolean {
  let isPure = true;
  for (const part of allParts([bound])) {
    if (part.kind === 'column') columns.add(part.index);
    else if (part.kind === 'slot' || part.kind === 'textMatch') isPure = false;
  }
  return isPure;
}
