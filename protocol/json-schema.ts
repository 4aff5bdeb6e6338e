/**
 * How the product's schemas become JSON Schema (draft 2020-12), for the OpenAPI document and for MCP tools: as what is sent
 * (`io: input`), so that answers may grow fields.
 *
 * Defaults are said in words. A generator of clients takes a property with a `default` for one that is always there, and its
 * client would demand it of whoever writes a request.
 */
import { errorKinds } from './errors.ts';
import { z } from './validate.ts';

type Json = Record<string, unknown>;

/** The one shape of every error answer. */
export const errorSchema = z.object({
  error: z.string().meta({ description: 'A sentence; its wording may change.' }),
  code: z.string().meta({ enum: Object.keys(errorKinds), description: 'What clients branch on.' }),
  fields: z
    .record(z.string(), z.string())
    .meta({ description: 'Input field to what is wrong with it.' })
    .optional(),
  retry_after: z.number().meta({ description: 'Seconds; also in the Retry-After header.' }).optional(),
});

export const jsonSchemaOptions = { io: 'input', unrepresentable: 'any', override: tidySchema } as const;

/** Every integer is one that JavaScript holds exactly; saying so at each of them only hides the real bounds. */
function tidySchema({ jsonSchema }: { jsonSchema: Json }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (!Object.hasOwn(jsonSchema, 'default')) return;
  const { default: value, description = '' } = jsonSchema;
  delete jsonSchema.default;
  const said = String(description);
  if (!said.includes('Default')) jsonSchema.description = `${said} Default: ${shownDefault(value)}.`.trim();
}

function shownDefault(value: unknown): string {
  if (value === '') return 'empty';
  if (Array.isArray(value) && value.length === 0) return 'none';
  return value === null ? 'null' : String(value);
}
