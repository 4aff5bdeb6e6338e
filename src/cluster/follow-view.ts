import { DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import { Serial } from '../base/serial.ts';
import { type ObjectStore, StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';
import { type ClusterView, decodeView, type LoadedView } from './view.ts';

export interface FollowerOptions {
  /** Between two looks, in milliseconds. */
  readonly everyMs: number;
  /** The log of this process. */
  readonly logId: string;
  /**
   * Who is told of each later view, one after the other and one view at a time: the next one hears once the one before is done with it. What
   * ends reads of data that moves stands before what lets others have it.
   */
  readonly subscribers: readonly ((view: ClusterView) => Promise<void> | void)[];
  /** The view does not name the own log any more: this process has been removed, and must end. */
  readonly onRemoved: () => void;
}

/**
 * The cluster view as one process knows it: one immutable snapshot, which a later one replaces as a whole. A view that is late is
 * dropped; of several that wait only the last one is told.
 */
export class ViewFollower {
  readonly #components: { readonly store: ObjectStore; readonly clock: Clock; readonly logger: Logger };
  readonly #options: FollowerOptions;
  readonly #telling = new Serial();
  #view: ClusterView;
  #told: number;
  #etag: string | null = null;

  constructor(
    components: { readonly store: ObjectStore; readonly clock: Clock; readonly logger: Logger },
    options: FollowerOptions,
    view: ClusterView,
  ) {
    this.#components = components;
    this.#options = options;
    this.#view = view;
    this.#told = view.version;
  }

  get view(): ClusterView {
    return this.#view;
  }

  /** The answer stops it. */
  follow(): () => void {
    const { everyMs } = this.#options;
    return repeat(this.#components.clock, everyMs, async () => {
      await this.look();
      return everyMs;
    });
  }

  /** Takes a view from wherever. Resolves once everybody has heard of it or of a later one. */
  offer(view: ClusterView): Promise<void> {
    if (view.version > this.#view.version) this.#view = view;
    return this.#telling.run(() => this.#tell());
  }

  /** Reads the view, and takes it. What can't be read is read by the next look. */
  async look(): Promise<void> {
    try {
      const found = await this.#load();
      if (found === null) return;
      this.#etag = found.etag;
      await this.offer(found.view);
    } catch (error) {
      if (!(error instanceof StoreError) && !(error instanceof DataError)) throw error;
      this.#components.logger.error('the cluster view was not read', { error: describeError(error) });
    }
  }

  /** Null where it has not changed. */
  async #load(): Promise<LoadedView | null> {
    const { store } = this.#components;
    if (this.#etag !== null) {
      const found = await store.getIfChanged(paths.view, this.#etag);
      if (found === 'unchanged') return null;
    }
    return readIntact(store, paths.view, ({ bytes, etag }) => ({ view: decodeView(bytes), etag }));
  }

  async #tell(): Promise<void> {
    const view = this.#view;
    if (view.version <= this.#told) return;
    this.#told = view.version;
    if (!view.members.some(({ logId }) => logId === this.#options.logId)) return this.#options.onRemoved();
    for (const hear of this.#options.subscribers) await hear(view);
  }
}
