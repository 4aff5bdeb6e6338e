import { limits } from '../../protocol/limits.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import { escapedBytes, writeEscaped } from '../../src/base/json-text.ts';
import type { WantedMatches } from '../text/judge.ts';
import type { MatchPlace } from '../text/snippet.ts';
import type { AnswerRoom } from './answer-room.ts';
import { hitJson, type LongHit, longHit } from './answers.ts';
import type { ScannedDocument } from './scan.ts';
import type { TimeSlice } from './time-slice.ts';

/** What an answer holds beside its hits, ids or rows: names, numbers and the cursor. */
export const frameBytes = 1_000;

/** A hit of an answer: its JSON as text, as UTF-8, or as what it is made of. */
export type AnswerPart = string | Buffer | MeasuredHit;

/** A hit with a long text, and how many bytes its JSON has. */
interface MeasuredHit extends LongHit {
  readonly bytes: number;
}

/** When others should have their turn on this thread. */
type HitTurns = Pick<TimeSlice, 'due' | 'giveWay'>;

/** Longer hits are made bytes as they come: together they would take long, and as strings they lie in V8's heap. */
const textLengthMax = 16 * 1024;
/** So many bytes of a text are escaped between two looks at the clock: some tenths of a millisecond. */
const escapedAtOnce = 128 * 1024;

/** How many bytes of UTF-8 it is. */
export function bytesOfPart(part: AnswerPart): number {
  if (typeof part === 'string') return Buffer.byteLength(part);
  return Buffer.isBuffer(part) ? part.length : part.bytes;
}

/** Writes a part into `target` from `start` on; others have their turn meanwhile. Answers where it ends. */
export async function writePart(
  part: AnswerPart,
  { target, start, turns }: { readonly target: Buffer; readonly start: number; readonly turns: HitTurns },
): Promise<number> {
  if (typeof part === 'string') return start + target.write(part, start);
  if (Buffer.isBuffer(part)) return start + part.copy(target, start);
  let at = start + part.head.copy(target, start);
  for await (const piece of pieces(part.text, turns)) at = writeEscaped(piece, target, at);
  return at + part.tail.copy(target, at);
}

/** Cuts a long text into pieces; others have their turn between two of them. */
async function* pieces(text: Buffer, turns: HitTurns): AsyncGenerator<Buffer, void, void> {
  for (let from = 0; from < text.length; from += escapedAtOnce) {
    if (turns.due()) await turns.giveWay();
    yield text.subarray(from, from + escapedAtOnce);
  }
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

  /**
   * Answers false where the document is of the next page. A promise where its text is long: others have their turn while it is
   * measured.
   */
  take(
    document: ScannedDocument,
    matches: readonly MatchPlace[],
    turns: HitTurns,
  ): boolean | Promise<boolean> {
    // A hit that was cut is the last of its page, so that whoever counts on `next` is told that there is more.
    if (this.hits.length === this.#request.limit || this.#isTruncated) return this.#close();
    const { sequence } = document;
    const bare = () => hitJson(document, matches);
    const long = longHit(document, matches, this.#request);
    if (long !== null) return this.#takeLong({ sequence, long, bare }, turns);
    return this.#add(sequence, hitJson(document, matches, this.#request), bare);
  }

  async #takeLong(
    hit: { readonly sequence: number; readonly long: LongHit; readonly bare: () => string },
    turns: HitTurns,
  ): Promise<boolean> {
    const { head, text, tail } = hit.long;
    let bytes = head.length + tail.length;
    for await (const piece of pieces(text, turns)) bytes += escapedBytes(piece);
    return this.#add(hit.sequence, { ...hit.long, bytes }, hit.bare);
  }

  /** A hit with all that was included, and without. Answers as `take`. */
  add(hit: { readonly sequence: number; readonly json: string; readonly bare: string }): boolean {
    if (this.hits.length === this.#request.limit || this.#isTruncated) return this.#close();
    return this.#add(hit.sequence, hit.json, () => hit.bare);
  }

  #add(sequence: number, json: string | MeasuredHit, bare: () => string): boolean {
    let part = partOf(json);
    let bytes = bytesOfPart(part) + 1;
    const fits = bytes <= this.#bytesLeft && this.#room.take(bytes);
    if (!fits) {
      this.#isTruncated = true;
      if (this.hits.length > 0) return this.#close();
      part = partOf(bare());
      bytes = bytesOfPart(part) + 1;
    }
    if (fits) this.#bytesTaken += bytes;
    this.#bytesLeft -= bytes;
    this.hits.push(part);
    this.#lastSequence = sequence;
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

function partOf(json: string | MeasuredHit): AnswerPart {
  return typeof json === 'string' && json.length > textLengthMax ? Buffer.from(json) : json;
}
