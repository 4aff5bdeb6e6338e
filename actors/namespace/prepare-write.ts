import { limits } from '../../protocol/limits.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { ComputeLanes } from '../compute/lanes.ts';
import { parseDelete, parsePatch, parsePut } from '../storage/parse-write.ts';
import { loadBatch, type LoadedBatch } from './namespace-state.ts';

/**
 * A write request understood and checked, before its namespace is looked for: a body that is wrong makes no namespace.
 * A patch's batch holds patches, which become documents in their turn.
 */
export interface PreparedWrite {
  readonly kind: 'put' | 'delete' | 'patch';
  readonly batch: LoadedBatch;
}

export const writeOperations: ReadonlyMap<string, PreparedWrite['kind']> = new Map([
  ['putDocuments', 'put'],
  ['deleteDocuments', 'delete'],
  ['patchDocuments', 'patch'],
]);

export async function prepareWrite(
  lanes: ComputeLanes,
  kind: PreparedWrite['kind'],
  body: Uint8Array,
): Promise<PreparedWrite> {
  if (body.byteLength > limits.parseInlineBytesMax) {
    return { kind, batch: loadBatch(await lanes.parse({ task: 'parse', kind, body })) };
  }
  return { kind, batch: loadBatch(parseBody(kind, body)) };
}

/** The batch of a write body, in shared memory. */
export function parseBody(kind: PreparedWrite['kind'], body: Uint8Array): Uint8Array {
  if (body.byteLength === 0) throw new ApiError('bad_request', 'this request needs a JSON body');
  switch (kind) {
    case 'put':
      return parsePut(body).batch;
    case 'delete':
      return parseDelete(body).batch;
    case 'patch':
      return parsePatch(body).batch;
  }
}

/** Only a document makes a namespace: deleting and patching need one that exists. */
export function makesNamespace(write: PreparedWrite): boolean {
  return write.kind === 'put' && write.batch.documentOffsets.length > 0;
}
