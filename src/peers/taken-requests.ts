import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { NumberMap } from '../base/number-map.ts';
import type { SentBody } from './message.ts';
import { type RequestName, RequestNames } from './request-names.ts';

/** What whoever asked hears: the answer, or that there is none for this copy. */
export type ToldAsker =
  | { readonly kind: 'answer'; readonly head: unknown; readonly body: SentBody }
  /** Another copy was asked after it, which gets the answer. */
  | { readonly kind: 'elsewhere' }
  /** A copy before it has had the answer, which was not kept. */
  | { readonly kind: 'copy' };

/** Called once for each copy of a request. */
export type Asker = (told: ToldAsker) => void;

interface UnderWay {
  asker: Asker;
  /** Whether it was told at any time that nobody waits: what it answers may be short for that reason. */
  isCancelled: boolean;
  wasCopied: boolean;
}

interface Kept {
  readonly head: unknown;
  readonly body: Uint8Array | null;
  readonly bytes: number;
  readonly sinceMs: number;
}

/** Origins that are remembered before those without a request under way are forgotten: else a map for each would be made again and again. */
const originsKept = 64;

/**
 * The requests that have come to this server, each of which is done once. 1. A new name is begun. 2. A copy of what is under way gets its
 * answer, and the one before it gets none: whoever asks again has lost that way. 3. A copy of what was answered gets the same answer, where it was
 * kept. 4. Any other copy is refused.
 */
export class TakenRequests {
  readonly #clock: Clock;
  readonly #names = new RequestNames();
  /** Requests under way, by origin and sequence. Origins without any are forgotten once there are many. */
  readonly #underWay = new Map<string, NumberMap<UnderWay>>();
  /** The oldest first. */
  readonly #kept = new Map<string, Kept>();
  #keptBytes = 0;
  #isDropping = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Bytes of the answers that are kept. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** True where the request is to be begun: `end` follows once. Else the asker is told, now or when the first copy is answered. */
  take(name: RequestName, asker: Asker): boolean {
    if (this.#names.admit(name)) {
      this.#begin(name, { asker, isCancelled: false, wasCopied: false });
      return true;
    }
    if (!this.giveKnown(name, asker)) asker({ kind: 'copy' });
    return false;
  }

  /** Gives a copy the answer of the first, now or later; false where nothing is known of one. */
  giveKnown(name: RequestName, asker: Asker): boolean {
    const underWay = this.#underWay.get(name.origin)?.get(name.sequence);
    if (underWay !== undefined) {
      const before = underWay.asker;
      underWay.asker = asker;
      underWay.wasCopied = true;
      before({ kind: 'elsewhere' });
      return true;
    }
    const kept = this.#kept.get(keyOf(name));
    if (kept === undefined) return false;
    const { head, body } = kept;
    asker({ kind: 'answer', head, body });
    return true;
  }

  /** Notes that a request under way was told that nobody waits for it. */
  cancelled({ origin, sequence }: RequestName): void {
    const underWay = this.#underWay.get(origin)?.get(sequence);
    if (underWay !== undefined) underWay.isCancelled = true;
  }

  /** Answers whoever asked last. False where nothing of this name is under way. */
  end(name: RequestName, head: unknown, body: SentBody, isKept: boolean): boolean {
    const underWay = this.#remove(name);
    if (underWay === null) return false;
    if (isKept && (body === null || body instanceof Uint8Array)) this.#keep(name, head, body);
    const { asker, isCancelled, wasCopied } = underWay;
    // Who has asked again waits, whatever was said of the first.
    if (isCancelled && wasCopied && !isKept) asker({ kind: 'copy' });
    else asker({ kind: 'answer', head, body });
    return true;
  }

  /** Ends what will have no answer. */
  fail(name: RequestName): void {
    this.#remove(name)?.asker({ kind: 'elsewhere' });
  }

  #begin({ origin, sequence }: RequestName, underWay: UnderWay): void {
    const known = this.#underWay.get(origin);
    if (known !== undefined) return known.set(sequence, underWay);
    if (this.#underWay.size >= originsKept)
      for (const [other, requests] of this.#underWay) if (requests.size === 0) this.#underWay.delete(other);
    const ofOrigin = new NumberMap<UnderWay>();
    ofOrigin.set(sequence, underWay);
    this.#underWay.set(origin, ofOrigin);
  }

  #remove({ origin, sequence }: RequestName): UnderWay | null {
    const ofOrigin = this.#underWay.get(origin);
    const underWay = ofOrigin?.get(sequence);
    if (ofOrigin === undefined || underWay === undefined) return null;
    ofOrigin.delete(sequence);
    return underWay;
  }

  #keep(name: RequestName, head: unknown, body: Uint8Array | null): void {
    const length = body?.byteLength ?? 0;
    if (length > limits.peerAnswerKeptBytesMax) return;
    const bytes = limits.peerAnswerHeadBytes + length;
    // Its own bytes: a view would keep all of the memory that it lies in.
    const kept = { head, body: body?.slice() ?? null, bytes, sinceMs: this.#clock.monotonic() };
    this.#kept.set(keyOf(name), kept);
    this.#keptBytes += bytes;
    while (this.#keptBytes > limits.peerAnswersKeptBytesMax) this.#dropOldest();
    this.#dropLater();
  }

  #dropOldest(): void {
    for (const [key, { bytes }] of this.#kept) {
      this.#kept.delete(key);
      this.#keptBytes -= bytes;
      return;
    }
  }

  #dropLater(): void {
    if (this.#isDropping) return;
    this.#isDropping = true;
    this.#clock.after(limits.peerAnswersKeptMs / 2, () => {
      this.#isDropping = false;
      const until = this.#clock.monotonic() - limits.peerAnswersKeptMs;
      for (const { sinceMs } of this.#kept.values()) {
        if (sinceMs > until) break;
        this.#dropOldest();
      }
      if (this.#kept.size > 0) this.#dropLater();
    });
  }
}

function keyOf({ origin, sequence }: RequestName): string {
  return `${origin} ${sequence}`;
}
