import { limits } from '../../protocol/limits.ts';
import type { NewNamespace } from '../../protocol/messages.ts';
import type { LaneClaim } from '../../protocol/worker-tasks.ts';
import type { ComputeLanes } from '../compute/lanes.ts';
import { type ParsedBody, parseWriteBody, type WriteKind } from '../storage/parse-write.ts';
import { type LoadedBatch, loadBatch } from './loaded-batch.ts';

/**
 * A write request understood and checked, before its namespace is looked for: a body that is wrong makes no namespace.
 * A patch's batch holds patches, which become documents in their turn.
 */
export interface PreparedWrite {
  readonly kind: WriteKind;
  readonly batch: LoadedBatch;
  /** The field that held the first vector, for a refusal to name; null without vectors. */
  readonly vectorField: ParsedBody['vectorField'];
}

export async function prepareWrite(
  lanes: ComputeLanes,
  kind: WriteKind,
  body: Uint8Array,
  claim: LaneClaim,
): Promise<PreparedWrite> {
  if (body.byteLength > limits.parseInlineBytesMax) {
    const { batch, vectorField } = await lanes.parse({ task: 'parse', kind, body }, claim);
    return { kind, batch: loadBatch(batch), vectorField };
  }
  const { batch, vectorField } = parseWriteBody(kind, body);
  return { kind, batch: loadBatch(batch), vectorField };
}

/**
 * What a write makes a missing namespace with. Only a document makes one: deleting and patching need one that exists. Its
 * vectors say how long the namespace's are.
 */
export function namespaceOf({ kind, batch }: PreparedWrite): NewNamespace | null {
  if (kind !== 'put' || batch.documentOffsets.length === 0) return null;
  const { dims } = batch;
  return { vector: dims === 0 ? null : { dims, metric: 'cosine' }, embed: null };
}
