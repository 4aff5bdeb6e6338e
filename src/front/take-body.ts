import { ApiError } from '../../protocol/errors.ts';
import { admitAgain } from './admit.ts';
import { bodyTooLarge } from './http-body.ts';
import type { Admitted, OperationRequest } from './request.ts';

/** Reads the body from the client, at the client's pace, into memory that the caller's share is held for. */
export async function receiveBody(request: Admitted): Promise<void> {
  const { front, exchange, operation, principal } = request;
  const { bytes, hold } = await front.held.readBody(exchange, principal.share, operation.bodyBytesMax);
  request.bodyHold = hold;
  takeBody(request, bytes);
  request.completeMs = front.observer.now();
  await admitAgain(request);
}

/** Reads the body of an operation without credentials: it is too small to be held. */
export async function receiveOpenBody(request: OperationRequest): Promise<void> {
  const { exchange, operation } = request;
  takeBody(request, new Uint8Array(await exchange.readBody(operation.bodyBytesMax)));
}

/** Takes a body that is whole. Throws 413 where it is too large, and 400 where the operation needs one and it is empty. */
export function takeBody(request: OperationRequest, body: Uint8Array): void {
  const { operation } = request;
  if (body.byteLength > operation.bodyBytesMax) throw bodyTooLarge(operation.bodyBytesMax);
  if (body.byteLength === 0 && operation.bodyRequired)
    throw new ApiError('bad_request', 'this request needs a JSON body');
  request.receivedBytes = body.byteLength;
  request.body = body;
}
