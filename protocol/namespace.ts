/** Create, describe, list, change and delete a namespace. */
import { timestampSchema } from './document.ts';
import { namespaceNameProblem } from './ids.ts';
import { limits } from './limits.ts';
import { choice, integer, queryInteger, text, textBy, z } from './validate.ts';

export const namespaceNameSchema = textBy(namespaceNameProblem).meta({
  pattern: '^(?!\\.{1,2}$)[a-z0-9._-]+$',
  minLength: 1,
  maxLength: limits.namespaceNameCharactersMax,
  examples: ['notes'],
});

export const vectorMetrics = ['cosine', 'euclidean'] as const;
/** Providers whose models the tenant pays for itself, with a key of its own. */
export const keyedProviders = ['openai', 'cohere', 'google', 'mistral'] as const;
/** `service` is the model that runs in this server. */
export const embedProviders = [...keyedProviders, 'service'] as const;

const modelNameCharactersMax = 200;

export const vectorConfigSchema = z
  .strictObject({
    dims: integer(1, limits.vectorDimsMax).meta({ description: "The embeddings' length." }),
    metric: choice(vectorMetrics).default('cosine'),
  })
  .meta({ description: "Fixed for the namespace's life." });
export type VectorConfig = z.output<typeof vectorConfigSchema>;

export const embedConfigSchema = z
  .strictObject({
    provider: choice(embedProviders),
    model: text({ charactersMin: 1, charactersMax: modelNameCharactersMax })
      .meta({ description: "The provider's embedding model; each provider has a default." })
      .optional(),
    dims: integer(1, limits.vectorDimsMax)
      .meta({ description: 'At creation only: the vector length to ask the model for.' })
      .optional(),
  })
  .meta({ description: "Documents' text is embedded with this model." });
export type EmbedConfig = z.output<typeof embedConfigSchema>;

export const namespaceRequestSchema = z.strictObject({
  name: namespaceNameSchema,
  vector: vectorConfigSchema.optional(),
  embed: embedConfigSchema.optional(),
});
export type NamespaceRequest = z.output<typeof namespaceRequestSchema>;

/** The key must be there: `embed: null` turns embedding off. */
export const namespacePatchSchema = z.strictObject({ embed: embedConfigSchema.nullable() });
export type NamespacePatch = z.output<typeof namespacePatchSchema>;

export const linkRequestSchema = z.strictObject({
  source: namespaceNameSchema.meta({
    description: 'The namespace to read. Of a link, its source is meant.',
    examples: ['notes'],
  }),
  version: integer(0)
    .meta({
      description:
        "The source's version that the link stays at: the present one, or one that another link or branch holds. Left out, the link follows its source.",
    })
    .optional(),
});
export type LinkRequest = z.output<typeof linkRequestSchema>;

export const branchRequestSchema = z.strictObject({
  source: namespaceNameSchema.meta({ description: 'The namespace to begin as.', examples: ['notes'] }),
  version: integer(0)
    .meta({
      description:
        "The source's version to begin with: the present one, or one that another link or branch holds. Left out, it is the present one.",
    })
    .optional(),
});
export type BranchRequest = z.output<typeof branchRequestSchema>;

/** The configurations as answers show them: nothing is left to a default, and fields may be added. */
const shownVectorSchema = z
  .object({ dims: z.int(), metric: z.enum(vectorMetrics) })
  .meta({ description: 'Present where the namespace has vectors.' });
const shownEmbedSchema = z
  .object({ provider: z.enum(embedProviders), model: z.string().optional(), dims: z.int().optional() })
  .meta({ description: "Present where documents' text is embedded." });

export const namespaceSchema = z.object({
  name: z.string(),
  vector: shownVectorSchema.optional(),
  embed: shownEmbedSchema.optional(),
  docs_written: z.int().meta({ description: 'Documents written so far (puts and deletes).' }),
  bytes_written: z.int(),
  stored_bytes: z.int().meta({ description: 'What its objects take in object storage now.' }),
  created_at: timestampSchema,
  linked: z
    .object({
      source: z.string(),
      version: z.int(),
      follows: z.boolean(),
      gone: z
        .boolean()
        .optional()
        .meta({ description: 'True in lists where the source is gone: the link can only be deleted.' }),
    })
    .meta({
      description:
        'Present when this is a read-only link to another namespace: its source, the version that is read, and whether that one follows the source.',
    })
    .optional(),
  branched: z
    .object({ source: z.string(), version: z.int() })
    .meta({
      description:
        'Present when the namespace began as another one was: its name at that time, and its version.',
    })
    .optional(),
});
export type Namespace = z.output<typeof namespaceSchema>;

export const namespaceListSchema = z.object({
  namespaces: z.array(namespaceSchema).meta({ description: 'Ordered by name.' }),
  next: z.string().meta({ description: 'Pass as `after` for the next page; empty means no more.' }),
});
export type NamespaceList = z.output<typeof namespaceListSchema>;

/** `after` is the last name of the page before; an empty one begins at the first. */
export const namespaceListQuerySchema = z.strictObject({
  after: text().default(''),
  limit: queryInteger(1, limits.listLimitMax).default(limits.listLimitDefault),
});
export type NamespaceListQuery = z.output<typeof namespaceListQuerySchema>;
