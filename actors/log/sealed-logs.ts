import type { SealedLog } from '../../protocol/stored-log.ts';
import type { LogTarget, UnflushedTargets } from './unflushed.ts';

/**
 * Sealed logs that the view names, and which of their targets no manifest is known to contain. A log is done when none is left; one
 * server marks it, any one that all agree upon.
 */
export class SealedLogs {
  #logs: readonly SealedLog[] = [];
  readonly #unflushed = new Map<string, UnflushedTargets>();
  readonly #done = new Set<string>();
  /** Logs of which some targets may have been taken over and flushed before by others: those of later views, or of a first one with others in it. */
  readonly #later = new Set<string>();

  /** Those of the view that this process begins with; `isAlone`: it takes over all of them. */
  begin(removed: readonly SealedLog[], isAlone: boolean): void {
    this.#logs = removed;
    if (!isAlone) for (const { logId } of removed) this.#later.add(logId);
  }

  get logs(): readonly SealedLog[] {
    return this.#logs;
  }

  /** Those that nobody here has read yet. */
  get unread(): readonly SealedLog[] {
    return this.#logs.filter(({ logId }) => !this.#unflushed.has(logId));
  }

  adopt(removed: readonly SealedLog[]): void {
    const known = new Set(this.#logs.map(({ logId }) => logId));
    this.#logs = removed.filter(({ logId }) => !this.#done.has(logId));
    const named = new Set(this.#logs.map(({ logId }) => logId));
    for (const logId of named) if (!known.has(logId)) this.#later.add(logId);
    for (const logId of [...this.#unflushed.keys(), ...this.#later])
      if (!named.has(logId)) this.#forget(logId);
  }

  /** Whether a reading of the log up to a slot is one of all that it has, and the first. */
  isFirstReading(logId: string, through: number): boolean {
    return this.unread.some((sealed) => sealed.logId === logId && through >= sealed.sealSeq - 1);
  }

  isDone(logId: string): boolean {
    return this.#done.has(logId);
  }

  /** It was read to its end: these are its targets. */
  read(logId: string, targets: UnflushedTargets): void {
    this.#unflushed.set(logId, targets);
  }

  unflushedOf(logId: string): UnflushedTargets | undefined {
    return this.#unflushed.get(logId);
  }

  /** Logs whose records are all in manifests. */
  get finished(): readonly string[] {
    return this.#logs.map(({ logId }) => logId).filter((logId) => this.#unflushed.get(logId)?.size === 0);
  }

  /** The store says that the log is done. */
  marked(logId: string): void {
    this.#done.add(logId);
    this.#logs = this.#logs.filter((sealed) => sealed.logId !== logId);
    this.#forget(logId);
  }

  /** Targets of which nobody tells this process when they are flushed. */
  silent(
    isOwn: (target: LogTarget) => boolean,
  ): readonly { readonly logId: string; readonly target: LogTarget }[] {
    return this.#logs.flatMap(({ logId }) =>
      (this.#unflushed.get(logId)?.targets() ?? [])
        .filter((target) => this.#later.has(logId) || !isOwn(target))
        .map((target) => ({ logId, target })),
    );
  }

  #forget(logId: string): void {
    this.#unflushed.delete(logId);
    this.#later.delete(logId);
  }
}
