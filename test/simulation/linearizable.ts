/**
 * Whether one order explains everything that the clients of one name saw: each operation takes effect at one moment
 * between its begin and its end, whole, and each read sees exactly what the writes before it left.
 *
 * The search of Wing and Gong over the whole namespace. Answers carry the version that they made or saw, so it hardly
 * branches: the write of version v + 1 follows version v, and a read of version v belongs right there. Only writes
 * whose outcome nobody knows, and the ends of a name, after which versions begin again, are tried in several places;
 * `rankOf` says which of them to try first.
 */
import {
  type Change,
  isRequired,
  type Op,
  type Position,
  type ReadOp,
  type Value,
  type WriteOp,
} from './history.ts';
import { Outlook } from './outlook.ts';

export type Verdict =
  | { readonly kind: 'linearizable' }
  | { readonly kind: 'undecided'; readonly text: string }
  | { readonly kind: 'violated'; readonly text: string };

/**
 * Positions looked at before giving up: some forty seconds and 400 MB. The oddest of 50,000 histories needed 1,200,000
 * (more than four million before its outlook was asked).
 */
const positionsMax = 4_000_000;

/**
 * Positions after which each further one is asked whether it leads anywhere. All but odd histories are done by then, and
 * the question costs more than a position.
 */
const positionsOfMost = 2_000;

/** What is there before the first operation. */
export interface Beginning {
  readonly version: number;
  readonly docs: ReadonlyMap<string, Value>;
}

const nothing: Beginning = { version: 0, docs: new Map() };

export function judge(
  ops: readonly Op[],
  rankOf: (token: string) => number,
  beginning: Beginning | null = null,
  askAfter = positionsOfMost,
): Verdict {
  const search = new Search(
    [...ops].sort((a, b) => a.startMs - b.startMs),
    rankOf,
    askAfter,
  );
  return search.run(beginning ?? nothing);
}

class Search {
  readonly #ops: readonly Op[];
  readonly #rankOf: (token: string) => number;
  readonly #askAfter: number;
  readonly #requiredCount: number;
  readonly #dropsPossible: boolean;
  readonly #outlook: Outlook;
  readonly #seen = new Set<string>();
  #best: Position | null = null;
  #bestRequired = -1;
  #positions = 0;

  constructor(ops: readonly Op[], rankOf: (token: string) => number, askAfter: number) {
    this.#ops = ops;
    this.#rankOf = rankOf;
    this.#askAfter = askAfter;
    this.#requiredCount = ops.filter(isRequired).length;
    this.#dropsPossible = ops.some((op) => op.kind === 'write' && op.change.kind === 'drop');
    this.#outlook = new Outlook(ops);
  }

  run({ version, docs }: Beginning): Verdict {
    const first: Position = {
      version,
      docs,
      hash: hashOfAll(docs),
      done: new Uint8Array(this.#ops.length),
    };
    const open: Position[] = [first];
    for (let position = open.pop(); position !== undefined; position = open.pop()) {
      if (++this.#positions > positionsMax) return { kind: 'undecided', text: this.#explain() };
      const settled = this.#takeReads(position);
      if (this.#requiredDone(settled.done) === this.#requiredCount) return { kind: 'linearizable' };
      if (this.#isKnown(settled)) continue;
      this.#remember(settled);
      if (this.#positions > this.#askAfter && this.#outlook.isHopeless(settled)) continue;
      // The likeliest is tried first, so it is pushed last.
      for (const next of this.#nextWrites(settled).reverse()) open.push(next);
    }
    return { kind: 'violated', text: this.#explain() };
  }

  /** Reads that see exactly this are taken at once: they change nothing, so it is never wrong. */
  #takeReads(position: Position): Position {
    const done = position.done.slice();
    for (let again = true; again; ) {
      again = false;
      const end = this.#firstEnd(done);
      for (let i = 0; i < this.#ops.length; i++) {
        const op = this.#ops[i] as Op;
        if (op.startMs > end) break;
        if (done[i] === 1 || op.kind !== 'read' || !sees(op, position)) continue;
        done[i] = 1;
        again = true;
      }
    }
    return { ...position, done };
  }

  #nextWrites(position: Position): Position[] {
    const end = this.#firstEnd(position.done);
    const acknowledged: Candidate[] = [];
    const unknown: Candidate[] = [];
    for (let i = 0; i < this.#ops.length; i++) {
      const op = this.#ops[i] as Op;
      if (op.startMs > end) break;
      if (position.done[i] === 1 || op.kind !== 'write') continue;
      const next = this.#after(position, op, i);
      if (next === null) continue;
      const candidate = { next, rank: this.#rankOf(op.token) };
      if (op.acknowledged) acknowledged.push(candidate);
      else unknown.push(candidate);
    }
    // Where a name never ends, no two writes have one version.
    const isForced = !this.#dropsPossible && acknowledged.length > 0;
    const candidates = isForced ? acknowledged : [...acknowledged, ...unknown];
    return candidates
      .sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0))
      .map(({ next }) => next);
  }

  #after(position: Position, op: WriteOp, index: number): Position | null {
    const { change } = op;
    const isDrop = change.kind === 'drop';
    const version = isDrop ? 0 : position.version + 1;
    if (!isDrop && op.version !== null && op.version !== version) return null;
    const docs = applied(position.docs, change);
    if (docs === null) return null;
    if (op.deleted !== null && change.kind === 'put') {
      const there = new Set(change.deletes.filter((id) => position.docs.has(id))).size;
      if (there !== op.deleted) return null;
    }
    const done = position.done.slice();
    done[index] = 1;
    return { version, docs, hash: hashAfter(position, docs, change), done };
  }

  /** Nothing that begins later can take effect before the first end of those that are left. */
  #firstEnd(done: Uint8Array): number {
    let end = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.#ops.length; i++) {
      const op = this.#ops[i] as Op;
      if (op.startMs > end) break;
      if (done[i] === 0 && isRequired(op) && op.endMs < end) end = op.endMs;
    }
    return end;
  }

  #requiredDone(done: Uint8Array): number {
    let count = 0;
    for (let i = 0; i < done.length; i++) if (done[i] === 1 && isRequired(this.#ops[i] as Op)) count++;
    return count;
  }

  #isKnown({ version, hash, done }: Position): boolean {
    const key = `${version};${hash};${Buffer.from(done).toString('latin1')}`;
    if (this.#seen.has(key)) return true;
    this.#seen.add(key);
    return false;
  }

  #remember(position: Position): void {
    const required = this.#requiredDone(position.done);
    if (required <= this.#bestRequired) return;
    this.#best = position;
    this.#bestRequired = required;
  }

  #explain(): string {
    const best = this.#best;
    if (best === null) return 'nothing fits';
    const end = this.#firstEnd(best.done);
    const left = this.#ops.filter((op, i) => best.done[i] === 0 && op.startMs <= end);
    const state = [...best.docs].map(([id, value]) => `${id}=${value}`).join(' ');
    return [
      `${this.#bestRequired} of ${this.#requiredCount} operations fit; then, at version ${best.version} with`,
      `{${state}}`,
      'none of these can be next:',
      ...left.map((op) => `  ${tellOp(op)}`),
    ].join('\n');
  }
}

interface Candidate {
  readonly next: Position;
  readonly rank: number;
}

/** The sum of the hashes of all documents, corrected by those that changed. */
function hashAfter(before: Position, docs: ReadonlyMap<string, Value>, change: Change): number {
  if (change.kind === 'drop') return 0;
  const ids: string[] = change.kind === 'put' ? [...change.deletes] : [];
  for (const doc of change.docs) ids.push('id' in doc ? doc.id : doc[0]);
  let hash = before.hash;
  for (const id of new Set(ids))
    hash = (hash - hashOf(id, before.docs.get(id)) + hashOf(id, docs.get(id))) | 0;
  return hash;
}

function hashOfAll(docs: ReadonlyMap<string, Value>): number {
  let hash = 0;
  for (const [id, value] of docs) hash = (hash + hashOf(id, value)) | 0;
  return hash;
}

function hashOf(id: string, value: Value | undefined): number {
  if (value === undefined) return 0;
  let hash = 0x811c9dc5;
  for (const text of [id, value])
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}

function sees(op: ReadOp, { version, docs }: Position): boolean {
  if (op.version !== null && op.version !== version) return false;
  const { saw } = op;
  switch (saw.kind) {
    case 'one':
      return (docs.get(saw.id) ?? null) === saw.value;
    case 'count':
      return docs.size === saw.count;
    case 'all':
      if (docs.size !== saw.docs.size) return false;
      for (const [id, value] of saw.docs) if (docs.get(id) !== value) return false;
      return true;
  }
}

/** The documents after a change; null where it cannot have been made to these. */
export function applied(docs: ReadonlyMap<string, Value>, change: Change): ReadonlyMap<string, Value> | null {
  if (change.kind === 'drop') return new Map();
  const next = new Map(docs);
  if (change.kind === 'put') {
    for (const id of change.deletes) next.delete(id);
    for (const [id, value] of change.docs) next.set(id, value);
    return next;
  }
  for (const { id, text, patch } of change.docs) {
    const current = next.get(id);
    if (current === undefined) return null;
    const [token = '', oldText = '', oldPatch = ''] = current.split('|');
    next.set(id, `${token}|${text ?? oldText}|${patch ?? oldPatch}`);
  }
  return next;
}

export function tellOp(op: Op): string {
  const span = `${op.startMs.toFixed(0)}..${op.endMs.toFixed(0)} ms`;
  if (op.kind === 'read') {
    const { saw } = op;
    const seen =
      saw.kind === 'all'
        ? `all {${[...saw.docs].map(([id, value]) => `${id}=${value}`).join(' ')}}`
        : saw.kind === 'one'
          ? `${saw.id}=${saw.value ?? 'absent'}`
          : `${saw.count} documents`;
    return `${op.token} read ${seen}${op.version === null ? '' : ` at version ${op.version}`} (${span})`;
  }
  const { change } = op;
  const did =
    change.kind === 'drop'
      ? 'delete the namespace'
      : change.kind === 'patch'
        ? `patch ${change.docs.map(({ id }) => id).join(' ')}`
        : `put ${change.docs.map(([id]) => id).join(' ')} delete ${change.deletes.join(' ')} (${op.deleted ?? '?'} were there)`;
  const outcome = op.acknowledged ? `acknowledged as version ${op.version ?? '-'}` : 'not known';
  return `${op.token} ${did}: ${outcome} (${span})`;
}
