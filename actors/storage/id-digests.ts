import {
  shaBlockBytes,
  shaLanes,
  shaMessageBytesMax,
  threadShaLanes,
  writeBlock,
} from '../kernels/sha256.ts';
import { digestId, type IdDigestFunction, idDigestWords } from './id-digest.ts';

const rowsInitial = 1024;

/** Digests of the ids of rows, in their order: short ids are digested four at a time. Memory: 16 bytes a row. */
export class IdDigests {
  /** What digests each id; null: SHA-256, four short ids at a time. */
  readonly #digest: IdDigestFunction | null;
  #words: Uint32Array<ArrayBuffer>;
  #count = 0;
  /** Short ids that are not digested yet, as blocks, and where their digests go. */
  readonly #blocks = new Uint8Array(shaLanes * shaBlockBytes);
  readonly #places = new Uint32Array(shaLanes);
  #waiting = 0;

  /** Makes room for `rowsExpected` rows, where their number is known; more find room as they come. */
  constructor({
    rowsExpected = rowsInitial,
    digest = null,
  }: { readonly rowsExpected?: number | undefined; readonly digest?: IdDigestFunction | undefined | null }) {
    this.#words = new Uint32Array(rowsExpected * idDigestWords);
    this.#digest = digest;
  }

  /** Takes the next row's id, from `start` to `end` of `bytes`. Hot: once a row. */
  add(bytes: Uint8Array, start = 0, end = bytes.length): void {
    const at = this.#count++ * idDigestWords;
    if (at === this.#words.length) this.#grow();
    if (this.#digest !== null) this.#digest(bytes.subarray(start, end), this.#words, at);
    else if (end - start > shaMessageBytesMax) digestId(bytes.subarray(start, end), this.#words, at);
    else {
      writeBlock(this.#blocks, this.#waiting * shaBlockBytes, bytes, start, end);
      this.#places[this.#waiting++] = at;
      if (this.#waiting === shaLanes) this.#digestWaiting();
    }
  }

  /** Answers the digests of all ids so far, four words a row. */
  all(): Uint32Array {
    this.#digestWaiting();
    return this.#words;
  }

  #digestWaiting(): void {
    const digests = threadShaLanes().digest(this.#blocks);
    for (let lane = 0; lane < this.#waiting; lane++) {
      const place = this.#places[lane] as number;
      for (let word = 0; word < idDigestWords; word++)
        this.#words[place + word] = digests[lane * idDigestWords + word] as number;
    }
    this.#waiting = 0;
  }

  #grow(): void {
    const words = new Uint32Array(Math.max(rowsInitial * idDigestWords, this.#words.length * 2));
    words.set(this.#words);
    this.#words = words;
  }
}
