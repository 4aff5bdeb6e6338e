/** What an operation, or a call between parts of the server, does: whoever carries it goes by this and by no list of names. */
export interface Effect {
  /** `write`: it may leave something behind that lasts, and that later requests see. */
  readonly does: 'read' | 'write';
  /**
   * The code that its caller hears where the thread that did it died before it answered. `write_unknown`: it may have been done, and
   * nobody can tell. `unavailable`: nothing was done, or doing it again comes to the same. Default: by `does`.
   */
  readonly lost: 'unavailable' | 'write_unknown';
  /** Counted, limited and billed as one query or as one write request; `/openapi.json` shows it as `x-metering`. */
  readonly meters: 'query' | 'write' | null;
  /** The event that the audit log has of each such request, done or refused; null: none. */
  readonly audits: string | null;
}

/** An effect as a row of a table says it. What is left out has its default: nothing metered, nothing audited. */
export type EffectRow = Pick<Effect, 'does'> & Partial<Effect>;

export function completeEffect(row: EffectRow): Effect {
  return {
    does: row.does,
    lost: row.lost ?? (row.does === 'write' ? 'write_unknown' : 'unavailable'),
    meters: row.meters ?? null,
    audits: row.audits ?? null,
  };
}
