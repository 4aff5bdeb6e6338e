import type { FolderDocument } from './folder-documents.ts';

/** Documents of one write request: enough that the request's own cost is small. */
export const batchDocumentsMax = 1_000;
/** About the size of one group of the server's log: larger requests gain nothing and hold up others. */
export const batchBytesMax = 4 * 1024 * 1024;

/** The body of one write request. */
export interface DocumentBatch {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly documents: number;
  /** Bytes of the files in it. */
  readonly fileBytes: number;
}

const opening = Buffer.from('{"docs":[');
const comma = Buffer.from(',');
const closing = Buffer.from(']}');

/** Packs documents into write requests. A document over `batchBytesMax`, which escapes can make it, travels alone. */
export class BatchPacker {
  #parts: Buffer[] = [];
  #bytes = 0;
  #documents = 0;
  #fileBytes = 0;

  /** The batch that is full before this document joins the next one, or null. */
  add({ id, text, meta }: FolderDocument): DocumentBatch | null {
    const json = Buffer.from(JSON.stringify({ id, text, meta }));
    const isFull = this.#documents === batchDocumentsMax || this.#bytes + json.byteLength > batchBytesMax;
    const full = isFull ? this.end() : null;
    if (this.#documents > 0) this.#parts.push(comma);
    this.#parts.push(json);
    this.#bytes += json.byteLength + comma.byteLength;
    this.#documents += 1;
    this.#fileBytes += meta.size;
    return full;
  }

  /** What is packed so far, or null where that is nothing. */
  end(): DocumentBatch | null {
    if (this.#documents === 0) return null;
    const body = new Uint8Array(Buffer.concat([opening, ...this.#parts, closing]));
    const batch = { body, documents: this.#documents, fileBytes: this.#fileBytes };
    this.#parts = [];
    this.#bytes = 0;
    this.#documents = 0;
    this.#fileBytes = 0;
    return batch;
  }
}
