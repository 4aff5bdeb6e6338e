/**
 * The arguments of a tool call as the REST request of its operation. Values of the body are copied as bytes and never parsed, so
 * that the operation judges what the client wrote; only their names are judged here, and what stands in a path.
 */
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import type { Argument, Tool } from '../../../protocol/mcp-tools.ts';
import type { PathParameterName } from '../../../protocol/operations/operation-row.ts';
import { inputError, reportedFieldsMax } from '../../../protocol/validate.ts';
import { isAbsent, type Member, type Members, stringOf } from './json-members.ts';

export interface RestRequest {
  readonly parameters: Partial<Readonly<Record<PathParameterName, string>>>;
  readonly query: string;
  /** The request's body; null where the operation takes none. */
  readonly body: Uint8Array<ArrayBuffer> | null;
}

const noMembers: Members = new Map();
/** No address carries it: it has no percent-encoding. */
const halfPair = 'must be well-formed Unicode: it holds half of a surrogate pair';

/** Throws ApiError 422 with `fields` named as the tool's arguments are. */
export function restRequestOf(tool: Tool, given: Members | null): RestRequest {
  const members = given ?? noMembers;
  refuseUnknown(tool, members);
  const problems = new Map<string, string>();
  const parameters: Partial<Record<PathParameterName, string>> = {};
  const query: string[] = [];
  const fields: Field[] = [];
  for (const argument of tool.arguments.values()) {
    const { name, place, fallback } = argument;
    const member = members.get(name);
    const value = isAbsent(member) ? undefined : member;
    if (place.kind === 'path') {
      const text = stringOf(value);
      if (text === null) problems.set(name, value === undefined ? 'is required' : 'must be a string');
      else if (!text.isWellFormed()) problems.set(name, halfPair);
      else parameters[place.parameter] = text;
      continue;
    }
    if (name === 'max_bytes' && value !== undefined && isTooLarge(value))
      problems.set(name, `must be an integer from ${limits.answerBytesMin} to ${limits.toolAnswerBytesMax}`);
    const json = value?.json ?? (fallback === null ? null : Buffer.from(fallback));
    if (json === null) continue;
    if (place.kind === 'query') {
      const text = plainText(json);
      if (text.isWellFormed()) query.push(`${place.parameter}=${encodeURIComponent(text)}`);
      else problems.set(name, halfPair);
    } else fields.push({ path: place.field.split('.'), json });
  }
  if (problems.size > 0) throw inputError(problems);
  return { parameters, query: query.join('&'), body: bodyOf(tool, fields) };
}

function refuseUnknown(tool: Tool, members: Members): void {
  const unknown = [...members.keys()].filter((name) => !tool.arguments.has(name)).slice(0, reportedFieldsMax);
  if (unknown.length === 0) return;
  const known = [...tool.arguments.keys()].join(', ');
  const fields = Object.fromEntries(unknown.map((name) => [name, `is not an argument of ${tool.name}`]));
  const sentence = `${unknown.join(', ')}: no argument of ${tool.name}, which has ${known}`;
  throw new ApiError('invalid', sentence, { fields });
}

function isTooLarge({ json }: Member): boolean {
  return json.length > 16 || !(Number(json.toString()) <= limits.toolAnswerBytesMax);
}

/** A scalar as a query string has it: models write numbers as strings and the other way round. */
function plainText(json: Buffer): string {
  return stringOf({ json, members: null }) ?? json.toString();
}

interface Field {
  /** `vector.dims` is a field within another one. */
  readonly path: readonly string[];
  readonly json: Buffer;
}

/** The JSON object of the fields. */
function bodyOf({ operation, name }: Tool, fields: readonly Field[]): Uint8Array<ArrayBuffer> | null {
  if (operation.request === null) return null;
  // This tool has no other way to say it: PATCH demands the field.
  if (name === 'update_namespace' && isEmbeddingOff(fields)) return joined([Buffer.from('{"embed":null}')]);
  const parts: Buffer[] = [];
  for (const group of new Set(fields.map(({ path: [first = ''] }) => first))) {
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}${JSON.stringify(group)}:`));
    const own = fields.filter(({ path }) => path[0] === group);
    const [only] = own;
    if (only?.path.length === 1) parts.push(only.json);
    else
      own.forEach(({ path, json }, at) => {
        parts.push(Buffer.from(`${at === 0 ? '{' : ','}${JSON.stringify(path[1])}:`), json);
        if (at === own.length - 1) parts.push(Buffer.from('}'));
      });
  }
  parts.push(Buffer.from(parts.length === 0 ? '{}' : '}'));
  return joined(parts);
}

/** In a buffer of its own, which may move to another thread. */
function joined(parts: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** No provider, or an empty one; a model alone is a mistake that the operation names. */
function isEmbeddingOff(fields: readonly Field[]): boolean {
  const provider = fields.find(({ path }) => path[1] === 'provider');
  if (provider === undefined) return fields.length === 0;
  return provider.json.toString() === '""';
}

/** What the operation calls a field → what the tool calls it. */
function namesOf(tool: Tool): Map<string, string> {
  const restName = ({ place }: Argument) => (place.kind === 'body' ? place.field : place.parameter);
  return new Map([...tool.arguments.values()].map((argument) => [restName(argument), argument.name]));
}

interface ErrorBody {
  readonly error: string;
  readonly fields?: Readonly<Record<string, string>>;
}

/** A refusal's JSON in which fields have the names of the tool's arguments; the same text where all are called so already. */
export function errorForTool(tool: Tool, json: string): string {
  const error = JSON.parse(json) as ErrorBody;
  if (error.fields === undefined) return json;
  const names = namesOf(tool);
  let sentence = error.error;
  const fields = Object.entries(error.fields).map(([field, problem]) => {
    const name = names.get(field) ?? field;
    if (name !== field) sentence = sentence.replace(`${field}: ${problem}`, `${name}: ${problem}`);
    return [name, problem] as const;
  });
  return JSON.stringify({ ...error, error: sentence, fields: Object.fromEntries(fields) });
}
