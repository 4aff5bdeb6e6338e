/**
 * The bytes of one log object: a group of records, the seal that ends a log, or a barrier that hands namespaces over.
 *
 *   "TBLG" | u16 format | u8 kind | u8 0 | u64 slot | u64 placement | u64 checksum of the previous object |
 *   16 bytes batch id | u32 record count | u32 reach back | 40 bytes log id (ASCII, zero-padded) |
 *   records: u32 head length, u32 payload length, head (MessagePack), payload |
 *   u64 xxh64 of everything before
 *
 * Little-endian. The batch id is random: a writer that is refused recognises its own bytes by it. The reach back says by how many slots
 * the last one lies before this one that no other server needs; 0 where nothing is said of that.
 */
import { DataError } from '../base/assert.ts';
import { xxh64 } from '../base/hash.ts';
import { packMessage, unpackMessage } from '../base/msgpack.ts';

export const logFormat = 1;
const magic = 0x474c4254; // "TBLG"
const headerBytes = 96;
const checksumBytes = 8;
const logIdBytes = 40;
const recordCountAt = 48;
/** The size of an object without records: a seal or a barrier. A group always has some. */
export const emptyLogObjectBytes = headerBytes + checksumBytes;
/** Where a header lies in its object, for who reads no more. */
export const logHeaderRange = { offset: 0, length: headerBytes } as const;

export type LogObjectKind = 'group' | 'seal' | 'barrier';
const kindCodes: readonly LogObjectKind[] = ['group', 'seal', 'barrier'];

/** Whose record it is. An empty namespace means the tenant actor itself. */
export interface RecordHead {
  readonly tenantId: number;
  readonly namespace: string;
  /** Empty for the tenant actor. */
  readonly namespaceId: string;
  /** The target's version after this record: records of a target are contiguous. */
  readonly version: number;
  /** The blob that has the payload, where that was too large for the log. The payload is then empty. */
  readonly blob: { readonly id: string; readonly length: number; readonly checksum: bigint } | null;
  /** The target's own words about the payload (sequence, time, …); opaque to the log. */
  readonly detail: unknown;
}

export interface LogRecord {
  readonly head: RecordHead;
  readonly payload: Uint8Array;
}

export interface LogObjectHeader {
  readonly logId: string;
  readonly slot: number;
  readonly kind: LogObjectKind;
  readonly placement: number;
  readonly previousChecksum: bigint;
  /** 16 random bytes as hexadecimal. */
  readonly batchId: string;
  /**
   * The slot at and below which no server needs this log that owns, at this placement, what the writer does not: all of that is in
   * manifests. Absent where nothing is said of it.
   */
  readonly othersFloor?: number;
}

export interface LogObject extends LogObjectHeader {
  readonly records: readonly LogRecord[];
  /** The checksum of this object, which the next one names. */
  readonly checksum: bigint;
}

/** The object's bytes. Payloads are copied, so they may lie in shared memory. */
export function encodeLogObject(
  header: LogObjectHeader,
  records: readonly LogRecord[],
): { bytes: Uint8Array; checksum: bigint } {
  const heads = records.map((record) => packMessage(encodeHead(record.head)));
  let size = headerBytes + checksumBytes;
  records.forEach((record, i) => {
    size += 8 + (heads[i]?.byteLength ?? 0) + record.payload.byteLength;
  });
  const bytes = Buffer.allocUnsafeSlow(size);
  writeHeader(bytes, header, records.length);
  let at = headerBytes;
  records.forEach((record, i) => {
    const head = heads[i] ?? new Uint8Array();
    bytes.writeUInt32LE(head.byteLength, at);
    bytes.writeUInt32LE(record.payload.byteLength, at + 4);
    bytes.set(head, at + 8);
    bytes.set(record.payload, at + 8 + head.byteLength);
    at += 8 + head.byteLength + record.payload.byteLength;
  });
  const checksum = xxh64(bytes.subarray(0, at));
  bytes.writeBigUInt64LE(checksum, at);
  return { bytes, checksum };
}

function writeHeader(bytes: Buffer, header: LogObjectHeader, recordCount: number): void {
  bytes.fill(0, 0, headerBytes);
  bytes.writeUInt32LE(magic, 0);
  bytes.writeUInt16LE(logFormat, 4);
  bytes.writeUInt8(kindCodes.indexOf(header.kind), 6);
  bytes.writeBigUInt64LE(BigInt(header.slot), 8);
  bytes.writeBigUInt64LE(BigInt(header.placement), 16);
  bytes.writeBigUInt64LE(header.previousChecksum, 24);
  bytes.write(header.batchId, 32, 16, 'hex');
  bytes.writeUInt32LE(recordCount, recordCountAt);
  bytes.writeUInt32LE(header.othersFloor === undefined ? 0 : header.slot - header.othersFloor, 52);
  bytes.write(header.logId, 56, logIdBytes, 'latin1');
}

/** The bytes of each of several objects that lie one after another. Throws DataError where they don't fill `bytes`; the objects themselves are not checked. */
export function splitLogObjects(bytes: Uint8Array, place: string): Uint8Array[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const objects: Uint8Array[] = [];
  for (let begin = 0; begin < buffer.length; ) {
    let end = begin + headerBytes;
    const records = end <= buffer.length ? buffer.readUInt32LE(begin + recordCountAt) : 0;
    for (let i = 0; i < records && end + 8 <= buffer.length; i++)
      end += 8 + buffer.readUInt32LE(end) + buffer.readUInt32LE(end + 4);
    end += checksumBytes;
    if (end > buffer.length)
      throw new DataError(place, begin, 'the log object there is longer than what is left');
    objects.push(bytes.subarray(begin, end));
    begin = end;
  }
  return objects;
}

/** Reads and checks a whole object; record payloads are views on `bytes`. Throws DataError on any damage. */
export function decodeLogObject(bytes: Uint8Array, place: string): LogObject {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < headerBytes + checksumBytes)
    throw new DataError(place, 0, `only ${buffer.length} bytes`);
  if (buffer.readUInt32LE(0) !== magic) throw new DataError(place, 0, 'not a log object');
  const format = buffer.readUInt16LE(4);
  if (format !== logFormat) throw new DataError(place, 4, `format ${format} is not known`);
  const end = buffer.length - checksumBytes;
  const checksum = xxh64(buffer.subarray(0, end));
  if (checksum !== buffer.readBigUInt64LE(end))
    throw new DataError(place, end, 'the checksum does not match');
  return { ...readHeader(buffer, place), records: decodeRecords(buffer, end, place), checksum };
}

/** Reads a header alone, which nothing checks: what it says is a hint. Throws DataError where it can't be one. */
export function peekLogHeader(bytes: Uint8Array, place: string): LogObjectHeader {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < headerBytes) throw new DataError(place, 0, `only ${buffer.length} bytes`);
  return readHeader(buffer, place);
}

function readHeader(buffer: Buffer, place: string): LogObjectHeader {
  const kind = kindCodes[buffer.readUInt8(6)];
  if (kind === undefined) throw new DataError(place, 6, 'unknown kind');
  const slot = Number(buffer.readBigUInt64LE(8));
  const reachBack = buffer.readUInt32LE(52);
  return {
    logId: buffer.toString('latin1', 56, 56 + logIdBytes).replace(/\0+$/, ''),
    slot,
    kind,
    placement: Number(buffer.readBigUInt64LE(16)),
    previousChecksum: buffer.readBigUInt64LE(24),
    batchId: buffer.toString('hex', 32, 48),
    ...(reachBack === 0 ? {} : { othersFloor: slot - reachBack }),
  };
}

function decodeRecords(buffer: Buffer, end: number, place: string): LogRecord[] {
  const records: LogRecord[] = [];
  let at = headerBytes;
  for (let left = buffer.readUInt32LE(48); left > 0; left--) {
    if (at + 8 > end) throw new DataError(place, at, 'records run past the end');
    const payloadAt = at + 8 + buffer.readUInt32LE(at);
    const next = payloadAt + buffer.readUInt32LE(at + 4);
    if (next > end) throw new DataError(place, at, 'a record runs past the end');
    records.push({
      head: decodeHead(buffer.subarray(at + 8, payloadAt)),
      payload: buffer.subarray(payloadAt, next),
    });
    at = next;
  }
  if (at !== end) throw new DataError(place, at, 'bytes after the last record');
  return records;
}

export function encodeHead(head: RecordHead): unknown {
  const blob = head.blob === null ? null : [head.blob.id, head.blob.length, head.blob.checksum.toString(16)];
  return [head.tenantId, head.namespace, head.namespaceId, head.version, blob, head.detail];
}

function decodeHead(bytes: Uint8Array): RecordHead {
  return headFromWire(unpackMessage(bytes));
}

/** The inverse of `encodeHead`. */
export function headFromWire(wire: unknown): RecordHead {
  const [tenantId, namespace, namespaceId, version, blob, detail] = wire as [
    number,
    string,
    string,
    number,
    [string, number, string] | null,
    unknown,
  ];
  return {
    tenantId,
    namespace,
    namespaceId,
    version,
    blob: blob === null ? null : { id: blob[0], length: blob[1], checksum: BigInt(`0x${blob[2]}`) },
    detail,
  };
}
