import { ApiError } from '../../protocol/errors.ts';
import type { Clock } from '../base/clock.ts';
import { BodyLost, type IncomingBody } from '../peers/incoming-body.ts';
import type { ReceiveFile } from '../router/served-calls.ts';
import { packingNamed } from './body-packing.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { TakeChunk } from './http-types.ts';
import type { FileReceiver, FileSource } from './receive-file.ts';

/** Who sends nothing for so long has stopped. */
const stoppedMs = 5_000;

/** Receives files that other servers pass on as those of clients are received: with a place, room on the disk and the tenant's quota. */
export function fileOfPeer(files: Pick<FileReceiver, 'withBody'>, clock: Clock): ReceiveFile {
  return (body, { packing, ...whose }, work) =>
    files.withBody(new PeerFile(body, clock), { ...whose, packing: packingNamed(packing) }, work);
}

/** A file that comes through another server, at its client's pace. */
class PeerFile implements FileSource {
  readonly declaredBytes: number;
  readonly #body: IncomingBody | Uint8Array;
  readonly #clock: Clock;
  readonly #beganMs: number;
  #receivedBytes = 0;
  /** Since when it waits for the other server; null while the disk is waited for. */
  #waitsSinceMs: number | null = null;

  constructor(body: IncomingBody | Uint8Array, clock: Clock) {
    this.declaredBytes = body instanceof Uint8Array ? body.byteLength : (body.bytes ?? CHUNKED_BODY);
    this.#body = body;
    this.#clock = clock;
    this.#beganMs = clock.monotonic();
  }

  async streamBody(limitBytes: number, take: TakeChunk): Promise<number> {
    this.#waitsSinceMs = this.#clock.monotonic();
    const chunks = this.#body instanceof Uint8Array ? [this.#body] : this.#body;
    for await (const chunk of chunks) {
      this.#waitsSinceMs = null;
      this.#receivedBytes += chunk.byteLength;
      if (this.#receivedBytes > limitBytes)
        throw new ApiError('too_large', `the request body is over the limit of ${limitBytes} bytes`);
      await take(chunk);
      this.#waitsSinceMs = this.#clock.monotonic();
    }
    this.#waitsSinceMs = null;
    return this.#receivedBytes;
  }

  secondsLeft(): number {
    if (this.#waitsSinceMs === null) return 0;
    const now = this.#clock.monotonic();
    if (now - this.#waitsSinceMs >= stoppedMs) return Number.POSITIVE_INFINITY;
    if (this.declaredBytes === CHUNKED_BODY || this.#receivedBytes === 0) return 0;
    const bytesLeft = this.declaredBytes - this.#receivedBytes;
    return (bytesLeft / this.#receivedBytes) * ((now - this.#beganMs) / 1_000);
  }

  evict(): void {
    if (!(this.#body instanceof Uint8Array)) this.#body.end(new BodyLost('others need its room'));
  }
}
