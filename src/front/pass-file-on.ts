import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { BytePipe, PipeClosed } from '../base/byte-pipe.ts';
import type { Message } from '../base/port-channel.ts';
import type { StreamedBody } from '../peers/message.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { FileSource } from './receive-file.ts';

export interface PassingOn {
  /** Asked when all of the file has come, with its bytes. Where it rejects, nothing is begun, and that is what the client hears. */
  readonly admit: (bytes: number) => Promise<void>;
  /** Has the other server take the file. It begins when the file ends. */
  readonly send: (file: StreamedBody) => Promise<Message>;
}

/** Passes a client's file on to the server that does what it is for, as fast as both take it: nothing of it lies on this one's disk. */
export async function passFileOn(
  source: Pick<FileSource, 'declaredBytes' | 'streamBody'>,
  { admit, send }: PassingOn,
): Promise<Message> {
  const chunks = new BytePipe(limits.peerCreditBytes);
  let refused: unknown = null;
  let isWhole = false;
  const pass = async () => {
    const bytes = await source.streamBody(limits.importBodyBytesMax, async (chunk) =>
      chunks.write(Uint8Array.from(chunk)),
    );
    await admit(bytes);
    isWhole = true;
    chunks.end();
  };
  const { declaredBytes } = source;
  pass().catch((error: unknown) => {
    // Nobody reads any more: the other server has answered, or was lost, which is told below.
    if (!(error instanceof PipeClosed)) refused = error;
    chunks.end(error);
  });
  try {
    const message = await send({ bytes: declaredBytes === CHUNKED_BODY ? null : declaredBytes, chunks });
    // An answer that came before the end is a refusal, after which the rest is not wanted.
    chunks.close();
    return message;
  } catch (error) {
    chunks.close();
    if (refused !== null) throw refused;
    throw !isWhole && error instanceof ApiError && error.code === 'write_unknown' ? notBegun(error) : error;
  }
}

/** The end of the file has not left. */
function notBegun(cause: ApiError): ApiError {
  const sentence = 'the server that holds this namespace was lost; nothing was imported: send the file again';
  return new ApiError('unavailable', sentence, { retryAfter: 1, cause });
}
