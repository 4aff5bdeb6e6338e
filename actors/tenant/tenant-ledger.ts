import type { NamespaceReport } from '../../protocol/messages.ts';
import { describeError } from '../../src/base/log.ts';
import type { ActorComponents } from '../components.ts';
import type { TenantDrops } from './tenant-drops.ts';
import type { TenantLog } from './tenant-log.ts';
import { entryOf, isDeleting, type TenantEvent } from './tenant-state.ts';
import { countStored, meterWrites } from './tenant-usage.ts';

/** What the tenant's namespaces have reported: writes that are metered, and bytes in the store. */
type Components = Pick<ActorComponents, 'clock' | 'logger'>;

interface LedgerParts {
  readonly log: TenantLog;
  readonly drops: TenantDrops;
  /** Puts the ledger into the manifest. */
  readonly flush: () => Promise<void>;
}

/** After a flush of a namespace was reported, the tenant is flushed too, so that its lists are right after a crash. */
const ledgerFlushMs = 10_000;

export class TenantLedger {
  readonly #components: Components;
  readonly #parts: LedgerParts;
  /** Sum of the ledger. */
  #storedBytes = 0;
  /** Reports have come that its manifest does not contain. */
  #changed = false;
  #flushArmed = false;

  constructor(components: Components, parts: LedgerParts) {
    this.#components = components;
    this.#parts = parts;
  }

  /** What all its namespaces take in the store, in bytes, as far as they have reported it. */
  get storedBytes(): number {
    return this.#storedBytes;
  }

  /** Whether the manifest contains every report. */
  get isFlushed(): boolean {
    return !this.#changed;
  }

  /** After the state has become another one. */
  sumUp(): void {
    this.#storedBytes = 0;
    for (const { storedBytes } of this.#parts.log.state.names.values()) this.#storedBytes += storedBytes;
  }

  applying(event: TenantEvent): void {
    if (event.kind !== 'namespace-deleted') return;
    const gone = entryOf(this.#parts.log.state, event);
    if (gone !== undefined) this.#addStoredBytes(-gone.storedBytes);
  }

  report(name: string, report: NamespaceReport): void {
    const { log, drops } = this.#parts;
    const { names, usage } = log.state;
    const { namespaceId } = report;
    const named = entryOf(log.state, { name, namespaceId });
    const known = named ?? drops.known(namespaceId);
    // The last words of an actor that was put away may come after its successor's first.
    if (known === undefined || report.docsWritten < known.docsWritten || report.writes < known.writes) return;
    const { writes, docsWritten, bytesWritten, storedBytes, flushed } = report;
    if (writes !== known.writes || storedBytes !== known.storedBytes) {
      meterWrites(usage, known, report);
      const next = { ...known, writes, docsWritten, bytesWritten, storedBytes };
      this.#changed = true;
      if (named === undefined) drops.learn(namespaceId, next);
      else {
        names.set(name, next);
        this.#addStoredBytes(storedBytes - known.storedBytes);
      }
    }
    // What is not flushed is reported again by whoever replays it: only what is has to be kept here.
    if (flushed && this.#changed) this.#armFlush();
  }

  #addStoredBytes(change: number): void {
    this.countStored();
    this.#storedBytes += change;
  }

  /** Until now. */
  countStored(): void {
    const { state } = this.#parts.log;
    // A tombstone counts nothing.
    if (isDeleting(state)) return;
    countStored(state.usage, this.#components.clock.now(), this.#storedBytes);
  }

  /** The state goes into a manifest in this turn. */
  committing(): void {
    this.countStored();
    this.#changed = false;
  }

  #armFlush(): void {
    if (this.#flushArmed) return;
    this.#flushArmed = true;
    this.#components.clock.after(ledgerFlushMs, () => {
      this.#flushArmed = false;
      this.#parts.flush().catch((error: unknown) => {
        const fields = { tenantId: this.#parts.log.tenantId, error: describeError(error) };
        this.#components.logger.error('the ledger of a tenant was not flushed', fields);
      });
    });
  }
}
