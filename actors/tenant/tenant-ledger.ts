import type { NamespaceReport, TenantEvent } from '../../protocol/stored-tenant.ts';
import { assert } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { TenantDrops } from './tenant-drops.ts';
import type { TenantLog } from './tenant-log.ts';
import { applyReport, entryOf, isDangling, isDeleting, isNews, linksAt, withReport } from './tenant-state.ts';
import { countStored, meterWrites } from './tenant-usage.ts';

type Components = Pick<ActorComponents, 'clock' | 'logger'>;

interface LedgerParts {
  readonly log: TenantLog;
  readonly drops: TenantDrops;
}

/** Milliseconds between two lines about refused reports: a log that is handed over refuses those of all namespaces at once. */
const refusalsToldEveryMs = 1_000;

/** What the tenant's namespaces have reported: writes that are metered, and bytes in the store. */
export class TenantLedger {
  readonly #components: Components;
  readonly #parts: LedgerParts;
  /** Sum of the ledger. */
  #storedBytes = 0;
  /** Namespaces that have reported what neither the manifest nor the log contains. */
  readonly #news = new Set<string>();
  /** When the last line about refused reports was written, by the monotonic clock. */
  #refusalToldMs = Number.NEGATIVE_INFINITY;

  constructor(components: Components, parts: LedgerParts) {
    this.#components = components;
    this.#parts = parts;
  }

  /** What all its namespaces take in the store, in bytes, as far as they have reported it. */
  get storedBytes(): number {
    return this.#storedBytes;
  }

  /** Whether every report is in the manifest, or will be with the log's events. */
  get isFlushed(): boolean {
    return this.#news.size === 0;
  }

  /** Adds up what is stored anew, after the state has become another one. */
  sumUp(): void {
    this.#storedBytes = 0;
    const { names, held } = this.#parts.log.state;
    for (const { storedBytes } of names.values()) this.#storedBytes += storedBytes;
    for (const bytes of held.values()) this.#storedBytes += bytes;
  }

  applying(event: TenantEvent): void {
    const { state } = this.#parts.log;
    if (event.kind === 'namespace-deleted') {
      const gone = entryOf(state, event);
      if (gone !== undefined) {
        const links = linksAt(state, event.namespaceId);
        this.#addStoredBytes(-links.reduce((sum, { entry }) => sum + entry.storedBytes, gone.storedBytes));
      }
    }
    if (event.kind === 'namespace-held')
      this.#addStoredBytes(event.bytes - (state.held.get(event.namespaceId) ?? 0));
    if (event.kind === 'namespace-created') this.#addStoredBytes(event.begins?.storedBytes ?? 0);
    // Before the state takes it over, which then finds nothing new: here is the sum of what is stored.
    if (event.kind === 'namespace-reported' && !this.#learn(event.name, event.report))
      this.#learnLast(event.report);
  }

  /**
   * Takes what a namespace reports. If its name is gone, rejects where the report is not durable, so that its records are kept
   * until it is.
   */
  async report(name: string, report: NamespaceReport): Promise<void> {
    const { namespaceId, flushed } = report;
    if (this.#parts.drops.known(namespaceId) !== undefined) return this.#keepLast(name, report);
    if (this.#learn(name, report)) this.#news.add(namespaceId);
    // What is not flushed is reported again by whoever replays it. What is has left the log, so it is put there.
    if (flushed && this.#news.has(namespaceId)) this.#keep(name, report);
  }

  /** Takes what others hold of a deleted namespace; durable when it resolves. */
  async reportHeld(namespaceId: string, bytes: number): Promise<void> {
    const { log } = this.#parts;
    // Nobody asks what a deleted tenant stores.
    if (isDeleting(log.state) || (log.state.held.get(namespaceId) ?? 0) === bytes) return;
    await log.confirmed(log.append({ kind: 'namespace-held', namespaceId, bytes }));
  }

  #learn(name: string, report: NamespaceReport): boolean {
    const { state } = this.#parts.log;
    const known = entryOf(state, { name, namespaceId: report.namespaceId });
    if (known === undefined || isDangling(state, known) || !isNews(known, report)) return false;
    this.#addStoredBytes(report.storedBytes - known.storedBytes);
    applyReport(state, { name, report });
    return true;
  }

  /** The last words of a namespace whose name is gone: after them nothing of it is in the log. Taken as the event alone. */
  async #keepLast(name: string, report: NamespaceReport): Promise<void> {
    const { drops, log } = this.#parts;
    // Of what a tenant used before it was deleted nobody asks.
    if (isDeleting(log.state) || report.writes <= drops.writesLogged(report.namespaceId)) return;
    await log.confirmed(log.append({ kind: 'namespace-reported', name, report }));
  }

  #learnLast(report: NamespaceReport): void {
    const { drops, log } = this.#parts;
    const known = drops.known(report.namespaceId);
    if (known === undefined) return;
    const isMore = isNews(known, report);
    if (isMore) meterWrites(log.state.usage, known, report);
    drops.learn(report.namespaceId, {
      known: isMore ? withReport(known, report) : known,
      logged: report.writes,
    });
  }

  #keep(name: string, report: NamespaceReport): void {
    const { log } = this.#parts;
    this.#news.delete(report.namespaceId);
    log.append({ kind: 'namespace-reported', name, report }).catch((error: unknown) => {
      this.#news.add(report.namespaceId);
      this.#tellRefusal(error);
    });
  }

  #tellRefusal(error: unknown): void {
    const { clock, logger } = this.#components;
    const nowMs = clock.monotonic();
    if (nowMs - this.#refusalToldMs < refusalsToldEveryMs) return;
    this.#refusalToldMs = nowMs;
    const fields = { tenantId: this.#parts.log.tenantId, error: describeError(error) };
    logger.info('reports wait for the next flush of their tenant', fields);
  }

  #addStoredBytes(change: number): void {
    this.countStored();
    this.#storedBytes += change;
    assert(this.#storedBytes >= 0, () => `the namespaces of a tenant take ${this.#storedBytes} bytes`);
  }

  /** Counts what was stored until now. */
  countStored(): void {
    const { state } = this.#parts.log;
    // A remnant counts nothing.
    if (isDeleting(state)) return;
    countStored(state.usage, this.#components.clock.now(), this.#storedBytes);
  }

  /** The state goes into a manifest in this turn. */
  committing(): void {
    this.countStored();
    this.#news.clear();
  }
}
