/**
 * The frame of every small durable record, little-endian:
 *
 *   magic, 4 ASCII characters | u16 format version | u16 binding | u64 checksum | MessagePack value
 *
 * The checksum is the xxh64 of the first 8 bytes XOR that of the value's bytes. A record that is bound to its place
 * (binding 1) has the xxh64 of the place's name in it as well, so that it reads nowhere else: the intact record of
 * another tenant that came to lie under this key is damage, not data.
 *
 * Integers up to 2^53 and bigints of 64 bits come back as they went in; class instances and functions do not belong
 * here. Byte fields of a decoded value are views on the record's bytes.
 */
import { DataError } from './assert.ts';
import { xxh64, xxh64Text } from './hash.ts';
import { packMessage, unpackMessage } from './msgpack.ts';

/** One kind of record: how its bytes are recognised, and what its value must be. */
export interface RecordFormat<T> {
  /** Four ASCII characters. */
  readonly magic: string;
  /** The format versions that are read, 1 to 65,535, the newest first: that one is written. */
  readonly versions: readonly [number, ...number[]];
  /** Answers the decoded value as what it is, converted where its version is an older one. Throws where it is anything else. */
  readonly check: (value: unknown, version: number) => T;
}

const headerBytes = 16;
const bindingOffset = 6;
const checksumOffset = 8;
const boundToPlace = 1;

/** The value as MessagePack, in an array of its own. */
export function encodeValue(value: unknown): Uint8Array {
  return packMessage(value);
}

/** The value that `encodeValue` encoded. Throws msgpackr's own error where the bytes are no MessagePack. */
export function decodeValue(bytes: Uint8Array): unknown {
  return unpackMessage(bytes);
}

/**
 * The record's bytes, in an array of their own, in the newest version of the format. `place` is the object's key, where the
 * record may be under no other.
 */
export function encodeRecord(
  { magic, versions }: Pick<RecordFormat<unknown>, 'magic' | 'versions'>,
  value: unknown,
  place?: string,
): Uint8Array {
  const payload = encodeValue(value);
  const record = Buffer.alloc(headerBytes + payload.length);
  record.write(magic, 0, 4, 'latin1');
  record.writeUInt16LE(versions[0], 4);
  if (place !== undefined) record.writeUInt16LE(boundToPlace, bindingOffset);
  record.set(payload, headerBytes);
  record.writeBigUInt64LE(checksumOf(record, place ?? ''), checksumOffset);
  return record;
}

/** The checked value, or a `DataError` that names `place` where the bytes are not what `encodeRecord` made. */
export function decodeRecord<T>(
  bytes: Uint8Array,
  place: string,
  { magic, versions, check }: RecordFormat<T>,
): T {
  const record = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (record.length <= headerBytes) throw new DataError(place, record.length, 'shorter than its header');
  const foundMagic = record.toString('latin1', 0, 4);
  if (foundMagic !== magic) throw new DataError(place, 0, `not a ${magic} record`);
  if (record.readBigUInt64LE(checksumOffset) !== checksumOf(record, place)) {
    throw new DataError(place, checksumOffset, 'the checksum is not that of these bytes at this place');
  }
  const foundVersion = record.readUInt16LE(4);
  if (!versions.includes(foundVersion)) {
    const known = versions.join(' and ');
    throw new DataError(place, 4, `format version ${foundVersion}, this server reads ${known}`);
  }
  const value = orDamage(
    'not MessagePack',
    () => decodeValue(record.subarray(headerBytes)),
    place,
    headerBytes,
  );
  return orDamage('not what its format has', () => check(value, foundVersion), place, headerBytes);
}

/**
 * The checked value of a payload without a frame: whoever holds it has a checksum of it. Throws a `DataError` that names `place`
 * where the bytes are no MessagePack, or `check` throws.
 */
export function decodePayload<T>(bytes: Uint8Array, place: string, check: (value: unknown) => T): T {
  const value = orDamage('not MessagePack', () => decodeValue(bytes), place, 0);
  return orDamage('not what its format has', () => check(value), place, 0);
}

/** What `read` answers; whatever it throws is a `DataError` of that place, with `reason` before its own message. */
export function orDamage<T>(reason: string, read: () => T, place: string, offset: number): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    const detail = cause instanceof Error ? `: ${cause.message}` : '';
    throw Object.assign(new DataError(place, offset, `${reason}${detail}`), { cause });
  }
}

/** Header and payload are hashed apart, so that the field between them is left out without a copy. */
function checksumOf(record: Buffer, place: string): bigint {
  const bytes = xxh64(record.subarray(headerBytes)) ^ xxh64(record.subarray(0, checksumOffset));
  return record.readUInt16LE(bindingOffset) === boundToPlace ? bytes ^ xxh64Text(place) : bytes;
}
