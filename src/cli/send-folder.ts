import { BatchPacker, type DocumentBatch } from './document-batches.ts';
import { folderDocuments, type LeftOut } from './folder-documents.ts';
import { putDocuments, type WriteComponents, type WriteTarget } from './write-request.ts';

/** Write requests under way at once: enough that the server always has the next group of its log to fill. */
export const requestsInFlightMax = 4;

export interface LoadCounts {
  /** Acknowledged by the server. */
  readonly documents: number;
  /** Bytes of their files. */
  readonly bytes: number;
  readonly requests: number;
  /** Requests that were sent again. */
  readonly retries: number;
  readonly leftOut: number;
}

export interface SendFolderOptions extends WriteTarget {
  readonly folder: string;
  /** After every acknowledged request, and never at the same time twice. */
  readonly onProgress?: (counts: LoadCounts) => void;
  readonly onLeftOut?: (file: LeftOut) => void;
}

/** Not everything was sent; documents that were acknowledged before are there. */
export class LoadFailed extends Error {
  override name = 'LoadFailed';
  readonly counts: LoadCounts;

  constructor(cause: Error, counts: LoadCounts) {
    super(cause.message, { cause });
    this.counts = counts;
  }
}

/**
 * Sends a folder's text files as documents over the public API. Loading again replaces: ids are the files' paths.
 * Rejects with LoadFailed where the server refused a request for good or cannot be reached, and with the file system's
 * error where the folder cannot be listed.
 */
export async function sendFolder(
  components: WriteComponents,
  options: SendFolderOptions,
): Promise<LoadCounts> {
  const sender = new Sender(components, options);
  const packer = new BatchPacker();
  let leftOut = 0;
  for await (const item of folderDocuments(options.folder)) {
    if (sender.failure !== null) break;
    if (item.kind === 'left-out') {
      leftOut += 1;
      options.onLeftOut?.(item);
      continue;
    }
    const full = packer.add(item);
    if (full !== null) await sender.send(full, leftOut);
  }
  const last = packer.end();
  if (last !== null && sender.failure === null) await sender.send(last, leftOut);
  await sender.end();
  const counts = sender.counts(leftOut);
  if (sender.failure !== null) throw new LoadFailed(sender.failure, counts);
  return counts;
}

/** A few write requests at once. After one failed for good no other is begun. */
class Sender {
  readonly #components: WriteComponents;
  readonly #options: SendFolderOptions;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #progress = { reached: false, retries: 0 };
  #documents = 0;
  #bytes = 0;
  #requests = 0;
  failure: Error | null = null;

  constructor(components: WriteComponents, options: SendFolderOptions) {
    this.#components = components;
    this.#options = options;
  }

  counts(leftOut: number): LoadCounts {
    return {
      documents: this.#documents,
      bytes: this.#bytes,
      requests: this.#requests,
      retries: this.#progress.retries,
      leftOut,
    };
  }

  /** Resolves once the request is under way. */
  async send(batch: DocumentBatch, leftOut: number): Promise<void> {
    while (this.#inFlight.size >= requestsInFlightMax) await Promise.race(this.#inFlight);
    if (this.failure !== null) return;
    const work: Promise<void> = this.#put(batch, leftOut).finally(() => this.#inFlight.delete(work));
    this.#inFlight.add(work);
  }

  async end(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  async #put(batch: DocumentBatch, leftOut: number): Promise<void> {
    try {
      await putDocuments(this.#components, this.#options, batch.body, this.#progress);
    } catch (error) {
      // Kept, not thrown: nobody waits for this promise yet. Whoever reads `failure` throws it.
      this.failure ??= error instanceof Error ? error : new Error(String(error));
      return;
    }
    this.#documents += batch.documents;
    this.#bytes += batch.fileBytes;
    this.#requests += 1;
    this.#options.onProgress?.(this.counts(leftOut));
  }
}
