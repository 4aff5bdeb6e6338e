/** SQL over documents' metadata. */
import { consistencySchema, minVersionSchema, queryFigureFields } from './document.ts';
import { limits } from './limits.ts';
import { cursorCharactersMax } from './search.ts';
import { integer, text, z } from './validate.ts';

/** One SELECT of many columns; nobody writes more by hand, and parsing is not free. */
export const sqlTextBytesMax = 64 * 1024;

export const sqlRequestSchema = z.strictObject({
  sql: text({ charactersMin: 1, bytesMax: sqlTextBytesMax }).meta({
    description: 'One SELECT over docs, SHOW COLUMNS or DESCRIBE.',
  }),
  limit: integer(1, limits.sqlRowsMax)
    .meta({ description: 'Rows of one answer at most; next has the others.' })
    .optional(),
  max_bytes: integer(limits.answerBytesMin)
    .meta({ description: "The answer's size budget in bytes; rows are cut from the end." })
    .optional(),
  cursor: text({ charactersMax: cursorCharactersMax })
    .meta({ description: 'The next of the answer before, to the same statement.' })
    .optional(),
  min_version: minVersionSchema.optional(),
  consistency: consistencySchema.optional(),
});
export type SqlRequest = z.output<typeof sqlRequestSchema>;

export const sqlTypes = ['int', 'float', 'text', 'date', 'time', 'null'] as const;

export const sqlAnswerSchema = z.object({
  namespace: z.string(),
  columns: z.array(z.string()),
  types: z.array(z.enum(sqlTypes)),
  rows: z.array(z.array(z.union([z.number(), z.string(), z.null()]))),
  chunks: z.int().meta({ description: 'Column blocks in the namespace.' }),
  scanned: z.int().meta({ description: 'Blocks read.' }),
  partial: z.boolean().meta({
    description: 'Not all was read, because time ran out or data could not be read: ask for less, or again.',
  }),
  truncated: z
    .boolean()
    .meta({ description: 'There are more rows: over 10,000, or over limit or max_bytes.' }),
  next: z
    .string()
    .meta({ description: 'Where limit or max_bytes cut the rows: pass as cursor to go on.' })
    .optional(),
  took_ms: z.number(),
  ...queryFigureFields,
});
export type SqlAnswer = z.output<typeof sqlAnswerSchema>;
