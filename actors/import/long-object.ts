import { limits } from '../../protocol/limits.ts';
import { JsonSyntaxError, openScan } from '../../src/base/json-scanner.ts';
import { readObjectMembers } from '../../src/base/object-members.ts';
import { leftOutOf } from './long-row.ts';

/** A row's object that is larger than a meta may be: the object without some of its text, and where the texts stand in it. */
export interface LongObject {
  readonly meta: Buffer;
  /** Whether the meta leaves something out. */
  readonly isTextOnly: boolean;
  /** By name: the value as it is written, of the last of equal keys. */
  readonly texts: ReadonlyMap<string, Buffer>;
}

interface Member {
  readonly name: string;
  /** Key and value as they are written. */
  readonly json: Buffer;
  readonly value: Buffer;
}

/** The object of a line without the long members that have no room; `text`: members that may be left out. Throws JsonSyntaxError, and ApiError 422 where the other members are too large. */
export function withoutLongValues(
  line: Buffer,
  { row, text }: { readonly row: number; readonly text: readonly string[] },
): LongObject {
  const members = membersOf(line);
  const names = [...new Set(members.map(({ name }) => name))];
  const bytes = new Map(names.map((name) => [name, 0]));
  for (const { name, json } of members) bytes.set(name, (bytes.get(name) ?? 0) + json.length + 1);
  const left = leftOutOf({
    row,
    bytes: names.map((name) => bytes.get(name) as number),
    text: text.map((name) => names.indexOf(name)).filter((at) => at >= 0),
  }).map((at) => names[at] as string);
  const kept = members.filter(({ name }) => !left.includes(name));
  const parts = kept.flatMap(({ json }, at) => [Buffer.from(at === 0 ? '{' : ','), json]);
  return {
    isTextOnly: left.length > 0,
    meta: Buffer.concat([...(parts.length === 0 ? [Buffer.from('{')] : parts), Buffer.from('}')]),
    texts: new Map(members.map(({ name, value }) => [name, value])),
  };
}

function membersOf(line: Buffer): Member[] {
  const scan = openScan(line);
  const members = readObjectMembers(scan, line, limits.jsonDepthMax - 1);
  if (members === null) throw new JsonSyntaxError('it does not begin with {', 0);
  if (scan.position < line.length) throw new JsonSyntaxError('something follows it', scan.position);
  return members.map(({ name, key, value }) => ({
    name,
    value,
    json: Buffer.concat([key, Buffer.from(':'), value]),
  }));
}
