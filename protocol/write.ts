/** Put, patch, delete and import documents. */
import { documentIdSchema, documentPatchSchema, documentSchema } from './document.ts';
import { limits } from './limits.ts';
import { choice, list, text, z } from './validate.ts';

const waitSchema = z
  .boolean()
  .default(false)
  .meta({ description: 'Answer only once the write is searchable on the receiving server.' });

/**
 * The bodies of put and patch are read by a byte scanner: a schema library would build 10,000 objects twice.
 * These schemas describe them for OpenAPI and are what the scanner's tests compare it with.
 */
export const putRequestSchema = z
  .strictObject({
    docs: list(documentSchema, limits.writeItemsMax).optional(),
    deletes: list(documentIdSchema, limits.writeItemsMax)
      .meta({ description: 'Ids; deletes apply before puts.' })
      .optional(),
    wait: waitSchema,
  })
  .meta({
    description: `1 to ${limits.writeItemsMax} documents and deletes together; the request is atomic.`,
  });
export type PutRequest = z.output<typeof putRequestSchema>;

export const patchRequestSchema = z.strictObject({
  docs: list(documentPatchSchema, limits.writeItemsMax, 1),
  wait: waitSchema,
});
export type PatchRequest = z.output<typeof patchRequestSchema>;

/** Ids to delete. A list without any is allowed, and a write of nothing. */
export const deleteRequestSchema = z.strictObject({
  ids: list(documentIdSchema, limits.deleteIdsMax).meta({
    description: 'Ids that do not exist are ignored.',
  }),
  wait: waitSchema,
});
export type DeleteRequest = z.output<typeof deleteRequestSchema>;

const writeResultFields = {
  written: z.int(),
  deleted: z.int().meta({ description: 'Ids that existed and are gone.' }),
  version: z.int().meta({ description: "The namespace's version after the write." }),
  stored_bytes: z.int(),
  created: z.boolean().meta({ description: 'This write made the namespace.' }),
} as const;

export const writeResultSchema = z.object(writeResultFields);
export type WriteResult = z.output<typeof writeResultSchema>;

export const importFormats = ['csv', 'ndjson', 'parquet'] as const;
export type ImportFormat = (typeof importFormats)[number];
const columnNameCharactersMax = 1_000;
/** A table definition of some hundred columns; it travels in the query string. */
const importSchemaBytesMax = 60_000;

export const importQuerySchema = z.strictObject({
  format: choice(importFormats).default('csv'),
  id: text({ charactersMin: 1, charactersMax: columnNameCharactersMax })
    .meta({ description: 'The column that holds the ids; row numbers by default.' })
    .optional(),
  text: text({ bytesMax: importSchemaBytesMax })
    .meta({ description: 'Comma-separated columns to index as text.' })
    .optional(),
  schema: text({ bytesMax: importSchemaBytesMax })
    .meta({ description: 'CSV only: a table definition that gives the column types.' })
    .optional(),
  vector: text({ charactersMin: 1, charactersMax: columnNameCharactersMax })
    .meta({
      description:
        'The column that holds the vectors: lists of numbers, or base64 of little-endian float32 values; it is left out of meta. A namespace that the import makes has vectors of that length, with cosine; without it, text only.',
    })
    .optional(),
  columns: text({ bytesMax: importSchemaBytesMax })
    .meta({
      description:
        'Comma-separated columns to keep in meta; all by default. Columns of id, text and vector are read all the same.',
    })
    .optional(),
  skip: text({ bytesMax: importSchemaBytesMax })
    .meta({ description: 'Comma-separated columns to leave out of meta, instead of columns.' })
    .optional(),
});
export type ImportQuery = z.output<typeof importQuerySchema>;

export const importResultSchema = z.object({
  ...writeResultFields,
  rows: z.int(),
  text_only: z.int().meta({
    description:
      'Rows whose meta would not fit 16 KB: it leaves out some of the columns that are their text, which SQL and filters do not see then.',
  }),
  took_ms: z.number(),
});
export type ImportResult = z.output<typeof importResultSchema>;
