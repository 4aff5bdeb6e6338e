import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalidField } from '../../protocol/errors.ts';
import { type KeyRing, keysOf } from '../../src/accounts/key-ring.ts';
import { sha256Hex } from '../../src/base/hash.ts';

/**
 * What a cursor is valid for. A cursor says where the next page begins: a sequence, signed together with the tenant, the
 * namespace and the query, so that it is valid on every server and of no use with another query. 8 bytes of sequence and 16 of
 * signature, base64url.
 */
export interface CursorScope {
  readonly tenantId: number;
  readonly namespaceId: string;
  /** The digest of everything that decides which documents match; the page's size is not part of it. */
  readonly queryDigest: string;
}

const signatureBytes = 16;

export function queryDigest(query: string, isRegex: boolean, filter: string): string {
  return sha256Hex(JSON.stringify([query, isRegex, filter]));
}

export function encodeCursor({ present }: KeyRing, scope: CursorScope, sequence: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(sequence));
  return Buffer.concat([bytes, sign(present, scope, bytes)]).toString('base64url');
}

/** The sequence under which the page begins. 422 where the cursor is not of this query, or signed with none of the keys. */
export function decodeCursor(keys: KeyRing, scope: CursorScope, cursor: string): number {
  const bytes = Buffer.from(cursor, 'base64url');
  const wellFormed = bytes.length === 8 + signatureBytes && bytes.toString('base64url') === cursor;
  const isOurs = (key: Uint8Array) =>
    timingSafeEqual(bytes.subarray(8), sign(key, scope, bytes.subarray(0, 8)));
  if (!wellFormed || !keysOf(keys).some(isOurs)) {
    throw invalidField('cursor', 'is not the `next` of an earlier answer to this same query');
  }
  return Number(bytes.readBigUInt64BE(0));
}

function sign(key: Uint8Array, scope: CursorScope, sequence: Uint8Array): Buffer {
  const { tenantId, namespaceId, queryDigest: digest } = scope;
  const hmac = createHmac('sha256', key)
    .update(`cursor\n${tenantId}\n${namespaceId}\n${digest}\n`)
    .update(sequence);
  return hmac.digest().subarray(0, signatureBytes);
}
