import { limits } from '../../protocol/limits.ts';
import { JsonSyntaxError, openScan } from '../../src/base/json-scanner.ts';
import { type ObjectMember, readObjectMembers } from '../../src/base/object-members.ts';
import { leftOutOf } from './long-row.ts';

/** A row's object of which not all becomes its meta. */
export interface SplitObject {
  /** The object of the members that stay, as they were written. */
  readonly meta: Buffer;
  /** Whether it leaves out text for which it has no room. */
  readonly isTextOnly: boolean;
  /** By name, of all members: the value as it is written, of the last of equal keys. */
  readonly values: ReadonlyMap<string, Buffer>;
}

/**
 * Splits the object of a line into what stays in its meta and what does not: members that `keeps` refuses, and long ones that have no room.
 * `text`: members that may be left out for want of room. Throws JsonSyntaxError, and ApiError 422 where the other members are too large.
 */
export function splitObject(
  line: Buffer,
  {
    row,
    text,
    keeps,
  }: {
    readonly row: number;
    readonly text: readonly string[];
    readonly keeps: (name: string) => boolean;
  },
): SplitObject {
  const members = membersOf(line);
  const kept = members.filter(({ name }) => keeps(name));
  const left = leftOut(kept, row, text);
  const stay = left.length === 0 ? kept : kept.filter(({ name }) => !left.includes(name));
  return {
    isTextOnly: left.length > 0,
    meta: objectOf(stay),
    values: new Map(members.map(({ name, value }) => [name, value])),
  };
}

function leftOut(members: readonly ObjectMember[], row: number, text: readonly string[]): readonly string[] {
  const bytes = new Map<string, number>();
  for (const { name, key, value } of members)
    bytes.set(name, (bytes.get(name) ?? 0) + key.length + value.length + 2);
  const names = [...bytes.keys()];
  return leftOutOf({
    row,
    bytes: [...bytes.values()],
    text: text.map((name) => names.indexOf(name)).filter((at) => at >= 0),
  }).map((at) => names[at] as string);
}

function objectOf(members: readonly ObjectMember[]): Buffer {
  const colon = Buffer.from(':');
  const comma = Buffer.from(',');
  const parts = members.flatMap(({ key, value }, at) =>
    at === 0 ? [key, colon, value] : [comma, key, colon, value],
  );
  return Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')]);
}

function membersOf(line: Buffer): ObjectMember[] {
  const scan = openScan(line);
  const members = readObjectMembers(scan, line, limits.jsonDepthMax - 1);
  if (members === null) throw new JsonSyntaxError('it does not begin with {', 0);
  if (scan.position < line.length) throw new JsonSyntaxError('something follows it', scan.position);
  return members;
}
