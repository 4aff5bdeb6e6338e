import {
  anotherFollows,
  code,
  decodeString,
  type JsonScan,
  nextByte,
  opensEmpty,
  scanKey,
  skipValue,
} from './json-scanner.ts';

/** One member of an object. */
export interface ObjectMember {
  /** What its key means, without escapes. */
  readonly name: string;
  /** The key as it is written, in its quotes. */
  readonly key: Buffer;
  /** The value as it is written. */
  readonly value: Buffer;
}

/**
 * Reads the members of the object that follows in `scan`, whose bytes are `source`, in their order; equal keys stay apart. Null where
 * no object follows. Values nest `levels` deep at most. Throws JsonSyntaxError. The members are views of `source`.
 */
export function readObjectMembers(scan: JsonScan, source: Buffer, levels: number): ObjectMember[] | null {
  if (nextByte(scan) !== code.openBrace) return null;
  const members: ObjectMember[] = [];
  if (opensEmpty(scan, code.closeBrace)) return members;
  do {
    scanKey(scan);
    const { stringStart: start, stringEnd: end } = scan;
    nextByte(scan);
    const valueStart = scan.position;
    skipValue(scan, levels);
    members.push({
      name: decodeString(source, { start, end }),
      key: source.subarray(start - 1, end + 1),
      value: source.subarray(valueStart, scan.position),
    });
  } while (anotherFollows(scan, code.closeBrace));
  return members;
}
