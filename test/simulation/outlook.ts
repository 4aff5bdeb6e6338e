/**
 * Whether a position of the search can still explain what is left of a history. It says no only where that is certain:
 * a version is passed that something still has to be at, or a read has yet to see what nobody is left to write.
 */
import { isRequired, type Op, type Position, type ReadOp, type Value } from './history.ts';

/** Judges positions of one history. It knows operations by their indexes in the list that the search goes through. */
export class Outlook {
  readonly #ops: readonly Op[];
  readonly #byToken = new Map<string, number>();
  /** The writes that each value names. */
  readonly #makers = new Map<Value, readonly number[]>();
  /** The writes that take each id away. */
  readonly #deletions = new Map<string, number[]>();
  readonly #drops: number[] = [];

  constructor(ops: readonly Op[]) {
    this.#ops = ops;
    for (const [i, op] of ops.entries()) {
      if (op.kind !== 'write') continue;
      this.#byToken.set(op.token, i);
      if (op.change.kind === 'drop') this.#drops.push(i);
      if (op.change.kind !== 'put') continue;
      for (const id of op.change.deletes) {
        const known = this.#deletions.get(id);
        if (known === undefined) this.#deletions.set(id, [i]);
        else known.push(i);
      }
    }
  }

  isHopeless(position: Position): boolean {
    const { done } = position;
    const dropMs = this.#firstDropMs(done);
    return this.#ops.some((op, i) => {
      if (done[i] === 1 || !isRequired(op)) return false;
      // Reads of this version that fit are taken already.
      if (op.endMs < dropMs && op.version !== null && op.version <= position.version) return true;
      return op.kind === 'read' && this.#isNeverSeen(op, position, dropMs);
    });
  }

  /** The earliest moment at which versions may begin again. */
  #firstDropMs(done: Uint8Array): number {
    let first = Number.POSITIVE_INFINITY;
    for (const i of this.#drops) if (done[i] === 0) first = Math.min(first, (this.#ops[i] as Op).startMs);
    return first;
  }

  #isNeverSeen(op: ReadOp, position: Position, dropMs: number): boolean {
    const { saw } = op;
    if (saw.kind === 'count') return false;
    const mayDrop = dropMs <= op.endMs;
    if (saw.kind === 'one')
      return saw.value === null
        ? !mayDrop && this.#staysThere(saw.id, position)
        : this.#comesNever(saw.id, saw.value, position);
    for (const [id, value] of saw.docs) if (this.#comesNever(id, value, position)) return true;
    if (mayDrop) return false;
    for (const id of position.docs.keys())
      if (!saw.docs.has(id) && this.#staysThere(id, position)) return true;
    return false;
  }

  /** A value is made by the last of the writes that it names, so one of them has to be left. */
  #comesNever(id: string, value: Value, { docs, done }: Position): boolean {
    if (docs.get(id) === value) return false;
    return !this.#makersOf(value).some((maker) => done[maker] === 0);
  }

  #makersOf(value: Value): readonly number[] {
    let makers = this.#makers.get(value);
    if (makers === undefined) {
      const named = value.split('|').map((token) => this.#byToken.get(token));
      makers = named.filter((maker) => maker !== undefined);
      this.#makers.set(value, makers);
    }
    return makers;
  }

  #staysThere(id: string, { docs, done }: Position): boolean {
    return docs.has(id) && !(this.#deletions.get(id) ?? []).some((i) => done[i] === 0);
  }
}
