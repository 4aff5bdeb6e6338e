/**
 * Links and branches of a simulated world: who makes and reads them, and what they must show.
 *
 * 1. A link that follows reads what its source reads: its answers are reads of the source, judged with all others of it.
 * 2. A link that stays at a version, a *pin*, shows the same for ever. What it shows first counts as one read of its source, at its
 *    version, at some moment of its making.
 * 3. A branch begins with what it shows first, which counts as such a read too; then it is a place like any other, with a history
 *    of its own. Nobody writes to it before that first look.
 * 4. A link that is there, and whose source is, is never missing; one that is gone, or whose source is, shows nothing any more.
 */
import type { Chance } from './chance.ts';
import { type Place, sawOf } from './clients.ts';
import type { Op, ReadOp, Value } from './history.ts';
import { type Heard, isOverlooked, type Records } from './records.ts';

export type DerivedKind = 'follow' | 'pin' | 'branch';

export interface Derived extends Place {
  readonly kind: DerivedKind;
  /** Whose history it belongs to: a link's source, what a branch was made from. */
  readonly source: Place;
  readonly version: number;
  /** When it was made: from the question to the answer. */
  readonly startMs: number;
  readonly endMs: number;
  /** Whether it was made of the version that was the present one then. */
  readonly isOfPresent: boolean;
  /** What a pin or a branch showed first. */
  content: ReadonlyMap<string, Value> | null;
}

/** Each is read by every server at the end, which takes time. */
const derivedMax = 9;

export class DerivedPlaces {
  readonly #records: Records;
  readonly #places: Place[];
  readonly #made: Derived[] = [];
  readonly #looks: {
    readonly derived: Derived;
    readonly heard: Heard;
    readonly isMissing: boolean;
  }[] = [];
  #names = 0;

  /** `places`: those that anybody writes to; branches join them. */
  constructor(records: Records, places: Place[]) {
    this.#records = records;
    this.#places = places;
  }

  get all(): readonly Derived[] {
    return this.#made;
  }

  get isFull(): boolean {
    return this.#names >= derivedMax;
  }

  /** A name that nobody has had before. */
  nextName(kind: DerivedKind): string {
    return `${kind}-${++this.#names}`;
  }

  /** Something to link to or to branch from: a place, a branch among them, or a link. */
  pickSource(chance: Chance): Place {
    return chance.pick([...this.#places, ...this.#made.filter(({ kind }) => kind !== 'branch')]);
  }

  pick(chance: Chance): Derived | null {
    return this.#made.length === 0 ? null : chance.pick(this.#made);
  }

  /** A version at which somebody stays or began, for who asks for it by its number. */
  heldVersion(source: Place, chance: Chance): number | null {
    const held = this.#made.filter((each) => each.kind !== 'follow' && isSame(each.source, source));
    return held.length === 0 ? null : chance.pick(held).version;
  }

  /** An answer to the question for a link or a branch has come: null where it was not made. */
  made(heard: Heard, kind: 'follow' | 'branch' | 'pin', from: Place): Derived | null {
    const { answer, request, place, startMs, endMs } = heard;
    if (answer === null || answer.status >= 300) return null;
    const { linked, branched } = answer.body;
    const record = linked ?? branched;
    const followed = this.#made.find((each) => isSame(each, from));
    const asked = (request.asked.body as { readonly version?: number }).version;
    const derived: Derived = {
      ...place,
      kind: linked === undefined ? 'branch' : linked.follows ? 'follow' : 'pin',
      source: { tenantId: place.tenantId, namespace: record.source },
      version: record.version,
      startMs,
      endMs,
      isOfPresent: asked === undefined && followed?.kind !== 'pin',
      content: null,
    };
    if (asked !== undefined && asked !== record.version)
      this.#records.violate('wrong link', `${place.namespace}: asked ${asked}, is ${record.version}`);
    if (kind === 'branch' && derived.kind !== 'branch')
      this.#records.violate('wrong link', `${place.namespace} is no branch`);
    this.#made.push(derived);
    return derived;
  }

  /** An answer to a read of a link, or to the first look at a branch. */
  take(derived: Derived, heard: Heard): void {
    const { answer, request, process } = heard;
    this.#records.note(heard);
    if (answer === null || isOverlooked(process, heard.endMs)) return;
    if (answer.status === 404) {
      // Of one document it would not tell what is missing.
      if (request.operation !== 'getDocument') this.#looks.push({ derived, heard, isMissing: true });
      return;
    }
    if (answer.status !== 200) return;
    const found = sawOf(request.operation, answer, request.asked.argument ?? '');
    if (found === null) return;
    if (derived.kind !== 'branch') this.#looks.push({ derived, heard, isMissing: false });
    this.#records.look(heard, found.saw);
    if (derived.kind === 'follow') this.#records.addRead(derived.source, heard, found);
    else this.#takeContent(derived, heard, found);
  }

  /** What is known of a history from elsewhere: what links and branches of it have shown. */
  readsOf(place: string): readonly ReadOp[] {
    return this.#made.flatMap((derived) => {
      const { kind, content, source, version, namespace } = derived;
      if (kind === 'follow' || content === null || nameOf(source) !== place) return [];
      return {
        kind: 'read',
        token: `the beginning of ${namespace}`,
        version,
        startMs: derived.isOfPresent ? derived.startMs : 0,
        endMs: derived.endMs,
        saw: { kind: 'all', docs: content },
      };
    });
  }

  /** What a branch begins with. */
  beginningOf(place: string): { readonly version: number; readonly docs: ReadonlyMap<string, Value> } | null {
    const branch = this.#made.find((each) => each.kind === 'branch' && nameOf(each) === place);
    if (branch === undefined || branch.content === null) return null;
    return { version: branch.version, docs: branch.content };
  }

  #takeContent(derived: Derived, { token, endMs }: Heard, found: Pick<ReadOp, 'saw' | 'version'>): void {
    const { saw, version } = found;
    const at = `${derived.namespace} at version ${derived.version}, ${token} at ${endMs.toFixed(0)} ms`;
    if (version !== null && version !== derived.version)
      this.#records.violate('a version changed', `${at}: version ${version}`);
    if (saw.kind === 'all' && derived.content === null) {
      derived.content = saw.docs;
      if (derived.kind === 'branch') this.#places.push(derived);
      return;
    }
    const { content } = derived;
    if (content === null || derived.kind === 'branch' || showsAll(content, saw)) return;
    this.#records.violate('a version changed', `${at}: ${tellDocs(content)} became ${tellSaw(saw)}`);
  }

  /** When nothing happens any more, and all ends are known. */
  judge(): void {
    for (const { derived, heard, isMissing } of this.#looks) {
      if (isMissing) this.#judgeMissing(derived, heard);
      else this.#judgeThere(derived, heard);
    }
    this.#looks.length = 0;
  }

  /** It may be missing only where it, or its source, may have been deleted. */
  #judgeMissing(derived: Derived, { token, endMs }: Heard): void {
    const places = derived.kind === 'branch' ? [derived] : [derived, derived.source];
    const ends = places.flatMap((place) => this.#endsOf(place));
    if (ends.some((end) => end.startMs <= endMs && end.endMs >= derived.startMs)) return;
    const text = `${derived.namespace} of ${derived.source.namespace}, ${token} at ${endMs.toFixed(0)} ms`;
    this.#records.violate('a link is missing', text);
  }

  /** It shows nothing after it was deleted, or after its source was. */
  #judgeThere(derived: Derived, { token, startMs }: Heard): void {
    for (const place of [derived, derived.source])
      for (const end of this.#endsOf(place))
        if (end.startMs > derived.endMs && end.endMs < startMs)
          this.#records.violate(
            'a link outlives its end',
            `${derived.namespace}: ${place.namespace} ended at ${end.endMs.toFixed(0)} ms, ${token} asked at ${startMs.toFixed(0)} ms`,
          );
  }

  #endsOf(place: Place): readonly Op[] {
    return this.#records
      .opsFor(nameOf(place))
      .filter((op) => op.kind === 'write' && op.change.kind === 'drop');
  }
}

export function nameOf({ tenantId, namespace }: Place): string {
  return `${tenantId}/${namespace}`;
}

function isSame(a: Place, b: Place): boolean {
  return a.tenantId === b.tenantId && a.namespace === b.namespace;
}

function showsAll(content: ReadonlyMap<string, Value>, saw: ReadOp['saw']): boolean {
  switch (saw.kind) {
    case 'one':
      return (content.get(saw.id) ?? null) === saw.value;
    case 'count':
      return content.size === saw.count;
    case 'all':
      return (
        saw.docs.size === content.size && [...content].every(([id, value]) => saw.docs.get(id) === value)
      );
  }
}

function tellDocs(docs: ReadonlyMap<string, Value>): string {
  return `{${[...docs].map(([id, value]) => `${id}=${value}`).join(' ')}}`;
}

function tellSaw(saw: ReadOp['saw']): string {
  if (saw.kind === 'all') return tellDocs(saw.docs);
  return saw.kind === 'one' ? `${saw.id}=${saw.value ?? 'absent'}` : `${saw.count} documents`;
}
