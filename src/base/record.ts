import { DataError } from './assert.ts';
import { xxh64, xxh64Text } from './hash.ts';
import { packMessage, unpackMessage } from './msgpack.ts';

/**
 * The one frame of every small durable record:
 *
 *   magic, 4 ASCII characters | format version, u16 LE | binding, u16 | checksum, u64 LE | MessagePack value
 *
 * A record that is bound to its place (binding 1) has the place's name in its checksum, so that it reads nowhere else:
 * the intact record of another tenant that got under this key is damage, not data.
 *
 * Integers up to 2^53 and bigints of 64 bits come back as they went in; class instances and functions do not belong
 * here. Byte fields of a decoded value are views on the record's bytes.
 */

const headerBytes = 16;
const bindingOffset = 6;
const checksumOffset = 8;
const boundToPlace = 1;

export function encodeValue(value: unknown): Uint8Array {
  return packMessage(value);
}

/** Throws msgpackr's own error where the bytes are no MessagePack: for bytes that were not stored. */
export function decodeValue(bytes: Uint8Array): unknown {
  return unpackMessage(bytes);
}

/**
 * `magic` is four ASCII characters; `version` 1 to 65,535; `place` the object's key, where the record may be under no
 * other. The result is an array of its own.
 */
export function encodeRecord(magic: string, version: number, value: unknown, place?: string): Uint8Array {
  const payload = encodeValue(value);
  const record = Buffer.alloc(headerBytes + payload.length);
  record.write(magic, 0, 4, 'latin1');
  record.writeUInt16LE(version, 4);
  if (place !== undefined) record.writeUInt16LE(boundToPlace, bindingOffset);
  record.set(payload, headerBytes);
  record.writeBigUInt64LE(checksumOf(record, place ?? ''), checksumOffset);
  return record;
}

/** The value, or a `DataError` that names `place` where the bytes are not what `encodeRecord` made. */
export function decodeRecord(
  bytes: Uint8Array,
  place: string,
  magic: string,
  version: number | readonly number[],
): unknown {
  const record = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (record.length <= headerBytes) throw new DataError(place, record.length, 'shorter than its header');
  const foundMagic = record.toString('latin1', 0, 4);
  if (foundMagic !== magic) throw new DataError(place, 0, `not a ${magic} record`);
  if (record.readBigUInt64LE(checksumOffset) !== checksumOf(record, place)) {
    throw new DataError(place, checksumOffset, 'the checksum is not that of these bytes at this place');
  }
  const foundVersion = record.readUInt16LE(4);
  const known = typeof version === 'number' ? [version] : version;
  if (!known.includes(foundVersion)) {
    throw new DataError(place, 4, `format version ${foundVersion}, this server reads ${known.join(' and ')}`);
  }
  try {
    return decodeValue(record.subarray(headerBytes));
  } catch (cause) {
    throw Object.assign(new DataError(place, headerBytes, 'not MessagePack'), { cause });
  }
}

/** The format version that a record says it has, or 0 where it is too short for one. `decodeRecord` checks the rest. */
export function recordVersion(bytes: Uint8Array): number {
  if (bytes.length <= headerBytes) return 0;
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint16(4, true);
}

/** Header and payload are hashed apart, so that the field between them is left out without a copy. */
function checksumOf(record: Buffer, place: string): bigint {
  const bytes = xxh64(record.subarray(headerBytes)) ^ xxh64(record.subarray(0, checksumOffset));
  return record.readUInt16LE(bindingOffset) === boundToPlace ? bytes ^ xxh64Text(place) : bytes;
}
