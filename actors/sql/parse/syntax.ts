/** An expression as it was written. `at`: where it begins, in UTF-16 units of the statement. */
export type Expression = { readonly at: number } & (
  | { readonly kind: 'literal'; readonly value: bigint | number | string | null }
  | { readonly kind: 'name'; readonly name: string; readonly quoted: boolean }
  | { readonly kind: 'call'; readonly name: FunctionName; readonly arguments: readonly Expression[] }
  | {
      readonly kind: 'aggregate';
      readonly name: AggregateName;
      readonly argument: Expression | null;
      readonly distinct: boolean;
    }
  | {
      readonly kind: 'compare';
      readonly operator: Comparison;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: 'arithmetic';
      readonly operator: '+' | '-';
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly kind: 'logic'; readonly operator: 'and' | 'or'; readonly operands: readonly Expression[] }
  | { readonly kind: 'not'; readonly operand: Expression }
  | {
      readonly kind: 'in';
      readonly operand: Expression;
      readonly list: readonly Literal[];
      readonly negated: boolean;
    }
  | {
      readonly kind: 'like';
      readonly operand: Expression;
      readonly pattern: string;
      readonly escapedBy: string | null;
      readonly negated: boolean;
    }
  | { readonly kind: 'isNull'; readonly operand: Expression; readonly negated: boolean }
  | { readonly kind: 'case'; readonly branches: readonly CaseBranch[]; readonly otherwise: Expression | null }
  | { readonly kind: 'textMatch'; readonly match: TextMatch }
);

export type Literal = Extract<Expression, { kind: 'literal' }>;
export type Comparison = '=' | '<>' | '<' | '<=' | '>' | '>=';

export interface CaseBranch {
  readonly when: Expression;
  readonly result: Expression;
}

/** A condition on the text of documents: `contains(text, 'words')`, or `grep(text, 'regex')`. */
export interface TextMatch {
  readonly regex: boolean;
  readonly query: string;
  readonly at: number;
}

export const aggregateNames = ['count', 'sum', 'avg', 'min', 'max'] as const;
export type AggregateName = (typeof aggregateNames)[number];
/** The functions of one row's values, in the order in which an error sentence lists them. */
export const functions = ['length', 'date_trunc', 'extract', 'regexp_replace', 'coalesce'] as const;
export type FunctionName = (typeof functions)[number];

export interface SelectItem {
  readonly expression: Expression;
  /** The name after AS; null where none was given. */
  readonly alias: string | null;
}

export interface OrderItem {
  readonly expression: Expression;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

export interface Select {
  readonly kind: 'select';
  /** What is selected; null for `*`. */
  readonly items: readonly SelectItem[] | null;
  readonly where: Expression | null;
  readonly groupBy: readonly Expression[];
  readonly having: Expression | null;
  readonly orderBy: readonly OrderItem[];
  /** How many rows are wanted; null for as many as an answer may have. */
  readonly limit: number | null;
  readonly offset: number;
}

export type Statement = Select | { readonly kind: 'showColumns' };

/** The comparison that means the same when both sides are exchanged, by comparison. */
export const flipped: Readonly<Record<Comparison, Comparison>> = {
  '=': '=',
  '<>': '<>',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};
