/** The hits of a search by a vector while they are gathered: the nearest, those that come in order, and the page. */
import { limits } from '../../protocol/limits.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import type { WantedMatches } from '../text/judge.ts';
import { type DistanceFrom, scoreOf } from '../vector/distance.ts';
import { Nearest, type Ranked } from '../vector/nearest.ts';
import type { AnswerRoom } from './answer-room.ts';
import { Page } from './page.ts';

export interface KeptHit {
  readonly sequence: number;
  /** Null where the document has no vector. */
  readonly distance: number | null;
  /** The hit with all that was included; `bare` is without. */
  readonly json: string;
  readonly bare: string;
}

/** A kept hit that has a vector. */
export type NearHit = KeptHit & Ranked;

export interface Scored extends KeptHit {
  readonly score: number;
}

/** Takes hits, nearest first, until it has enough. */
export interface HitTaker {
  /** Which matches a hit shows. */
  readonly wanted: WantedMatches;
  /** Hits that it has. */
  readonly count: number;
  /** How many it would have. */
  readonly countMax: number;
  /** Answers false where it takes no more. */
  add(hit: NearHit): boolean;
  /** Gives back the room of the hits that were taken: they are not answered. */
  discard(): void;
}

/** Adds fields behind the last one of a hit: both texts have to end with the brace that closes it. */
export function withRank({ json, bare, sequence, distance, score }: Scored) {
  const rank = `,"score":${score}${distance === null ? '' : `,"distance":${distance}`}}`;
  return { sequence, json: json.slice(0, -1) + rank, bare: bare.slice(0, -1) + rank };
}

/** Answers the bytes of a kept hit: with what was included, and without, in case that does not fit. */
function bytesOf({ json, bare }: Pick<KeptHit, 'json' | 'bare'>): number {
  return json === bare ? json.length : json.length + bare.length;
}

/** Hits come whole, so what is kept is bounded as an answer is: the worst go where there are too many bytes. */
export class NearestHits {
  readonly #nearest: Nearest<NearHit>;
  readonly #room: AnswerRoom;
  #bytes = 0;
  #isCut = false;

  constructor(count: number, room: AnswerRoom) {
    this.#nearest = new Nearest(count);
    this.#room = room;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** The hits that are kept, nearest first. */
  get hits(): readonly NearHit[] {
    return this.#nearest.sorted();
  }

  wants(ranked: Ranked): boolean {
    return this.#nearest.wants(ranked);
  }

  add(hit: NearHit): void {
    const gone = this.#nearest.add(hit);
    if (gone !== null) this.#letGo(gone);
    this.#bytes += bytesOf(hit);
    while (this.#bytes > limits.answerBytesMax || !this.#room.take(bytesOf(hit))) {
      const worst = this.#nearest.dropWorst();
      if (worst === null) return;
      this.#isCut = true;
      this.#bytes -= bytesOf(worst);
      if (worst === hit) return;
      this.#room.give(bytesOf(worst));
    }
  }

  #letGo(hit: NearHit): void {
    this.#bytes -= bytesOf(hit);
    this.#room.give(bytesOf(hit));
  }
}

/** Hits in the order in which they come, as many as are wanted, or as have room. */
export class HitsInOrder<Hit extends KeptHit> {
  readonly hits: Hit[] = [];
  readonly countMax: number;
  readonly wanted: WantedMatches;
  readonly #room: AnswerRoom;
  #bytes = 0;
  #isCut = false;

  constructor(countMax: number, room: AnswerRoom, wanted: WantedMatches) {
    this.countMax = countMax;
    this.wanted = wanted;
    this.#room = room;
  }

  get count(): number {
    return this.hits.length;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  get wantsMore(): boolean {
    return this.hits.length < this.countMax && !this.#isCut;
  }

  /**
   * Takes a hit, and answers whether more are wanted. A hit for which there is no room is the last one, so that there is always a first.
   */
  add(hit: Hit): boolean {
    this.hits.push(hit);
    const bytes = bytesOf(hit);
    this.#isCut = this.#bytes + bytes > limits.answerBytesMax || !this.#room.take(bytes);
    if (!this.#isCut) this.#bytes += bytes;
    return this.wantsMore;
  }

  discard(): void {
    this.#room.give(this.#bytes);
    this.#bytes = 0;
  }
}

/** The page of a search by a vector alone, which takes hits nearest first. */
export class PageOfNearest implements HitTaker {
  readonly page: Page;
  readonly countMax: number;
  readonly #distances: DistanceFrom;

  constructor(request: SearchRequest, room: AnswerRoom, distances: DistanceFrom) {
    this.page = new Page(request, room);
    this.countMax = request.limit;
    this.#distances = distances;
  }

  get wanted(): WantedMatches {
    return this.page.wanted;
  }

  get count(): number {
    return this.page.hits.length;
  }

  add(hit: NearHit): boolean {
    const score = scoreOf(this.#distances.metric, hit.distance);
    return this.page.add(withRank({ ...hit, score })) && this.count < this.countMax && !this.page.isTruncated;
  }

  discard(): void {
    this.page.discard();
  }
}
