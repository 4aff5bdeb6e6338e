import { limits } from '../../protocol/limits.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import type { WantedMatches } from '../text/judge.ts';
import type { MatchPlace } from '../text/snippet.ts';
import type { AnswerRoom } from './answer-room.ts';
import { hitJson, type LongHit, longHit } from './answers.ts';
import type { ScannedDocument } from './scan.ts';

/** What an answer holds beside its hits, ids or rows: names, numbers and the cursor. */
export const frameBytes = 1_000;

/** A hit of an answer: its JSON as text, as UTF-8, or as what it is made of. */
export type AnswerPart = string | Buffer | LongHit;

/** Longer hits are made bytes as they come: together they would take long, and as strings they lie in V8's heap. */
const textLengthMax = 16 * 1024;

/** How many bytes of UTF-8 it is. */
export function bytesOfPart(part: AnswerPart): number {
  return typeof part === 'string' ? Buffer.byteLength(part) : part.length;
}

/**
 * The hits of one answer, newest first, until it has as many as were asked for or as many bytes as it may have.
 *
 * The first hit is always there, or the next page would begin where this one did: one that alone is too large comes without
 * the parts that were included on request.
 */
export class Page {
  readonly hits: AnswerPart[] = [];
  readonly #request: SearchRequest;
  readonly #room: AnswerRoom;
  #bytesLeft: number;
  #bytesTaken = 0;
  #lastSequence: number | null = null;
  #isFull = false;
  #isTruncated = false;

  /** `room`: where the answer's memory comes from; where there is no more, the page is cut as by `max_bytes`. */
  constructor(request: SearchRequest, room: AnswerRoom) {
    this.#request = request;
    this.#room = room;
    this.#bytesLeft =
      Math.min(request.max_bytes ?? limits.answerBytesMax, limits.answerBytesMax) - frameBytes;
  }

  /** A document came that is of the next page. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Something was left out to stay within the bytes. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** The sequence of the last hit; null before the first. */
  get lastSequence(): number | null {
    return this.#lastSequence;
  }

  /** Which matches a hit shows. */
  get wanted(): WantedMatches {
    return this.#request.include?.includes('matches') ? 'all' : 'first';
  }

  /** Answers false where the document is of the next page. */
  take(document: ScannedDocument, matches: readonly MatchPlace[]): boolean {
    // A hit that was cut is the last of its page, so that whoever counts on `next` is told that there is more.
    if (this.hits.length === this.#request.limit || this.#isTruncated) return this.#close();
    const json = longHit(document, matches, this.#request) ?? hitJson(document, matches, this.#request);
    return this.add({
      sequence: document.sequence,
      json,
      get bare() {
        return hitJson(document, matches);
      },
    });
  }

  /** A hit with all that was included, and without. Answers as `take`. */
  add(hit: { readonly sequence: number; readonly json: AnswerPart; readonly bare: AnswerPart }): boolean {
    if (this.hits.length === this.#request.limit || this.#isTruncated) return this.#close();
    let part = partOf(hit.json);
    let bytes = bytesOfPart(part) + 1;
    const fits = bytes <= this.#bytesLeft && this.#room.take(bytes);
    if (!fits) {
      this.#isTruncated = true;
      if (this.hits.length > 0) return this.#close();
      part = partOf(hit.bare);
      bytes = bytesOfPart(part) + 1;
    }
    if (fits) this.#bytesTaken += bytes;
    this.#bytesLeft -= bytes;
    this.hits.push(part);
    this.#lastSequence = hit.sequence;
    return true;
  }

  /** The page is not answered: another one is made, and takes its room. */
  discard(): void {
    this.#room.give(this.#bytesTaken);
    this.#bytesTaken = 0;
  }

  #close(): boolean {
    this.#isFull = true;
    return false;
  }
}

function partOf(json: AnswerPart): AnswerPart {
  return typeof json === 'string' && json.length > textLengthMax ? Buffer.from(json) : json;
}
