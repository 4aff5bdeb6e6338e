import type { SqlAnswer } from '../../../protocol/sql.ts';
import type { TimeUnit } from '../dates.ts';
import type { AggregateName, Comparison, TextMatch } from '../parse/syntax.ts';

/** Expressions with their types and columns resolved, and what a statement does with them: the plan, plain data. */
export type SqlType = SqlAnswer['types'][number];

/** `int` as bigint, `float`, `date` and `time` as number. */
export type SqlValue = bigint | number | string | null;

/** `int` is also what conditions have: 1, 0 or NULL. */
export type Bound = { readonly type: SqlType } & (
  | { readonly kind: 'literal'; readonly value: SqlValue }
  /** Of the scanned columns. */
  | { readonly kind: 'column'; readonly index: number }
  /** Of the groups: their keys, then their aggregates. */
  | { readonly kind: 'slot'; readonly index: number }
  | { readonly kind: 'compare'; readonly operator: Comparison; readonly left: Bound; readonly right: Bound }
  | {
      readonly kind: 'arithmetic';
      readonly operator: '+' | '-';
      readonly left: Bound;
      readonly right: Bound;
      readonly at: number;
    }
  | { readonly kind: 'logic'; readonly operator: 'and' | 'or'; readonly operands: readonly Bound[] }
  | { readonly kind: 'not'; readonly operand: Bound }
  | {
      readonly kind: 'in';
      readonly operand: Bound;
      readonly values: readonly SqlValue[];
      readonly hasNull: boolean;
      readonly negated: boolean;
    }
  | {
      readonly kind: 'like';
      readonly operand: Bound;
      readonly pattern: string;
      readonly escapedBy: string | null;
      readonly negated: boolean;
    }
  | { readonly kind: 'isNull'; readonly operand: Bound; readonly negated: boolean }
  | {
      readonly kind: 'case';
      readonly branches: readonly { readonly when: Bound; readonly result: Bound }[];
      readonly otherwise: Bound;
    }
  /** The first that is not NULL. */
  | { readonly kind: 'coalesce'; readonly operands: readonly Bound[] }
  | { readonly kind: 'length'; readonly operand: Bound }
  | { readonly kind: 'truncate'; readonly unit: TimeUnit; readonly operand: Bound }
  | { readonly kind: 'minute'; readonly operand: Bound }
  | {
      readonly kind: 'replace';
      readonly operand: Bound;
      readonly pattern: string;
      readonly replacement: string;
      /** Where the pattern stands. */
      readonly at: number;
    }
  /** A date as the time of its begin, or an int as a float. */
  | { readonly kind: 'convert'; readonly operand: Bound }
  /** Of the plan's text matches. */
  | { readonly kind: 'textMatch'; readonly index: number }
);

export interface BoundAggregate {
  readonly name: AggregateName;
  /** Null: rows are counted. */
  readonly argument: Bound | null;
  readonly distinct: boolean;
  /** Of sums of integers: what is added to each value, once for all of them: SUM(x + 3) is SUM(x) and three times COUNT(x). */
  readonly plus: bigint;
  readonly type: SqlType;
  readonly at: number;
}

export interface BoundOrder {
  readonly expression: Bound;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

export interface Output {
  readonly name: string;
  readonly expression: Bound;
}

export interface SelectPlan {
  /** Names of the columns that are read. */
  readonly columns: readonly string[];
  /** So many of them, the first ones, are of WHERE. */
  readonly whereColumns: number;
  readonly textMatches: readonly TextMatch[];
  readonly where: Bound | null;
  /** Null where rows are answered as they are. */
  readonly grouping: {
    readonly keys: readonly Bound[];
    readonly aggregates: readonly BoundAggregate[];
  } | null;
  readonly having: Bound | null;
  readonly outputs: readonly Output[];
  readonly orderBy: readonly BoundOrder[];
  readonly limit: number;
  readonly offset: number;
  /** Texts are rewritten by a regex: a frame of rows takes longer. */
  readonly replaces: boolean;
  /** Expressions that stand in several places: a frame has them evaluated once. */
  readonly repeated: ReadonlySet<Bound>;
  /** What a row of groups and answers costs, and of WHERE: see plan-weight.ts. */
  readonly weight: number;
  readonly whereWeight: number;
}

export interface SqlColumn {
  readonly name: string;
  readonly type: SqlType;
}
