import { limits } from '../../protocol/limits.ts';
import '../base/buffer-pool.ts';
import { packBehind, unpackCopy } from '../base/msgpack.ts';
import { PeerProtocolError } from './frame.ts';
import type { IncomingBody } from './incoming-body.ts';

/** A body whose bytes come one after the other. Who takes it reads it to its end, or ends the iteration. */
export interface StreamedBody {
  /** How many bytes there are; null where that is not known before the end. */
  readonly bytes: number | null;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** What is sent: handed over, the sender may not touch it afterwards. */
export type SentBody = Uint8Array | StreamedBody | null;

/** Whoever made a stream hears that nobody reads it. */
export function endUnread(body: SentBody): void {
  if (body === null || body instanceof Uint8Array) return;
  body.chunks[Symbol.asyncIterator]()
    .return?.()
    .catch(() => {});
}

/** What came: whole where it lay in one frame, one after the other where it did not. */
export type ReceivedBody = Uint8Array | IncomingBody | null;

/**
 * A message is the length of its envelope in 4 bytes (the lowest first), the envelope as MessagePack, and the body. The
 * envelope is [what the body is, what the sender's side says of the message].
 */
type EnvelopeWire = [body: number, said: unknown];

/** What the body is: how many bytes, or one of these. */
const bodies = { none: -1, unknownLength: -2 } as const;
const lengthBytes = 4;

/** Where a message begins: its envelope with the length before it, on memory that others share. */
export function encodeEnvelope(said: unknown, body: SentBody): Uint8Array {
  const wire: EnvelopeWire = [bodyNumber(body), said];
  const bytes = packBehind(lengthBytes, wire);
  const length = bytes.byteLength - lengthBytes;
  if (bytes.byteLength > limits.peerHeadBytesMax) throw new HeadTooLarge(length);
  bytes.writeUInt32LE(length, 0);
  return bytes;
}

/** A head that no server takes: the caller hears that nothing was sent. */
export class HeadTooLarge extends Error {
  override name = 'HeadTooLarge';

  constructor(bytes: number) {
    super(`a head of ${bytes} bytes: it has ${limits.peerHeadBytesMax} at most`);
  }
}

function bodyNumber(body: SentBody): number {
  if (body === null) return bodies.none;
  if (body instanceof Uint8Array) return body.byteLength;
  return body.bytes ?? bodies.unknownLength;
}

/** How many bytes the envelope takes with its length before it; null where not even that is there. */
export function envelopeBytes(bytes: Uint8Array): number | null {
  if (bytes.byteLength < lengthBytes) return null;
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  if (length <= limits.peerHeadBytesMax - lengthBytes) return lengthBytes + length;
  throw new PeerProtocolError(`a head of ${length} bytes: it has ${limits.peerHeadBytesMax} at most`);
}

export interface MessageEnvelope {
  readonly said: unknown;
  readonly hasBody: boolean;
  /** Null where the length is not known. */
  readonly bodyBytes: number | null;
}

/** The first `whole` bytes, of which `envelopeBytes` told, as what they say. */
export function decodeEnvelope(bytes: Uint8Array, whole: number): MessageEnvelope {
  let wire: unknown;
  try {
    // What comes next takes the place of these bytes.
    wire = unpackCopy(bytes.subarray(lengthBytes, whole));
  } catch (cause) {
    throw new PeerProtocolError('a head that is no MessagePack', { cause });
  }
  if (!Array.isArray(wire) || wire.length !== 2 || !Number.isSafeInteger(wire[0])) {
    throw new PeerProtocolError('a head of another shape');
  }
  const [body, said] = wire as EnvelopeWire;
  return { said, hasBody: body !== bodies.none, bodyBytes: body >= 0 ? body : null };
}

/** A message that lay in one frame. */
export function decodeWholeMessage(bytes: Uint8Array): { said: unknown; body: Uint8Array | null } {
  const whole = envelopeBytes(bytes);
  if (whole === null || whole > bytes.byteLength)
    throw new PeerProtocolError('a message ends within its head');
  const { said, hasBody, bodyBytes } = decodeEnvelope(bytes, whole);
  const length = bytes.byteLength - whole;
  if (hasBody ? bodyBytes !== null && bodyBytes !== length : length > 0) throw wrongLength();
  return { said, body: hasBody ? bytesKept(bytes.subarray(whole)) : null };
}

/** A copy of the bytes. Short ones lie in a pool, since an array of its own costs more than they do; messages between threads move no short ones. */
function bytesKept(bytes: Uint8Array): Uint8Array {
  const kept = Buffer.from(bytes);
  // No Buffer, whose `slice` would be a view.
  return new Uint8Array(kept.buffer, kept.byteOffset, kept.byteLength);
}

export function wrongLength(): PeerProtocolError {
  return new PeerProtocolError('a body of another length than its head says');
}
