/**
 * The operations table → an OpenAPI 3.1 document. Its schemas are JSON Schema draft 2020-12 as the schema library
 * writes them, of what is sent (`io: input`), so that answers may grow fields. Operations that are not built are left out.
 */
import * as account from './account.ts';
import * as document from './document.ts';
import { errorSchema, jsonSchemaOptions } from './json-schema.ts';
import { limits } from './limits.ts';
import * as namespace from './namespace.ts';
import type { Tag } from './operations/operation-row.ts';
import { type Operation, operationList, querySchemaOf, takesBody } from './operations.ts';
import * as searching from './search.ts';
import { z } from './validate.ts';
import { interfaceVersion } from './version.ts';
import * as write from './write.ts';

type Json = Record<string, unknown>;

/** Schemas that the document shows by name; every other schema stands where it is used. */
const namedSchemas: Readonly<Record<string, z.ZodType>> = {
  CountAnswer: searching.countAnswerSchema,
  CountRequest: searching.countRequestSchema,
  DeleteRequest: write.deleteRequestSchema,
  Document: document.documentSchema,
  DocumentPatch: document.documentPatchSchema,
  EmbedConfig: namespace.embedConfigSchema,
  Error: errorSchema,
  Hit: searching.hitSchema,
  KeyItem: account.keyItemSchema,
  KeyLimits: account.keyLimitsSchema,
  KeyRequest: account.keyRequestSchema,
  LoginAnswer: account.loginAnswerSchema,
  LoginRequest: account.loginRequestSchema,
  Me: account.meSchema,
  Namespace: namespace.namespaceSchema,
  NamespaceList: namespace.namespaceListSchema,
  NamespaceRequest: namespace.namespaceRequestSchema,
  NewKey: account.newKeySchema,
  PatchRequest: write.patchRequestSchema,
  PutRequest: write.putRequestSchema,
  SearchAnswer: searching.searchAnswerSchema,
  SearchRequest: searching.searchRequestSchema,
  SignupAnswer: account.signupAnswerSchema,
  SignupRequest: account.signupRequestSchema,
  Tenant: account.tenantSchema,
  TenantRequest: account.tenantRequestSchema,
  StoredDocument: document.storedDocumentSchema,
  VectorConfig: namespace.vectorConfigSchema,
  WarmAnswer: searching.warmAnswerSchema,
  WarmRequest: searching.warmRequestSchema,
  WriteResult: write.writeResultSchema,
};

const reference = (name: string): string => `#/components/schemas/${name}`;
/** The document of a server whose public address is `baseUrl`. */
export function buildOpenApi(baseUrl: string): object {
  const documented = operationList.filter((operation) => operation.built);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tidebase',
      version: interfaceVersion,
      description:
        'A search database over plain object storage: text, regex, vectors, filters and SQL over the same documents. ' +
        'An optional field of a request body that is null counts as absent.',
      license: { name: 'All rights reserved', identifier: 'LicenseRef-Tidebase' },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(documented.map(({ tag }) => tag))].map((name) => ({
      name,
      description: tagDescriptions[name],
    })),
    paths: pathsOf(documented),
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or a login token.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key.' },
      },
      headers: rateLimitHeaders,
      responses: errorResponses,
      parameters: { Tenant: tenantParameter, IdempotencyKey: idempotencyKeyParameter },
    },
  };
}

const tagDescriptions: Readonly<Record<Tag, string>> = {
  accounts: 'People: sign up, log in, verify an address, reset a password.',
  keys: "API keys, and keys of embedding providers. They need an unlimited admin key or the owner's login.",
  tenants: 'A tenant owns namespaces, keys, usage and a bill; a person may have several.',
  billing: 'What was used, the plan, and what it costs.',
  namespaces: 'Named sets of documents. The first write makes one.',
  documents: 'Put, change, delete, read and import documents.',
  search: "Search by text, regex, vectors and filters; count; SQL over documents' metadata; warm.",
  meta: 'About the server itself.',
};

const tenantParameter = {
  name: 'X-Tenant',
  in: 'header',
  required: false,
  description: 'The tenant that a login acts for; its default tenant where the header is missing.',
  schema: { type: 'integer' },
} as const;

const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to repeat: with the same key and body it is done once, and for 24 hours answered as the first time, with ' +
    'Idempotent-Replayed: true. 409 while the first one is under way, 422 with another request. Refusals are not kept. Keys are a ' +
    "login's own, or shared by the tenant's API keys.",
  schema: {
    type: 'string',
    minLength: 1,
    maxLength: limits.idempotencyKeyCharactersMax,
    pattern: '^[ -~]+$',
  },
} as const;

const rateLimitHeaders = {
  'RateLimit-Limit': header(
    'integer',
    "Requests of a window: the tighter of the plan's and the key's limit.",
  ),
  'RateLimit-Remaining': header('integer', 'Requests left in this window.'),
  'RateLimit-Reset': header('integer', 'Seconds until the window ends.'),
  'RateLimit-Policy': header('string', 'Limit and window in seconds, such as 100;w=1.'),
  RateLimit: header('string', 'limit=…, remaining=…, reset=… in one.'),
  'Retry-After': header('integer', 'Seconds after which the same request may succeed.'),
  'Idempotent-Replayed': header('boolean', 'true where the answer is that of an earlier request.'),
};

function header(type: string, description: string) {
  return { description, schema: { type } };
}

const errorContent = { 'application/json': { schema: { $ref: reference('Error') } } };
const errorResponses = {
  Error: { description: 'An error; clients branch on its code.', content: errorContent },
  RetryableError: {
    description: 'Not now: send the same request again after Retry-After seconds.',
    headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
    content: errorContent,
  },
};

function componentSchemas(): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(namedSchemas)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { ...jsonSchemaOptions, uri: reference });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

/** A component is named by its place; `$id` and `$schema` would make it a document of its own. */
function withoutIdentity(schema: object): Json {
  const { $id: _id, $schema: _schema, ...rest } = schema as Json;
  return rest;
}

function schemaOf(schema: z.ZodType): Json {
  const name = nameOf(schema);
  if (name !== null) return { $ref: reference(name) };
  if (schema instanceof z.ZodArray && schema.element instanceof z.ZodType) {
    const { items: _items, ...rest } = withoutIdentity(z.toJSONSchema(schema, jsonSchemaOptions));
    return { ...rest, items: schemaOf(schema.element) };
  }
  return withoutIdentity(z.toJSONSchema(schema, jsonSchemaOptions));
}

function nameOf(schema: z.ZodType): string | null {
  const entry = Object.entries(namedSchemas).find(([, each]) => each === schema);
  return entry === undefined ? null : entry[0];
}

function pathsOf(documented: readonly Operation[]): Json {
  const paths: Record<string, Json> = {};
  for (const operation of documented) {
    const item = paths[operation.path] ?? {};
    paths[operation.path] = item;
    for (const method of operation.methods) item[method.toLowerCase()] = operationObject(operation, method);
  }
  return paths;
}

function operationObject(operation: Operation, method: string): Json {
  const isSecondForm = method === 'GET' && operation.methods.length > 1;
  const parameters = parametersOf(operation, method);
  return {
    operationId: isSecondForm ? `${operation.name}ByQuery` : operation.name,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description === '' ? {} : { description: operation.description }),
    ...(operation.effect.meters === null ? {} : { 'x-metering': operation.effect.meters }),
    security: securityOf(operation),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(takesBody(operation, method) ? { requestBody: requestBodyOf(operation) } : {}),
    responses: responsesOf(operation),
  };
}

function securityOf(operation: Operation): Json[] {
  if (operation.auth === 'none') return [];
  return operation.auth === 'login' ? [{ bearer: [] }] : [{ bearer: [] }, { apiKey: [] }];
}

function parametersOf(operation: Operation, method: string): Json[] {
  const path = Object.entries(operation.parameters).map(([name, schema]) => ({
    name,
    in: 'path',
    required: true,
    schema: schemaOf(schema),
  }));
  const query = queryParameters(querySchemaOf(operation, method));
  const actsForTenant = operation.auth !== 'none' || operation.name === 'login';
  return [
    ...path,
    ...query,
    ...(actsForTenant ? [{ $ref: '#/components/parameters/Tenant' }] : []),
    ...(operation.idempotent ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
  ];
}

function queryParameters(schema: z.ZodObject | null): Json[] {
  if (schema === null) return [];
  return Object.entries(schema.shape).map(([name, field]) => {
    const { description, ...rest } = withoutIdentity(z.toJSONSchema(field as z.ZodType, jsonSchemaOptions));
    return {
      name,
      in: 'query',
      required: false,
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

function requestBodyOf(operation: Operation): Json {
  const content =
    operation.request === 'file'
      ? { 'application/octet-stream': {} }
      : {
          'application/json': {
            schema:
              operation.request === null || operation.request === 'signed' ? {} : schemaOf(operation.request),
          },
        };
  return { required: operation.bodyRequired, content };
}

/**
 * What follows from what an operation takes, so that no row has to say it: 401, 404 and 503 of a credential and its tenant, 400 and 422
 * of bytes and of parameters, 413, 415 and 408 of a body. A refusal of any of them comes before the operation's own.
 */
function commonStatuses(operation: Operation): number[] {
  const ofCaller = operation.auth === 'none' ? [] : [401, 404, 503];
  const ofBody = operation.request === null ? [] : [408, 413, 415];
  return [400, 422, ...ofCaller, ...ofBody];
}

function responsesOf(operation: Operation): Json {
  const responses: Json = { [operation.success]: successResponse(operation) };
  for (const status of [...new Set([...operation.statuses, ...commonStatuses(operation)])].sort()) {
    const name = status === 429 || status === 503 ? 'RetryableError' : 'Error';
    responses[status] = { $ref: `#/components/responses/${name}` };
  }
  responses.default = { $ref: '#/components/responses/Error' };
  return responses;
}

const rateLimitHeaderNames = [
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
];

function successResponse(operation: Operation): Json {
  const names = [
    ...(operation.rateLimitHeaders ? rateLimitHeaderNames : []),
    ...(operation.idempotent ? ['Idempotent-Replayed'] : []),
  ];
  const headers = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  return {
    description: operation.answer === null ? 'Done.' : 'The answer.',
    ...(names.length > 0 ? { headers } : {}),
    ...answerContent(operation.answer),
  };
}

function answerContent(answer: Operation['answer']): Json {
  if (answer === null) return {};
  if (answer === 'text') return { content: { 'text/plain': { schema: { type: 'string' } } } };
  return { content: { 'application/json': { schema: schemaOf(answer) } } };
}
