import { invalidField } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { assert, DataError } from '../../src/base/assert.ts';
import {
  anotherFollows,
  code,
  decodeString,
  JsonSyntaxError,
  nextByte,
  openScan,
  opensEmpty,
  scanKey,
  skipValue,
} from '../../src/base/json-scanner.ts';

/** A document's meta as raw JSON text: what was written is what is read, digit by digit. */

interface Member {
  /** `"key"` and value as they are written. */
  readonly key: Buffer;
  readonly value: Buffer;
}

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

function joined(merged: ReadonlyMap<string, Member>): Buffer {
  const parts: Buffer[] = [];
  for (const { key, value } of merged.values())
    parts.push(parts.length === 0 ? openText : commaText, key, colonText, value);
  return parts.length === 0 ? Buffer.from('{}') : Buffer.concat([...parts, closeText]);
}

/** By their decoded keys; of duplicates the last one. Throws DataError. */
export function storedMembers(raw: Buffer): ReadonlyMap<string, Member> {
  try {
    return members(raw);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new DataError('a stored meta', error.offset, error.message);
    throw error;
  }
}

/** The top-level members by decoded key: a Map, because `__proto__` is a key like any other. */
function members(raw: Buffer): Map<string, Member> {
  const found = new Map<string, Member>();
  const scan = openScan(raw);
  assert(nextByte(scan) === code.openBrace, () => 'a meta is an object');
  if (opensEmpty(scan, code.closeBrace)) return found;
  do {
    scanKey(scan);
    const { stringStart: start, stringEnd: end } = scan;
    nextByte(scan);
    const valueStart = scan.position;
    skipValue(scan, limits.jsonDepthMax);
    found.set(decodeString(raw, { start, end }), {
      key: raw.subarray(start - 1, end + 1),
      value: raw.subarray(valueStart, scan.position),
    });
  } while (anotherFollows(scan, code.closeBrace));
  return found;
}
