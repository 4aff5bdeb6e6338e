import { groupSize, type Place, type Request, sawOf } from './clients.ts';
import type { Op, ReadOp, Value, Violation } from './history.ts';
import { judge } from './linearizable.ts';
import { type Answer, isOfDamage, type SimulatedProcess } from './process.ts';
import type { StoredRecords } from './stored-records.ts';

export interface Heard {
  readonly process: SimulatedProcess;
  readonly place: Place;
  readonly token: string;
  readonly request: Request;
  readonly startMs: number;
  readonly endMs: number;
  /** Null where none came. */
  readonly answer: Answer | null;
}

/** What links and branches say of histories. */
export interface Shown {
  readsOf(place: string): readonly ReadOp[];
  beginningOf(place: string): { readonly version: number; readonly docs: ReadonlyMap<string, Value> } | null;
}

/** A process whose log was sealed may answer from before: with one server nobody is sent to it any more. */
export function isOverlooked(process: SimulatedProcess, endMs: number): boolean {
  return process.isAlone && process.sealedAtMs <= endMs;
}

/** Answers that promise that nothing was written, now or later. */
const nothingWritten: ReadonlySet<string> = new Set(['unavailable', 'write_busy', 'rate_limited']);
/** The codes of a request that does not fit what is there: it changed nothing. */
const refusedByState: ReadonlySet<string> = new Set(['not_found', 'conflict']);

/**
 * What the clients heard, and what is wrong with it. Some of it shows at once (half a batch, a write that was called
 * unwritten); the rest is judged when everything is over.
 */
export class Records {
  readonly #ops = new Map<string, Op[]>();
  readonly #refused = new Map<string, string>();
  readonly #seen = new Map<string, string>();
  readonly #stored: StoredRecords;
  readonly violations: Violation[] = [];
  readonly answers = new Map<string, number>();

  constructor(stored: StoredRecords) {
    this.#stored = stored;
  }

  take(heard: Heard): void {
    this.note(heard);
    const { request } = heard;
    if (request.change === null) this.#takeRead(heard);
    else this.#takeWrite(heard, request.change);
  }

  /** Counts an answer, and takes what went wrong inside. */
  note(heard: Heard): void {
    const { answer, request } = heard;
    const told = answer === null ? 'no answer' : answer.status < 300 ? String(answer.status) : answer.code;
    const name = `${request.operation} ${told}`;
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1);
    if (answer?.code === 'internal') this.#takeInternal(heard, answer);
  }

  violate(kind: Violation['kind'], text: string): void {
    this.violations.push({ kind, text });
  }

  opsFor(place: string): readonly Op[] {
    return this.#ops.get(place) ?? [];
  }

  /** When nothing happens any more. `derived`: what links and branches have shown. */
  judge(derived: Shown): void {
    for (const [token, how] of this.#refused) {
      const where = this.#seen.get(token);
      if (where !== undefined) this.violate('nothing written, yet visible', `${token}: ${how}; ${where}`);
    }
    for (const [place, ops] of this.#ops) {
      const known = [...ops.filter((op) => this.#mayCount(op)), ...derived.readsOf(place)];
      const verdict = judge(known, (token) => this.#stored.rankOf(token), derived.beginningOf(place));
      if (verdict.kind === 'undecided') this.violate('undecided', `${place}: ${verdict.text}`);
      if (verdict.kind === 'violated') this.violate('not linearizable', `${place}: ${verdict.text}`);
    }
  }

  #takeInternal({ process, token, request }: Heard, { error }: Answer): void {
    // Damage that the world has done, or what a process that was overtaken still tried.
    if (isOfDamage(error) || process.store.damaged || Number.isFinite(process.sealedAtMs)) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.violate('unexpected error', `${token} ${request.operation}: ${text}`);
  }

  #takeRead(heard: Heard): void {
    const { process, place, request, endMs, answer } = heard;
    if (answer === null) return;
    const found = sawOf(request.operation, answer, request.asked.argument ?? '');
    if (found === null) return;
    this.look(heard, found.saw);
    if (!isOverlooked(process, endMs)) this.addRead(place, heard, found);
  }

  /** What may never show, wherever it does. */
  look({ process, token, endMs, answer }: Heard, saw: ReadOp['saw']): void {
    const at = `${token} of process ${process.number} at ${endMs.toFixed(0)} ms`;
    if (saw.kind === 'one' && saw.value !== null) this.#see(saw.value, at);
    if (saw.kind !== 'all') return;
    this.#seeAll(saw.docs, at);
    if (answer !== null) this.#checkTimes(answer, at);
  }

  addRead(
    place: Place,
    { token, startMs, endMs }: Heard,
    { saw, version }: Pick<ReadOp, 'saw' | 'version'>,
  ): void {
    this.#opsOf(place).push({ kind: 'read', token, startMs, endMs, saw, version });
  }

  #takeWrite(heard: Heard, change: NonNullable<Request['change']>): void {
    const { place, token, startMs, answer } = heard;
    const acknowledged = answer !== null && answer.status < 300;
    const code = answer?.code ?? '';
    if (nothingWritten.has(code)) this.#refused.set(token, `${code} at ${heard.endMs.toFixed(0)} ms`);
    if (nothingWritten.has(code) || refusedByState.has(code)) return;
    if (acknowledged && change.kind !== 'drop' && !this.#isStored(token))
      this.violate('acknowledged, not stored', `${token} at ${heard.endMs.toFixed(0)} ms`);
    const counted = change.kind === 'put' && acknowledged;
    this.#opsOf(place).push({
      kind: 'write',
      token,
      change,
      startMs,
      endMs: acknowledged ? heard.endMs : Number.POSITIVE_INFINITY,
      acknowledged,
      version: acknowledged && change.kind !== 'drop' ? answer.body.version : null,
      deleted: counted ? answer.body.deleted : null,
    });
  }

  #isStored(token: string): boolean {
    return Number.isFinite(this.#stored.rankOf(token));
  }

  /**
   * A write that left no record has no effect; whoever shows one is wrong. Of the ends of names it is only known that
   * there was one, not whose.
   */
  #mayCount(op: Op): boolean {
    if (op.kind === 'read' || op.acknowledged || op.change.kind === 'drop') return true;
    return this.#isStored(op.token);
  }

  #opsOf({ tenantId, namespace }: Place): Op[] {
    const key = `${tenantId}/${namespace}`;
    const known = this.#ops.get(key);
    if (known !== undefined) return known;
    const made: Op[] = [];
    this.#ops.set(key, made);
    return made;
  }

  /** The newest comes first, and nothing is newer by its time than what was written after it. */
  #checkTimes({ body }: Answer, at: string): void {
    const hits: readonly { readonly written_at: string }[] = body.hits ?? [];
    for (const [i, { written_at }] of hits.entries()) {
      const before = hits[i - 1]?.written_at ?? written_at;
      if (before < written_at) return this.violate('times out of order', `${before}, ${written_at}; ${at}`);
    }
  }

  #see(value: Value, at: string): void {
    for (const token of value.split('|')) {
      if (token === '' || this.#seen.has(token)) continue;
      this.#seen.set(token, `seen by ${at}`);
    }
  }

  /** Documents of one group were put whole and deleted whole. */
  #seeAll(docs: Extract<ReadOp['saw'], { kind: 'all' }>['docs'], at: string): void {
    const tokens = new Map<string, string[]>();
    for (const [id, value] of docs) {
      this.#see(value, at);
      const [client, group, member] = id.split('-');
      if (member === undefined) continue;
      const key = `${client}-${group}`;
      const known = tokens.get(key);
      const token = value.slice(0, value.indexOf('|'));
      if (known === undefined) tokens.set(key, [token]);
      else known.push(token);
    }
    for (const [key, held] of tokens) {
      const size = groupSize(Number(key.split('-')[1]));
      if (held.length === size && new Set(held).size === 1) continue;
      this.violate('partial batch', `${key} of ${size} documents holds ${held.join(' ')}, ${at}`);
    }
  }
}
