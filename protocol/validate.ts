import { z } from 'zod';
import { ApiError } from './errors.ts';

/**
 * The door to the schema library. Schemas are the single source of types, of checks and of the OpenAPI document;
 * the sentences that a person reads about a wrong field are made here.
 */
export { z };

/** A wrong request can be wrong in a million places; nobody reads more than these. */
export const reportedFieldsMax = 20;
/** Names of unknown fields come from the caller and go back cut to this many characters. */
const reportedNameCharactersMax = 100;
/** The sentence of the error names this many fields, `fields` names the others. */
const fieldsInSentenceMax = 3;

export type InputCode = 'invalid' | 'bad_request';

/**
 * The value as the schema's output type. Throws ApiError `invalid` (or `bad_request` where the operation says so)
 * with `fields`: a path such as `docs[3].id` to what is wrong there. `prefix` is the path of the value itself.
 */
export function parseWith<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  prefix = '',
  code: InputCode = 'invalid',
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  // Asking for our sentences costs four times the check itself, so only wrong input is checked a second time for them.
  const described = schema.safeParse(withoutNulls(schema, value), { error: describeIssue });
  if (described.success) return described.data;
  throw inputError(problemsOf(described.error.issues, prefix), code);
}

/**
 * The value without the optional fields that are null: they count as absent. A field stays null where its schema takes null (a
 * limit of a key, `embed` of a PATCH), and where it is required, so that the refusal names it. Only known fields are looked
 * at: users' data keeps its nulls.
 */
function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodArray && Array.isArray(value))
    return value.map((element) => withoutNulls(inner.element, element));
  if (!(inner instanceof z.ZodObject) || typeof value !== 'object' || value === null || Array.isArray(value))
    return value;
  const kept = Object.entries(value).flatMap(([name, member]) => {
    const field: z.ZodType | undefined = Object.hasOwn(inner.shape, name) ? inner.shape[name] : undefined;
    if (field === undefined) return [[name, member] as const];
    if (member === null && !field.isNullable() && field.isOptional()) return [];
    return [[name, withoutNulls(field, member)] as const];
  });
  // As its own properties, so that an unknown field named __proto__ is only a name.
  return Object.fromEntries(kept);
}

/** What a schema is apart from being optional, nullable or having a default. */
function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapper =
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault;
  return isWrapper ? unwrapped(schema.unwrap()) : schema;
}

/** One error of several wrong fields; the first few are in its sentence. */
export function inputError(problems: ReadonlyMap<string, string>, code: InputCode = 'invalid'): ApiError {
  const sentences = [...problems]
    .slice(0, fieldsInSentenceMax)
    .map(([path, problem]) => `${path}: ${problem}`);
  const more = problems.size - sentences.length;
  if (more > 0) sentences.push(`and ${more} more`);
  // Object.fromEntries defines each field as the object's own, so that a field named __proto__ is only a name.
  return new ApiError(code, sentences.join('; '), { fields: Object.fromEntries(problems) });
}

type Issue = z.core.$ZodIssue;

function problemsOf(issues: readonly Issue[], prefix: string): Map<string, string> {
  const problems = new Map<string, string>();
  for (const issue of issues) {
    const path = fieldPath(prefix, issue.path);
    const unknownKeys = issue.code === 'unrecognized_keys' ? issue.keys : null;
    const paths = unknownKeys === null ? [path] : unknownKeys.map((key) => joinPath(path, cut(key)));
    for (const each of paths) {
      if (problems.size >= reportedFieldsMax) return problems;
      const name = each === '' ? 'body' : each;
      if (!problems.has(name)) problems.set(name, issue.message);
    }
  }
  return problems;
}

function fieldPath(prefix: string, path: readonly PropertyKey[]): string {
  let text = prefix;
  for (const step of path) {
    text = typeof step === 'number' ? `${text}[${step}]` : joinPath(text, cut(String(step)));
  }
  return text;
}

function joinPath(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`;
}

function cut(name: string): string {
  const whole = name.toWellFormed();
  return whole.length <= reportedNameCharactersMax
    ? whole
    : `${whole.slice(0, reportedNameCharactersMax).toWellFormed()}…`;
}

const expectedKinds: Readonly<Record<string, string>> = {
  object: 'must be a JSON object',
  array: 'must be an array',
  string: 'must be a string',
  boolean: 'must be true or false',
  number: 'must be a number',
  int: 'must be an integer',
};

/** What is wrong, as the end of a sentence that begins with the field. Schemas' own messages go before these. */
const describeIssue: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'unrecognized_keys') return 'is not a known field';
  if (issue.code === 'invalid_type') {
    return issue.input === undefined
      ? 'is required'
      : (expectedKinds[issue.expected] ?? 'has the wrong type');
  }
  if (issue.code === 'invalid_value')
    return `must be ${issue.values.map((each) => JSON.stringify(each)).join(' or ')}`;
  return 'is not valid';
};

/** Messages of one kind of value: "is required" where it is missing, the rule where it is wrong. */
function rule(sentence: string): { error: (issue: { readonly input?: unknown }) => string } {
  return { error: (issue) => (issue.input === undefined ? 'is required' : sentence) };
}

/** A whole number that JavaScript holds exactly, at least `min`. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  const isOpen = max === Number.MAX_SAFE_INTEGER;
  const sentence = isOpen
    ? `must be an integer of at least ${min}`
    : `must be an integer from ${min} to ${max}`;
  const error = ({ input }: { readonly input?: unknown }) => {
    if (input === undefined) return 'is required';
    // A bound that is nobody's choice is named to who passes it.
    const isPast = (typeof input === 'number' || typeof input === 'bigint') && input > max;
    return isPast ? `must be an integer from ${min} to ${max}` : sentence;
  };
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export interface TextRule {
  readonly charactersMin?: number;
  readonly charactersMax?: number;
  readonly bytesMax?: number;
  readonly controlCharacters?: 'allowed' | 'refused';
}

/** Well-formed text. Characters are code points: an emoji is one. */
export function text(bounds: TextRule = {}) {
  return z.string().check((context) => {
    const problem = textProblem(context.value, bounds);
    if (problem !== null) context.issues.push({ code: 'custom', message: problem, input: context.value });
  });
}

function textProblem(value: string, bounds: TextRule): string | null {
  const { charactersMin = 0, charactersMax, bytesMax, controlCharacters = 'allowed' } = bounds;
  if (!value.isWellFormed()) return 'must be well-formed Unicode: it holds half of a surrogate pair';
  if (!hasLength(value, charactersMin, charactersMax ?? Number.POSITIVE_INFINITY)) {
    if (charactersMax !== undefined) return `must have ${charactersMin} to ${charactersMax} characters`;
    return charactersMin === 1 ? 'must not be empty' : `must have at least ${charactersMin} characters`;
  }
  if (bytesMax !== undefined && Buffer.byteLength(value) > bytesMax)
    return `must be at most ${bytesMax} bytes of UTF-8`;
  if (controlCharacters === 'refused' && /\p{Cc}/u.test(value)) return 'must not have control characters';
  return null;
}

function hasLength(value: string, min: number, max: number): boolean {
  // Code points are at most the code units and at least half of them; counting is for what lies between.
  if (value.length < min || value.length > 2 * max) return false;
  if (value.length >= 2 * min && value.length <= max) return true;
  let characters = 0;
  for (const _ of value) characters++;
  return characters >= min && characters <= max;
}

/** A string that a rule of protocol/ids.ts judges: the rule answers what is wrong, or null. */
export function textBy(problemOf: (value: string) => string | null) {
  return z.string().check((context) => {
    const problem = problemOf(context.value);
    if (problem !== null) context.issues.push({ code: 'custom', message: problem, input: context.value });
  });
}

/** At most `max` elements, refused before the elements are looked at. */
export function list<Element extends z.ZodType>(element: Element, max: number, min = 0) {
  const sentence = min === 0 ? `must have at most ${max} elements` : `must have ${min} to ${max} elements`;
  const array = z.array(element).max(max, { error: sentence, abort: true });
  return min === 0 ? array : array.min(min, { error: sentence, abort: true });
}

export function choice<const Values extends readonly [string, ...string[]]>(values: Values) {
  const known = values.map((value) => JSON.stringify(value)).join(', ');
  return z.enum(values, rule(values.length === 1 ? `must be ${known}` : `must be one of ${known}`));
}

/** `true|false|1|0` of a query string. */
export function queryBoolean() {
  return z.preprocess(booleanFromText, z.boolean('must be true, false, 1 or 0'));
}

function booleanFromText(value: unknown): unknown {
  if (value === 'true' || value === '1') return true;
  return value === 'false' || value === '0' ? false : value;
}

/** A whole number in decimal of a query string. */
export function queryInteger(min: number, max = Number.MAX_SAFE_INTEGER) {
  return z.preprocess(integerFromText, integer(min, max));
}

function integerFromText(value: unknown): unknown {
  return typeof value === 'string' && /^-?[0-9]{1,16}$/.test(value) ? Number(value) : value;
}

/** The parameters of a query string checked by a schema; every parameter that it does not know is named. */
export function parseQueryWith<Schema extends z.ZodType>(
  schema: Schema,
  parameters: ReadonlyMap<string, string>,
  code: InputCode = 'invalid',
): z.output<Schema> {
  return parseWith(schema, Object.fromEntries(parameters), '', code);
}
