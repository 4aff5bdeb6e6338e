import assert from 'node:assert/strict';
import type { ObjectStore } from '../../src/object-store/object-store.ts';

/** A number as an object large enough that a mixture of two versions would show. */
export function counterBody(value: number): Uint8Array {
  return Buffer.from(`${value};`.repeat(3000 + (value % 7)));
}

/** Fails where the object is missing, or is not one whole version. */
export async function readCounter(store: ObjectStore, key: string): Promise<{ value: number; etag: string }> {
  const object = await store.get(key);
  assert.ok(object !== null, 'the counter is gone');
  const value = Number(Buffer.from(object.bytes.subarray(0, 16)).toString().split(';')[0]);
  assert.equal(Buffer.compare(object.bytes, counterBody(value)), 0, 'a mixture of versions');
  return { value, etag: object.etag };
}
