/** A document's meta as raw JSON text: what was written is what is read, digit by digit. */
import { invalidField } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { DataError, must } from '../../src/base/assert.ts';
import { JsonSyntaxError, openScan } from '../../src/base/json-scanner.ts';
import { type ObjectMember, readObjectMembers } from '../../src/base/object-members.ts';

/**
 * Merges a patch into a document's meta, key by key on the top level: a value replaces, `null` removes, other keys
 * keep their value and place. Values keep their text. Keys are compared by what they mean, so `"\u0061"` is `"a"`; of
 * duplicates the last one wins.
 *
 * @param field the path that a refusal names, such as `docs[3].meta`.
 * @throws ApiError `invalid` where the result is larger than a meta may be; DataError where the stored meta is not JSON.
 */
export function mergeMeta(currentRawMeta: Buffer | null, patchRawMeta: Buffer, field = 'meta'): Buffer {
  const merged = new Map(currentRawMeta === null ? [] : storedMembers(currentRawMeta));
  for (const [name, member] of members(patchRawMeta)) {
    if (member.value.equals(nullText)) merged.delete(name);
    else merged.set(name, member);
  }
  const raw = joined(merged);
  if (raw.length > limits.documentMetaBytesMax) {
    throw invalidField(field, `must be at most ${limits.documentMetaBytesMax} bytes after the merge`);
  }
  return raw;
}

const nullText = Buffer.from('null');
const openText = Buffer.from('{');
const closeText = Buffer.from('}');
const colonText = Buffer.from(':');
const commaText = Buffer.from(',');

function joined(merged: ReadonlyMap<string, ObjectMember>): Buffer {
  const parts: Buffer[] = [];
  for (const { key, value } of merged.values())
    parts.push(parts.length === 0 ? openText : commaText, key, colonText, value);
  return parts.length === 0 ? Buffer.from('{}') : Buffer.concat([...parts, closeText]);
}

/** By their decoded keys; of duplicates the last one. Throws DataError. */
export function storedMembers(raw: Buffer): ReadonlyMap<string, ObjectMember> {
  try {
    return members(raw);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new DataError('a stored meta', error.offset, error.message);
    throw error;
  }
}

/** The top-level members by decoded key: a Map, because `__proto__` is a key like any other. */
function members(raw: Buffer): Map<string, ObjectMember> {
  const found = readObjectMembers(openScan(raw), raw, limits.jsonDepthMax);
  return new Map(must(found, 'a meta that is an object').map((member) => [member.name, member]));
}
