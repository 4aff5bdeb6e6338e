/** Search, count and warm: what is asked, and what is answered. */
import {
  consistencySchema,
  metaSchema,
  minVersionQuerySchema,
  minVersionSchema,
  queryFigureFields,
  temperatureSchema,
  timestampSchema,
  vectorSchema,
} from './document.ts';
import { ApiError, invalidField } from './errors.ts';
import { type Filter, parseFilter } from './filter.ts';
import { limits } from './limits.ts';
import {
  choice,
  integer,
  list,
  parseQueryWith,
  parseWith,
  queryBoolean,
  queryInteger,
  text,
  z,
} from './validate.ts';

const described = {
  q: 'Plain text, matched literally and ignoring case. Empty lists documents.',
  regex: 'Read q as an RE2 regex; case-sensitive unless it starts with (?i).',
  filter: 'Conditions on top-level meta keys that must all hold.',
  limit: `Default ${limits.searchLimitDefault}, at most ${limits.searchLimitMax}.`,
  cursor: "The previous answer's next.",
  scan: 'Allow a regex that the index cannot narrow on a big namespace.',
  semantic: "Text to embed with the namespace's model and search like vector.",
  exact:
    'Count: false gives a fast estimate, without a filter. Search: true ranks vectors without the index.',
  maxBytes: "The answer's size budget in bytes; hits are cut from the end.",
  idsLimit: `Matching ids in the answer, 0 to ${limits.countIdsMax}. Default ${limits.countIdsMax}.`,
  idBytes: "The answer's size budget in bytes; ids are cut from the end.",
  context: `Lines before and after the match that each hit shows, 0 to ${limits.contextLinesMax}.`,
  vectorBase64: 'In place of vector: its numbers as base64 of little-endian float32 values.',
} as const;

/** Length of a cursor: ours are signed and short, and anything longer is not ours. */
export const cursorCharactersMax = 1_024;

const querySchema = text({ bytesMax: limits.literalBytesMax }).meta({ description: described.q });
const cursorSchema = text({ charactersMax: cursorCharactersMax }).meta({ description: described.cursor });
const semanticSchema = text({ charactersMin: 1, bytesMax: limits.literalBytesMax }).meta({
  description: described.semantic,
});

/** Length of a vector in base64: that of the longest vector, with its padding. */
const vectorBase64CharactersMax = Math.ceil((4 * limits.vectorDimsMax) / 3) * 4;
const vectorBase64Schema = text({ charactersMin: 1, charactersMax: vectorBase64CharactersMax }).meta({
  description: described.vectorBase64,
});

/** A filter of any shape: `parseFilter` judges it, for its keys are the caller's data. */
const filterSchema = z.unknown().meta({
  type: 'object',
  additionalProperties: true,
  description: described.filter,
  examples: [{ kind: 'note', year: { gte: 2020 } }],
});
const filterQuerySchema = z.string().meta({ description: `${described.filter} JSON, URL-encoded.` });

export const searchIncludes = ['text', 'vector', 'matches'] as const;
export const searchRanks = ['rrf'] as const;

export const searchRequestSchema = z.strictObject({
  q: querySchema.default(''),
  regex: z.boolean().default(false).meta({ description: described.regex }),
  filter: filterSchema.optional(),
  limit: integer(1, limits.searchLimitMax)
    .default(limits.searchLimitDefault)
    .meta({ description: described.limit }),
  cursor: cursorSchema.optional(),
  scan: z.boolean().default(false).meta({ description: described.scan }),
  min_version: minVersionSchema.optional(),
  consistency: consistencySchema.optional(),
  vector: vectorSchema.optional(),
  vector_b64: vectorBase64Schema.optional(),
  semantic: semanticSchema.optional(),
  context: integer(0, limits.contextLinesMax).default(0).meta({ description: described.context }),
  include: list(choice(searchIncludes), searchIncludes.length).optional(),
  max_bytes: integer(limits.answerBytesMin).meta({ description: described.maxBytes }).optional(),
  exact: z.boolean().meta({ description: described.exact }).optional(),
  rank: choice(searchRanks).optional(),
});
type SearchBody = z.output<typeof searchRequestSchema>;

export const searchQuerySchema = z.strictObject({
  q: querySchema.default(''),
  regex: queryBoolean().default(false).meta({ description: described.regex }),
  filter: filterQuerySchema.optional(),
  limit: queryInteger(1, limits.searchLimitMax)
    .default(limits.searchLimitDefault)
    .meta({ description: described.limit }),
  cursor: cursorSchema.optional(),
  scan: queryBoolean().default(false).meta({ description: described.scan }),
  min_version: minVersionQuerySchema.optional(),
  consistency: consistencySchema.optional(),
  semantic: semanticSchema.optional(),
  context: queryInteger(0, limits.contextLinesMax).default(0).meta({ description: described.context }),
  exact: queryBoolean().meta({ description: described.exact }).optional(),
  max_bytes: queryInteger(limits.answerBytesMin).meta({ description: described.maxBytes }).optional(),
});

export interface SearchRequest extends Omit<SearchBody, 'filter' | 'cursor' | 'vector_b64'> {
  readonly filter: Filter | null;
  /** Null on the first page; an empty cursor counts as none, as an empty `next` is one. */
  readonly cursor: string | null;
}

export const countRequestSchema = z.strictObject({
  q: querySchema.default(''),
  regex: z.boolean().default(false).meta({ description: described.regex }),
  filter: filterSchema.optional(),
  exact: z.boolean().default(true).meta({ description: described.exact }),
  scan: z.boolean().default(false).meta({ description: described.scan }),
  limit: integer(0, limits.countIdsMax).meta({ description: described.idsLimit }).optional(),
  max_bytes: integer(limits.answerBytesMin).meta({ description: described.idBytes }).optional(),
  min_version: minVersionSchema.optional(),
  consistency: consistencySchema.optional(),
});
type CountBody = z.output<typeof countRequestSchema>;

export const countQuerySchema = z.strictObject({
  q: querySchema.default(''),
  regex: queryBoolean().default(false).meta({ description: described.regex }),
  filter: filterQuerySchema.optional(),
  exact: queryBoolean().default(true).meta({ description: described.exact }),
  scan: queryBoolean().default(false).meta({ description: described.scan }),
  limit: queryInteger(0, limits.countIdsMax).meta({ description: described.idsLimit }).optional(),
  max_bytes: queryInteger(limits.answerBytesMin).meta({ description: described.idBytes }).optional(),
  min_version: minVersionQuerySchema.optional(),
  consistency: consistencySchema.optional(),
});

export interface CountRequest extends Omit<CountBody, 'filter'> {
  readonly filter: Filter | null;
}

export const warmRequestSchema = z.strictObject({
  queries: list(querySchema, limits.warmQueriesMax)
    .meta({ description: 'What to get ready for: texts, or regexes with regex: true.' })
    .default([]),
  regex: z.boolean().default(false),
  min_version: minVersionSchema.optional(),
});
export type WarmRequest = z.output<typeof warmRequestSchema>;

/** The front's JSON reader, which keeps 64-bit integers. It throws for text that is not JSON. */
export type ParseJson = (text: string) => unknown;

/** A search from the parsed body of a POST. Throws ApiError 422 with `fields`. */
export function parseSearchBody(body: unknown): SearchRequest {
  return searchRequest(parseWith(searchRequestSchema, body));
}

/** A search from the parameters of a GET. Throws ApiError 422 with `fields`. */
export function parseSearchQuery(
  parameters: ReadonlyMap<string, string>,
  parseJson: ParseJson,
): SearchRequest {
  const query = parseQueryWith(searchQuerySchema, parameters);
  return searchRequest({ ...query, filter: parseFilterText(query.filter, parseJson) });
}

/** A count from the parsed body of a POST. Throws ApiError 422 with `fields`. */
export function parseCountBody(body: unknown): CountRequest {
  return countRequest(parseWith(countRequestSchema, body));
}

/** A count from the parameters of a GET. Throws ApiError 422 with `fields`. */
export function parseCountQuery(parameters: ReadonlyMap<string, string>, parseJson: ParseJson): CountRequest {
  const query = parseQueryWith(countQuerySchema, parameters);
  return countRequest({ ...query, filter: parseFilterText(query.filter, parseJson) });
}

/** What to warm, from a parsed body; undefined, where the request had none, warms without queries. */
export function parseWarmBody(body: unknown): WarmRequest {
  const request = parseWith(warmRequestSchema, body === undefined ? {} : body);
  for (const [index, query] of request.queries.entries()) {
    checkPattern(query, request.regex, `queries[${index}]`);
  }
  return request;
}

function parseFilterText(filterText: string | undefined, parseJson: ParseJson): unknown {
  if (filterText === undefined) return undefined;
  if (Buffer.byteLength(filterText) > limits.filterBytesMax) {
    throw invalidField('filter', `may have at most ${limits.filterBytesMax} bytes of JSON`);
  }
  try {
    return parseJson(filterText);
  } catch (cause) {
    const fields = { filter: 'filter must be a JSON object' };
    throw new ApiError('invalid', 'filter must be a JSON object: it is not JSON', { fields, cause });
  }
}

function searchRequest({ vector_b64, ...given }: SearchBody): SearchRequest {
  const body = vector_b64 === undefined ? given : { ...given, vector: decodedVector(given, vector_b64) };
  const { filter, cursor } = body;
  checkPattern(body.q, body.regex, 'q');
  if (body.vector !== undefined && body.semantic !== undefined) {
    throw invalidField('semantic', 'cannot be sent together with vector');
  }
  // A text of white space alone has no vector that says anything.
  if (body.semantic?.trim() === '') throw invalidField('semantic', 'has nothing but white space');
  if (body.rank !== undefined && body.vector === undefined && body.semantic === undefined) {
    throw invalidField('rank', 'needs vector or semantic, whose order it fuses with that of the text');
  }
  const page = cursor === undefined || cursor === '' ? null : cursor;
  if (page !== null && (body.vector !== undefined || body.semantic !== undefined)) {
    throw invalidField('cursor', 'cannot be used with vector or semantic: their answers do not page');
  }
  return { ...body, filter: isAbsent(filter) ? null : parseFilter(filter), cursor: page };
}

/** The numbers of `vector_b64`, little-endian float32 values. */
function decodedVector({ vector }: Pick<SearchBody, 'vector'>, base64: string): number[] {
  if (vector !== undefined) throw invalidField('vector_b64', 'cannot be sent together with vector');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== base64.replace(/=+$/, ''))
    throw invalidField('vector_b64', 'must be base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0)
    throw invalidField(
      'vector_b64',
      `must be float32 values of four bytes each: it has ${bytes.length} bytes`,
    );
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

function countRequest(body: CountBody): CountRequest {
  const { filter } = body;
  checkPattern(body.q, body.regex, 'q');
  if (!body.exact && !isAbsent(filter)) throw invalidField('exact', 'an estimate does not support filters');
  return { ...body, filter: isAbsent(filter) ? null : parseFilter(filter) };
}

/** Any JSON is let through to `parseFilter`, which is asked only where there is a filter. */
function isAbsent(filter: unknown): filter is null | undefined {
  return filter === undefined || filter === null;
}

function checkPattern(query: string, isRegex: boolean, field: string): void {
  if (isRegex && query.length > limits.patternCharactersMax) {
    throw invalidField(
      field,
      `a regex may have at most ${limits.patternCharactersMax} characters: this one has ${query.length}`,
    );
  }
}

const matchRangeSchema = z.object({ start: z.int(), end: z.int(), line_number: z.int() });

export const hitSchema = z.object({
  id: z.string(),
  match: z.string().meta({ description: `The matched text, cut at ${limits.matchBytesMax} bytes.` }),
  line: z.string().meta({
    description: `The line around the match, cut at ${limits.lineBytesMax} bytes; first line where nothing matched.`,
  }),
  line_number: z.int().meta({ description: 'From 1.' }),
  start: z.int().meta({ description: "Where the match begins: bytes of the text's UTF-8." }),
  end: z.int(),
  before: z
    .array(z.string())
    .meta({ description: 'With context: the lines before that line, none where nothing matched.' })
    .optional(),
  after: z.array(z.string()).meta({ description: 'With context: the lines behind that line.' }).optional(),
  meta: metaSchema,
  written_at: timestampSchema,
  score: z.number().meta({ description: 'Vector hits: higher is better.' }).optional(),
  distance: z.number().meta({ description: 'Vector hits: the raw distance.' }).optional(),
  text: z.string().optional(),
  vector: z.array(z.number()).optional(),
  matches: z.array(matchRangeSchema).optional(),
});
export type Hit = z.output<typeof hitSchema>;

const answerFields = {
  namespace: z.string(),
  docs: z.int().meta({ description: 'Live documents in the namespace at that version.' }),
  version: z.int().meta({ description: "The namespace's version that was read." }),
  partial: z.boolean().meta({
    description:
      'The answer is incomplete: time ran out, or data could not be read. Go on with next where it is not empty; else ask for less.',
  }),
  took_ms: z.number(),
} as const;

export const searchAnswerSchema = z.object({
  ...answerFields,
  hits: z.array(hitSchema).meta({ description: 'Text results come newest first.' }),
  next: z.string().meta({ description: 'Pass as cursor for the next page; empty means no more.' }),
  truncated: z.boolean().meta({ description: 'Hits were cut to fit max_bytes.' }).optional(),
  ...queryFigureFields,
});
export type SearchAnswer = z.output<typeof searchAnswerSchema>;

export const countAnswerSchema = z.object({
  ...answerFields,
  count: z.int(),
  exact: z.boolean(),
  ids: z.array(z.string()).meta({ description: `Up to ${limits.countIdsMax} newest matching ids.` }),
  low: z.int().meta({ description: 'Estimates: the count is at least this.' }).optional(),
  high: z.int().meta({ description: 'Estimates: the count is at most this.' }).optional(),
  likely_low: z
    .int()
    .meta({
      description: 'Estimates: in 95 of 100 cases the count is at least this, and at most likely_high.',
    })
    .optional(),
  likely_high: z.int().meta({ description: 'Estimates: see likely_low.' }).optional(),
  truncated: z.boolean().meta({ description: 'Ids were cut to fit max_bytes.' }).optional(),
  ...queryFigureFields,
});
export type CountAnswer = z.output<typeof countAnswerSchema>;

export const warmAnswerSchema = z.object({
  namespace: z.string(),
  ...queryFigureFields,
  temperature: temperatureSchema,
  docs: z.int(),
  bytes_cached: z.int(),
  queries: z.array(z.object({ q: z.string(), ready: z.boolean() })),
  took_ms: z.number(),
});
export type WarmAnswer = z.output<typeof warmAnswerSchema>;
