/** People, tenants, API keys, scopes, usage, billing. */
import { timestampSchema } from './document.ts';
import { limits } from './limits.ts';
import { choice, integer, list, queryBoolean, text, textBy, z } from './validate.ts';

export const scopes = ['read', 'write', 'admin'] as const;
/** Each scope may do what the ones before it may. */
export type Scope = (typeof scopes)[number];
export const planNames = ['free', 'pro'] as const;
export const tenantStatuses = ['active', 'past_due', 'suspended', 'deleting'] as const;
export const roles = ['owner', 'member'] as const;

/** How long what a person types may be. */
export const emailBytesMax = 254;
export const nameCharactersMax = 100;
export const passwordCharactersMin = 8;
/** Every character costs hashing time, and nobody types more. */
export const passwordCharactersMax = 200;
/** A key that needs more is better limited by a prefix; each request is checked against all of them. */
export const keyNamespacesMax = 100;
/** A provider's key is some hundred characters, an e-mailed token some dozen; a login token is a JWT. */
const secretCharactersMax = 4_096;

export const emailSchema = z
  .string()
  .transform((value) => value.trim())
  .pipe(textBy(emailProblem))
  .meta({ format: 'email', maxLength: emailBytesMax });

/**
 * What is wrong with a trimmed address, or null. Whether mail arrives there is for the verification link to find out; but
 * what mail programs leave out, or read as several addresses, would give one mailbox many accounts: brackets, quotes,
 * separators, and what is not seen.
 */
export function emailProblem(email: string): string | null {
  if (!email.isWellFormed()) return 'must be well-formed Unicode';
  if (Buffer.byteLength(email) > emailBytesMax) return `must be at most ${emailBytesMax} bytes`;
  if (notInAddresses.test(email)) return 'must be an e-mail address';
  return /^[^@]+@[^@]+$/.test(email) ? null : 'must be an e-mail address';
}

const notInAddresses = /[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}<>()[\]\\,;:"]/u;

const personNameSchema = z
  .string()
  .transform((value) => value.trim())
  .pipe(text({ charactersMin: 1, charactersMax: nameCharactersMax, controlCharacters: 'refused' }))
  .meta({ minLength: 1, maxLength: nameCharactersMax });

const passwordSchema = text({
  charactersMin: passwordCharactersMin,
  charactersMax: passwordCharactersMax,
}).meta({
  format: 'password',
  minLength: passwordCharactersMin,
  maxLength: passwordCharactersMax,
});

const secretSchema = text({ charactersMin: 1, charactersMax: secretCharactersMax });

export const signupRequestSchema = z.strictObject({
  email: emailSchema,
  name: personNameSchema,
  password: passwordSchema,
});
/** `email` and `name` are trimmed; addresses are the same person's whatever their case. */
export type SignupRequest = z.output<typeof signupRequestSchema>;

export const signupAnswerSchema = z.object({
  id: z.int(),
  tenant_id: z.int(),
  key: z.string().meta({ description: 'The API key, shown only here.' }),
  key_id: z.int(),
  key_prefix: z.string(),
  scope: z.literal('admin'),
});
export type SignupAnswer = z.output<typeof signupAnswerSchema>;

/** What a login sends. The rules of sign-up do not judge it: a wrong address or password of any form is a failed login, not a bad field. */
export const loginRequestSchema = z.strictObject({
  email: z
    .string()
    .transform((value) => value.trim())
    .pipe(text({ charactersMin: 1, bytesMax: emailBytesMax }))
    .meta({ format: 'email', maxLength: emailBytesMax }),
  password: text({ charactersMin: 1, charactersMax: passwordCharactersMax }).meta({ format: 'password' }),
});
export type LoginRequest = z.output<typeof loginRequestSchema>;

export const loginAnswerSchema = z.object({
  token: z.string().meta({ description: 'A login token, valid one day; sent as a bearer token.' }),
});
export type LoginAnswer = z.output<typeof loginAnswerSchema>;

export const verifyRequestSchema = z.strictObject({ token: secretSchema });
export const verifyAnswerSchema = z.object({ verified: z.boolean() });
export const resendAnswerSchema = z.object({ verified: z.boolean(), sent: z.boolean() });
export const forgotRequestSchema = z.strictObject({ email: emailSchema });
export const forgotAnswerSchema = z.object({ sent: z.boolean() });
export const resetRequestSchema = z.strictObject({ token: secretSchema, password: passwordSchema });
export const resetAnswerSchema = z.object({ reset: z.boolean() });
export type VerifyRequest = z.output<typeof verifyRequestSchema>;
export type ForgotRequest = z.output<typeof forgotRequestSchema>;
export type ResetRequest = z.output<typeof resetRequestSchema>;

/** A namespace's name, or the beginning of names followed by a star. */
const namespacePatternSchema = textBy(namespacePatternProblem).meta({
  pattern: '^[a-z0-9._-]*\\*?$',
  examples: ['notes', 'user-*'],
});

function namespacePatternProblem(pattern: string): string | null {
  const prefix = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern;
  const isPattern = pattern.length > 0 && /^[a-z0-9._-]*$/.test(prefix);
  if (isPattern && prefix.length <= limits.namespaceNameCharactersMax) return null;
  return 'must be a namespace name or a prefix followed by *';
}

const keyLimitFields = {
  namespaces: list(namespacePatternSchema, keyNamespacesMax)
    .nullable()
    .default([])
    .transform((patterns) => patterns ?? [])
    .meta({ description: 'Names or prefix* patterns; empty means unrestricted.' }),
  rate_per_s: capSchema('Requests a second; null for none of its own.'),
  cap_queries: capSchema('Queries a period; null for none.'),
  cap_writes: capSchema('Write requests a period; null for none.'),
} as const;

function capSchema(description: string) {
  return integer(1).nullable().default(null).meta({ description });
}

export const keyRequestSchema = z.strictObject({
  name: text({ charactersMin: 1, charactersMax: nameCharactersMax, controlCharacters: 'refused' }).meta({
    minLength: 1,
    maxLength: nameCharactersMax,
  }),
  scope: choice(scopes).default('write'),
  ...keyLimitFields,
});
export type KeyRequest = z.output<typeof keyRequestSchema>;

/** Replaces all four; what is left out is lifted. */
export const keyLimitsSchema = z.strictObject(keyLimitFields);
export type KeyLimits = z.output<typeof keyLimitsSchema>;

const keyFields = {
  id: z.int(),
  name: z.string(),
  prefix: z.string().meta({ description: 'The leading part of the key.' }),
  scope: z.enum(scopes),
  namespaces: z.array(z.string()).meta({ description: 'Empty when unrestricted.' }),
} as const;
const keyCapFields = {
  rate_per_s: z.int().nullable(),
  cap_queries: z.int().nullable(),
  cap_writes: z.int().nullable(),
} as const;

export const newKeySchema = z.object({
  ...keyFields,
  key: z.string().meta({ description: 'The API key, shown only here.' }),
});
export type NewKey = z.output<typeof newKeySchema>;

export const keyItemSchema = z.object({
  ...keyFields,
  ...keyCapFields,
  used_queries: z.int().meta({ description: 'This period.' }),
  used_writes: z.int().meta({ description: 'This period.' }),
  created_at: timestampSchema,
  last_used_at: timestampSchema.nullable(),
  created_by: z.string(),
});
export type KeyItem = z.output<typeof keyItemSchema>;

export const keyListSchema = z.array(keyItemSchema).meta({ description: 'Live keys, newest first.' });

/** A connection: what a person lets an MCP client do (OAuth calls it a grant). */
export const connectionItemSchema = z.object({
  id: z.int(),
  client: z.object({
    id: z
      .string()
      .meta({ description: 'The id that the client was given, or the address of its metadata document.' }),
    name: z.string().meta({ description: 'What the client calls itself.' }),
  }),
  person: z.object({ id: z.int(), email: z.string(), name: z.string() }),
  scope: z.enum(['read', 'write']).meta({ description: 'write includes read.' }),
  namespaces: keyFields.namespaces,
  created_at: timestampSchema,
  last_used_at: timestampSchema.nullable(),
  expires_at: timestampSchema.meta({ description: 'When it ends unless the client uses it before.' }),
});
export type ConnectionItem = z.output<typeof connectionItemSchema>;
export const connectionListSchema = z
  .array(connectionItemSchema)
  .meta({ description: 'Connections of MCP clients, newest first.' });

export const embeddingKeyRequestSchema = z.strictObject({ key: secretSchema });
export const embeddingKeySchema = z.object({
  provider: z.string(),
  hint: z.string(),
  created_at: timestampSchema,
  updated_at: timestampSchema,
});
export const embeddingKeyListSchema = z.object({ keys: z.array(embeddingKeySchema) });
export type EmbeddingKeyRequest = z.output<typeof embeddingKeyRequestSchema>;
export type EmbeddingKey = z.output<typeof embeddingKeySchema>;

export const tenantRequestSchema = z.strictObject({ name: personNameSchema });
export type TenantRequest = z.output<typeof tenantRequestSchema>;

const tenantFields = {
  id: z.int(),
  name: z.string(),
  plan: z.enum(planNames),
  status: z.enum(tenantStatuses),
  role: z.enum(roles),
} as const;
export const tenantSchema = z.object({ ...tenantFields, created_at: timestampSchema });
export type Tenant = z.output<typeof tenantSchema>;
export const tenantListSchema = z.array(tenantSchema);

export const meSchema = z.object({
  tenant_id: z.int(),
  tenant: z.object(tenantFields),
  plan: z.enum(planNames),
  scope: z.enum(scopes),
  namespaces: z.array(z.string()).meta({ description: "The key's namespaces; empty when unrestricted." }),
  auth: z.enum(['key', 'login', 'oauth']),
  person: z.object({ id: z.int(), email: z.string(), name: z.string(), verified: z.boolean() }).nullable(),
  key: z.object({ id: z.int(), name: z.string(), prefix: z.string(), ...keyCapFields }).nullable(),
});
export type Me = z.output<typeof meSchema>;

const usageCounterFields = {
  queries: z.int(),
  writes: z.int(),
  write_bytes: z.int(),
  docs_written: z.int(),
  store_gets: z.int(),
  store_bytes: z.int(),
  out_bytes: z.int(),
  mcp_queries: z.int(),
  mcp_writes: z.int(),
  embed_tokens: z.int(),
  stored_bytes: z.int(),
  cpu_ms: z.number(),
  gb_months: z.number(),
} as const;

const planNumberNames = [
  'price_month',
  'included_gb_months',
  'included_write_gb',
  'included_queries',
  'included_writes',
  'included_embed_tokens',
  'per_gb_month',
  'per_gb_written',
  'per_million_queries',
  'per_million_embed_tokens',
  'per_million_store_gets',
  'qps',
  'concurrency',
  'storage_quota_gb',
  'read_inflight_mb',
  'sql_seconds',
  'sql_concurrency',
  'query_seconds',
  'max_namespaces',
  'included_cpu_seconds',
  'included_store_gets',
  'included_out_gb',
  'max_creates_day',
  'unverified_share',
] as const;
const billNames = ['base', 'storage', 'writes', 'queries', 'embedding', 'reads', 'usage', 'total'] as const;

function numbers<const Names extends readonly string[]>(names: Names) {
  const fields: Partial<Record<Names[number], z.ZodNumber>> = {};
  for (const name of names as readonly Names[number][]) fields[name] = z.number();
  return fields as Record<Names[number], z.ZodNumber>;
}

/** Fields that are numbers, or null where a plan has no limit. */
function numbersOrNone<const Names extends readonly string[]>(names: Names) {
  const fields: Partial<Record<Names[number], z.ZodNullable<z.ZodNumber>>> = {};
  for (const name of names as readonly Names[number][]) fields[name] = z.number().nullable();
  return fields as Record<Names[number], z.ZodNullable<z.ZodNumber>>;
}

export const planSchema = z.object({
  name: z.string(),
  ...numbersOrNone(planNumberNames),
  hard_limit: z.boolean(),
});
export const billSchema = z.object(numbers(billNames));

export const usageSchema = z.object({
  period_start: z.string().meta({ format: 'date' }),
  month: z.string().meta({ examples: ['2026-01'] }),
  ...usageCounterFields,
  plan: planSchema,
  bill: billSchema,
  days: z
    .array(
      z.object({
        day: z.string().meta({ format: 'date' }),
        ...usageCounterFields,
        bill_so_far: z
          .number()
          .meta({ description: "What the period's bill had come to by the end of this day." }),
      }),
    )
    .meta({ description: 'With days=true: every UTC day of the period so far.' })
    .optional(),
});
export type Usage = z.output<typeof usageSchema>;

export const usageQuerySchema = z.strictObject({ days: queryBoolean().default(false) });
export type UsageQuery = z.output<typeof usageQuerySchema>;

export const billingSchema = z.object({
  tenant_id: z.int(),
  plan: z.enum(planNames),
  configured: z.boolean(),
  subscribed: z.boolean(),
  status: z.enum(['none', 'active', 'past_due', 'canceled']),
  cancel_at_period_end: z.boolean(),
  period_start: z.string().meta({ format: 'date' }),
  period_end: z.string().meta({ format: 'date' }),
  usage: z.object(usageCounterFields),
  bill: billSchema,
});
export type Billing = z.output<typeof billingSchema>;

export const webhookAnswerSchema = z.object({ received: z.boolean() });

export const redirectUrlSchema = z.object({ url: z.string().meta({ format: 'uri' }) });
export type RedirectUrl = z.output<typeof redirectUrlSchema>;
