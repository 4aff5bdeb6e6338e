/** A document, and what every query reports about its own cost. */
import type { MetaObject } from './filter.ts';
import { documentIdProblem } from './ids.ts';
import { limits } from './limits.ts';
import { choice, integer, list, queryInteger, text, textBy, z } from './validate.ts';

export const documentIdSchema = textBy(documentIdProblem).meta({
  description: `Up to ${limits.documentIdBytesMax} bytes of UTF-8, one line; slashes are allowed.`,
  examples: ['notes/2026/first.md'],
});

/** Any JSON object. Integers keep 64 bits, so a parsed value may hold bigint. */
export const metaSchema = z.custom<MetaObject>(isObject, 'must be a JSON object').meta({
  type: 'object',
  additionalProperties: true,
  description: 'A JSON object, best kept flat: its top-level keys are what filters and SQL read.',
});

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const vectorSchema = list(z.number(), limits.vectorDimsMax, 1).meta({
  description: "As many numbers as the namespace's dims.",
});

/** Lines of a text, from 1, both of them included; `last` is infinite for the rest of the text. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/** The range that a text such as "120-180" names; null where it is no range of lines. */
export function parseLines(lines: string): LineRange | null {
  const [, from = '', dash = '', to = ''] = /^([0-9]{1,9})(?:(-)([0-9]{1,9})?)?$/.exec(lines) ?? [];
  const first = from === '' ? 0 : Number(from);
  const last = to !== '' ? Number(to) : dash === '' ? first : Number.POSITIVE_INFINITY;
  return first >= 1 && last >= first ? { first, last } : null;
}

function linesProblem(lines: string): string | null {
  return parseLines(lines) === null
    ? 'must be lines from 1 on, the first not after the last, such as "120-180", "120-" or "120"'
    : null;
}

/** A document of a put. Bulk bodies are read by a byte scanner with the same rules; this is their description. */
export const documentSchema = z
  .strictObject({
    id: documentIdSchema,
    text: text({ bytesMax: limits.documentTextBytesMax })
      .meta({ description: 'Searched by q. May be left out when the document has a vector.' })
      .optional(),
    meta: metaSchema.optional(),
    vector: vectorSchema.optional(),
    vector_b64: z
      .string()
      .meta({ description: 'The vector as base64 of little-endian float32 values.' })
      .optional(),
  })
  .meta({ description: 'Writing an id again replaces the document.' });
export type Document = z.output<typeof documentSchema>;

/** One change of a PATCH: it replaces or merges parts of a document that exists. */
export const documentPatchSchema = z.strictObject({
  id: documentIdSchema,
  text: text({ bytesMax: limits.documentTextBytesMax })
    .meta({ description: 'Replaces the text; kept when left out.' })
    .optional(),
  meta: metaSchema.meta({ description: 'Merged key by key; a null value removes the key.' }).optional(),
  vector: vectorSchema.optional(),
  vector_b64: z
    .string()
    .meta({ description: 'The vector as base64 of little-endian float32 values.' })
    .optional(),
});

export const temperatures = ['warm', 'local', 'cold'] as const;
export type Temperature = (typeof temperatures)[number];

export const temperatureSchema = z.enum(temperatures).meta({
  description:
    "The coldest place that the query had to read: warm is memory alone, local this server's disk, cold object storage.",
});

/** The fields that every query's answer ends with. */
export const queryFigureFields = {
  temperature: temperatureSchema,
  store_gets: z.int().meta({ description: "The query's own reads of object storage; 0 when warm." }),
  store_bytes: z.int(),
  cpu_ms: z.number().meta({ description: 'Metered, not billed.' }),
  timed_out: z
    .boolean()
    .meta({ description: "The query ran past the plan's time limit and the answer is partial." }),
  stale: z
    .boolean()
    .meta({
      description:
        'true where consistency is eventual and the server that owns the namespace was out of reach: what was written in the last age_ms ' +
        'milliseconds, or since then, may be missing. Absent otherwise.',
    })
    .optional(),
  age_ms: z.int().meta({ description: 'Beside stale: how old the answer may be.' }).optional(),
} as const;

export const answerFiguresSchema = z.object(queryFigureFields);
export type AnswerFigures = z.output<typeof answerFiguresSchema>;

export const timestampSchema = z.string().meta({ format: 'date-time', description: 'RFC 3339, UTC.' });

/** The answer of a single read. */
export const storedDocumentSchema = z.object({
  id: z.string(),
  text: z.string(),
  meta: metaSchema,
  vector: z.array(z.number()).optional(),
  lines: z
    .string()
    .meta({ description: 'Present where text is a part: its first and last line, such as 120-180.' })
    .optional(),
  total_lines: z.int().meta({ description: 'Beside lines: how many lines the whole text has.' }).optional(),
  truncated: z
    .boolean()
    .meta({ description: 'The text, or the vector, was cut to fit limit or max_bytes: go on with lines.' })
    .optional(),
  written_at: timestampSchema,
  ...queryFigureFields,
});
export type StoredDocument = z.output<typeof storedDocumentSchema>;

const minVersionDescription =
  'Wait up to a second until the namespace has this version; 503 `unavailable` when it does not get there.';

/** `min_version` of a read, in a body and in a query string. */
export const minVersionSchema = integer(0).meta({ description: minVersionDescription });
export const minVersionQuerySchema = queryInteger(0).meta({ description: minVersionDescription });

/** What a read must have seen: every acknowledged write, or what the server that was asked can read by itself. */
export const consistencies = ['strong', 'eventual'] as const;
export const consistencySchema = choice(consistencies).meta({
  description:
    'strong, the default, sees every acknowledged write. eventual may be up to a second behind where several servers run, and is ' +
    'answered also while the one that owns the namespace is out of reach. One server alone answers both the same.',
});

export const linesSchema = textBy(linesProblem).meta({
  description: 'The lines of the text to answer, from 1: 120-180, 120- for the rest, or 120 for one.',
  examples: ['120-180'],
});

export const documentQuerySchema = z.strictObject({
  min_version: minVersionQuerySchema.optional(),
  consistency: consistencySchema.optional(),
  lines: linesSchema.optional(),
  limit: queryInteger(1).meta({ description: 'Lines of the text to answer at most.' }).optional(),
  max_bytes: queryInteger(limits.answerBytesMin)
    .meta({
      description:
        "The answer's size budget in bytes: the vector is left out first, then the text is cut at the end of a line.",
    })
    .optional(),
});
export type DocumentQuery = z.output<typeof documentQuerySchema>;
