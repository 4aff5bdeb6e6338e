/**
 * Finds the parts of a JSON text without making values: an argument of a tool goes into a REST body as the bytes that it came in,
 * and integers of 64 bits among them keep their digits.
 */
import { limits } from '../../../protocol/limits.ts';
import { checkEncoding, JsonSyntaxError } from '../../base/json.ts';
import {
  anotherFollows,
  code,
  decodeString,
  expectEnd,
  type JsonScan,
  nextByte,
  openScan,
  opensEmpty,
  scanKey,
  skipValue,
} from '../../base/json-scanner.ts';

export interface Member {
  /** The value as it is written. */
  readonly json: Buffer;
  /** Its own members, where the shape asked for them and it is an object; else null. */
  readonly members: Members | null;
}

/** By name. Where a name stands twice the last one counts, as with JSON.parse. */
export type Members = ReadonlyMap<string, Member>;

/** Which members' own members are wanted. */
export interface Shape {
  readonly [name: string]: Shape;
}

/** Members of one object; JSON-RPC and tools have a handful. */
const membersMax = 1_000;

/**
 * The values of a JSON text that is an object, or an array of at most `elementsMax` things: `isArray` tells which it was. One
 * pass over the bytes. Each value that is no object is there too, with no members.
 *
 * @throws JsonSyntaxError for what is not JSON, nests too deeply, or has more than `limits.jsonValuesMax` values
 */
export function readMembers(
  bytes: Uint8Array,
  shape: Shape,
  elementsMax: number,
): { readonly isArray: boolean; readonly elements: readonly Member[] } {
  checkEncoding(bytes);
  const read: Read = { scan: openScan(bytes), valuesLeft: limits.jsonValuesMax };
  const { scan } = read;
  const elements: Member[] = [];
  const isArray = nextByte(scan) === code.openBracket;
  if (!isArray) elements.push(readMember(read, shape));
  else if (!opensEmpty(scan, code.closeBracket)) {
    do {
      if (elements.length >= elementsMax)
        throw new JsonSyntaxError(`a batch has more than ${elementsMax} messages`, scan.position, 'size');
      elements.push(readMember(read, shape));
    } while (anotherFollows(scan, code.closeBracket));
  }
  expectEnd(scan);
  return { isArray, elements };
}

interface Read {
  readonly scan: JsonScan;
  valuesLeft: number;
}

function readMember(read: Read, shape: Shape | undefined): Member {
  const { scan } = read;
  const isOpened = nextByte(scan) === code.openBrace && shape !== undefined;
  const start = scan.position;
  const members = isOpened ? readObject(read, shape) : null;
  if (!isOpened) read.valuesLeft -= skipValue(scan, limits.jsonDepthMax, read.valuesLeft);
  return { json: scan.bytes.subarray(start, scan.position), members };
}

function readObject(read: Read, shape: Shape): Members {
  const { scan } = read;
  const members = new Map<string, Member>();
  if (opensEmpty(scan, code.closeBrace)) return members;
  do {
    scanKey(scan);
    const name = lastString(scan);
    members.set(name, readMember(read, Object.hasOwn(shape, name) ? shape[name] : undefined));
    if (members.size > membersMax)
      throw new JsonSyntaxError(`an object has more than ${membersMax} members`, scan.position, 'size');
  } while (anotherFollows(scan, code.closeBrace));
  return members;
}

/** Hot: to parse what has no escape takes twice as long as to read it. */
function lastString({ bytes, stringStart: start, stringEnd: end, stringEscaped }: JsonScan): string {
  return stringEscaped ? decodeString(bytes, { start, end }) : bytes.toString('utf8', start, end);
}

/** The string that a member is, or null where it is none. */
export function stringOf(member: Member | undefined): string | null {
  const json = member?.json;
  if (json?.[0] !== code.quote) return null;
  const content = { start: 1, end: json.length - 1 };
  return json.includes(code.backslash)
    ? decodeString(json, content)
    : json.toString('utf8', content.start, content.end);
}

/** Whether a member is missing or null: optional fields that are null count as absent. */
export function isAbsent(member: Member | undefined): boolean {
  return member === undefined || member.json.toString() === 'null';
}
