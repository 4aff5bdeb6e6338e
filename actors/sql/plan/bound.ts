import type { SqlAnswer } from '../../../protocol/sql.ts';
import type { TimeUnit } from '../dates.ts';
import type { AggregateName, Comparison, TextMatch } from '../parse/syntax.ts';
import type { SqlValue, ValueList } from './value-list.ts';

/** The type of a column or an expression; `null` where every value is NULL. */
export type SqlType = SqlAnswer['types'][number];

/** An expression with its type, its names resolved to columns. Conditions are of type `int`: 1, 0 or NULL. */
export type Bound = { readonly type: SqlType } & (
  | { readonly kind: 'literal'; readonly value: SqlValue }
  /** The column of that index in the plan's list. */
  | { readonly kind: 'column'; readonly index: number }
  /** The key of groups of that index, or, behind the keys, their aggregate. */
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
      readonly list: ValueList;
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
  /** The first operand that is not NULL. */
  | { readonly kind: 'coalesce'; readonly operands: readonly Bound[] }
  | { readonly kind: 'length'; readonly operand: Bound }
  | { readonly kind: 'truncate'; readonly unit: TimeUnit; readonly operand: Bound }
  | { readonly kind: 'minute'; readonly operand: Bound }
  | {
      readonly kind: 'replace';
      readonly operand: Bound;
      readonly pattern: string;
      readonly replacement: string;
      /** The pattern's place in the statement. */
      readonly at: number;
    }
  /** A date becomes the time of its begin, an int a float. */
  | { readonly kind: 'convert'; readonly operand: Bound }
  /** Whether a document's text matches; the index is one of the plan's text matches. */
  | { readonly kind: 'textMatch'; readonly index: number }
);

export interface BoundAggregate {
  readonly name: AggregateName;
  /** The expression that is aggregated; null for COUNT(*). */
  readonly argument: Bound | null;
  readonly distinct: boolean;
  /** What is added to each value of a sum of integers, taken out of the argument: SUM(x + 3) has x and 3, and is told from SUM(x). */
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

/** What a SELECT does, as plain data. */
export interface SelectPlan {
  /** Names of the columns that are read. */
  readonly columns: readonly string[];
  /** How many of them WHERE reads; these come first. */
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
  /** Whether texts are made of texts, as by REGEXP_REPLACE, so that a frame takes longer. */
  readonly replaces: boolean;
  /** Whether WHERE makes texts of texts: rows are filtered in frames of their own size. */
  readonly whereReplaces: boolean;
  /** Expressions that stand in several places, so that a frame has them evaluated once. */
  readonly repeated: ReadonlySet<Bound>;
  /** What a row costs in groups and answers, and in WHERE, in the steps of plan-weight.ts. */
  readonly weight: number;
  readonly whereWeight: number;
}

export interface SqlColumn {
  readonly name: string;
  readonly type: SqlType;
}
