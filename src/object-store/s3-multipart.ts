/**
 * A stream as one S3 object: one PUT where it fits a part, otherwise a multipart upload. Pure of the SDK: what it asks
 * for is `S3StreamCalls`, each of which is sent once.
 */
import type { Clock } from '../base/clock.ts';
import { type PutResult, StoreError, type StreamResult } from './object-store.ts';
import { inParts } from './uploads.ts';

export interface S3StreamCalls {
  /** The object under the key, null where there is none. */
  find(): Promise<{ readonly etag: string; readonly size: number } | null>;
  /** By create-if-absent. */
  create(bytes: Uint8Array): Promise<PutResult>;
  begin(): Promise<string>;
  /** The part's etag. */
  part(uploadId: string, number: number, bytes: Uint8Array): Promise<string>;
  /** The object's etag; null where the store does not say. */
  complete(uploadId: string, etags: readonly string[]): Promise<string | null>;
  abort(uploadId: string): Promise<void>;
  readonly clock: Clock;
  /** The store was closed: nothing is tried again. */
  isClosed(): boolean;
}

/** The upload is not there: it was aborted, or it is complete. */
export class UploadGone extends StoreError {}

/** Some stores want parts of equal size; S3 takes 10,000 parts, 5 MB at least: objects of up to 80 GB. */
export const s3PartBytes = 8 * 1024 * 1024;
/** With the one that fills, 40 MB in memory. */
const partsInFlightMax = 4;
/** Tries of one request, with pauses that double: about 15 seconds in all before the stream is given up. */
const triesMax = 7;
const firstPauseMs = 250;

export async function putS3Stream(
  calls: S3StreamCalls,
  chunks: AsyncIterable<Uint8Array>,
): Promise<StreamResult> {
  const parts = inParts(chunks, s3PartBytes);
  try {
    const { first, second } = await firstTwo(parts);
    if (second === null) return await createOnce(calls, first);
    // The store has no conditions for multipart uploads that one could rely on.
    if ((await patiently(calls, () => calls.find())) !== null) return { kind: 'refused' };
    return await putMultipart(calls, [first, second], parts);
  } finally {
    await parts.return();
  }
}

type Parts = AsyncGenerator<Uint8Array, void, void>;

async function firstTwo(parts: Parts): Promise<{ first: Uint8Array; second: Uint8Array | null }> {
  const [first, second] = [await parts.next(), await parts.next()];
  if (first.done === true) throw new Error('a stream has at least one part');
  return { first: first.value, second: second.done === true ? null : second.value };
}

/** A refusal after a try whose outcome is not known is that try's success: nobody else writes under the name. */
async function createOnce(calls: S3StreamCalls, bytes: Uint8Array): Promise<StreamResult> {
  let mayBeOurs = false;
  const put = await patiently(calls, async () => {
    try {
      return await calls.create(bytes);
    } catch (error) {
      mayBeOurs ||= error instanceof StoreError && error.outcome === 'unknown';
      throw error;
    }
  }).catch((error: unknown) => {
    throw mayBeOurs ? asUnknown(error) : error;
  });
  if (put.kind === 'stored') return { ...put, size: bytes.length };
  return mayBeOurs ? found(calls, bytes.length, new Error('it was seen, and is gone')) : put;
}

/** What stands under the key after outcomes that are not known. */
async function found(calls: S3StreamCalls, size: number, otherwise: unknown): Promise<StreamResult> {
  const object = await patiently(calls, () => calls.find()).catch((error: unknown) => {
    throw asUnknown(error);
  });
  if (object?.size !== size) throw otherwise;
  return { kind: 'stored', etag: object.etag, size };
}

async function putMultipart(
  calls: S3StreamCalls,
  begun: readonly Uint8Array[],
  rest: Parts,
): Promise<StreamResult> {
  const uploadId = await patiently(calls, () => calls.begin());
  let sent: { etags: readonly string[]; size: number };
  try {
    sent = await sendParts(begun, rest, (number, bytes) =>
      patiently(calls, () => calls.part(uploadId, number, bytes)),
    );
  } catch (error) {
    // What can't be aborted now is collected later.
    await calls.abort(uploadId).catch(() => {});
    throw error;
  }
  return complete(calls, uploadId, sent);
}

/** All parts are sent or have failed when it ends. */
async function sendParts(
  begun: readonly Uint8Array[],
  rest: Parts,
  send: (number: number, bytes: Uint8Array) => Promise<string>,
): Promise<{ etags: readonly string[]; size: number }> {
  const sending: Promise<string>[] = [];
  const running = new Set<Promise<boolean>>();
  let size = 0;
  let failed = false;
  const start = async (bytes: Uint8Array) => {
    size += bytes.length;
    const part = send(sending.length + 1, bytes);
    sending.push(part);
    const ended: Promise<boolean> = part.then(
      () => running.delete(ended),
      () => {
        failed = true;
        return running.delete(ended);
      },
    );
    running.add(ended);
    while (running.size >= partsInFlightMax) await Promise.race(running);
    // No more is read for nothing.
    if (failed) await Promise.all(sending);
  };
  try {
    for (const bytes of begun) await start(bytes);
    for await (const bytes of rest) await start(bytes);
    return { etags: await Promise.all(sending), size };
  } finally {
    await Promise.allSettled(sending);
  }
}

/**
 * Until it is known what the store has: a repeated completion may find the upload gone because an earlier one got through.
 * Parts that are all there and cannot be completed are left to collection, since the completion may still arrive.
 */
async function complete(
  calls: S3StreamCalls,
  uploadId: string,
  { etags, size }: { readonly etags: readonly string[]; readonly size: number },
): Promise<StreamResult> {
  try {
    const etag = await patiently(calls, () => calls.complete(uploadId, etags));
    if (etag !== null) return { kind: 'stored', etag, size };
  } catch (error) {
    return found(calls, size, error instanceof UploadGone ? error : asUnknown(error));
  }
  return found(calls, size, new Error('it was completed, and is gone'));
}

/** Tries again after a StoreError, but not where the upload is gone. */
async function patiently<T>(calls: S3StreamCalls, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof StoreError) || error instanceof UploadGone) throw error;
      if (tries === triesMax || calls.isClosed()) throw error;
      await calls.clock.sleep(firstPauseMs * 2 ** (tries - 1));
    }
  }
}

function asUnknown(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  return new StoreError(error.operation, error.key, 'unknown', error.reason, { cause: error.cause });
}
