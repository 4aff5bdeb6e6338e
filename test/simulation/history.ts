/** What the clients of one namespace's name did and saw, with the virtual times of each begin and end. */

/** A document as a client can tell it from others: the request that put it, its text now, the request that patched it. */
export type Value = string;

export function documentValue(token: string, text: string, patch: string): Value {
  return `${token}|${text}|${patch}`;
}

export interface DocumentPatch {
  readonly id: string;
  readonly text?: string;
  readonly patch?: string;
}

export type Change =
  | {
      readonly kind: 'put';
      readonly docs: readonly (readonly [id: string, value: Value])[];
      readonly deletes: readonly string[];
    }
  | { readonly kind: 'patch'; readonly docs: readonly DocumentPatch[] }
  /** The name itself. */
  | { readonly kind: 'drop' };

interface Span {
  readonly startMs: number;
  /** Infinite where no answer came, or one that says that nobody knows. */
  readonly endMs: number;
}

export interface WriteOp extends Span {
  readonly kind: 'write';
  readonly token: string;
  readonly change: Change;
  readonly acknowledged: boolean;
  /** As answered; null where it was not, and for the name's end. */
  readonly version: number | null;
  /** How many of the deleted ids were there, as answered. */
  readonly deleted: number | null;
}

/** What a read saw. `version` is null where the answer does not tell. */
export interface ReadOp extends Span {
  readonly kind: 'read';
  readonly token: string;
  readonly version: number | null;
  readonly saw:
    | { readonly kind: 'all'; readonly docs: ReadonlyMap<string, Value> }
    | { readonly kind: 'one'; readonly id: string; readonly value: Value | null }
    | { readonly kind: 'count'; readonly count: number };
}

export type Op = WriteOp | ReadOp;

/** Whether it must have its place: it was answered. */
export function isRequired(op: Op): boolean {
  return op.kind === 'read' || op.acknowledged;
}

/** How far an order has come that may explain a history, and what is there then. */
export interface Position {
  readonly version: number;
  readonly docs: ReadonlyMap<string, Value>;
  /** The hash of the documents. */
  readonly hash: number;
  /** Indexes of operations that have taken effect. */
  readonly done: Uint8Array;
}

export interface Violation {
  readonly kind:
    | 'nothing written, yet visible'
    | 'partial batch'
    | 'acknowledged, not stored'
    | 'times out of order'
    | 'not linearizable'
    | 'undecided'
    | 'unexpected error'
    | 'unhandled rejection'
    | 'not available after the faults'
    | 'objects left over'
    | 'wrong link'
    | 'a version changed'
    | 'a link is missing'
    | 'a link outlives its end'
    | 'stuck';
  readonly text: string;
}
