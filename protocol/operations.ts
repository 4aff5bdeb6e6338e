/**
 * Every operation, once, from the rows in operations/. Routing, validation, metering, audit, the OpenAPI document, the MCP tool
 * list and the authorisation test matrix are folds over this table: what is not here does not exist. See protocol/README.md for
 * adding one.
 */
import { limits } from './limits.ts';
import { accountRows } from './operations/accounts.ts';
import { documentRows } from './operations/documents.ts';
import { completeEffect, type Effect } from './operations/effect.ts';
import { keyRows } from './operations/keys.ts';
import { metaRows } from './operations/meta.ts';
import { namespaceRows } from './operations/namespaces.ts';
import type { OperationRow } from './operations/operation-row.ts';
import { searchRows } from './operations/search.ts';
import { tenantRows } from './operations/tenants.ts';
import type { z } from './validate.ts';

const rows = {
  ...accountRows,
  ...keyRows,
  ...tenantRows,
  ...namespaceRows,
  ...documentRows,
  ...searchRows,
  ...metaRows,
} as const;

export type OperationName = keyof typeof rows;

/** A row with its name and all its defaults: every operation has the same shape. */
export interface Operation extends Required<Omit<OperationRow, 'effect'>> {
  readonly name: OperationName;
  readonly effect: Effect;
}

function complete(name: OperationName, row: OperationRow): Operation {
  const hasBody = row.request !== undefined && row.request !== null;
  return {
    name,
    methods: row.methods,
    path: row.path,
    tag: row.tag,
    summary: row.summary,
    description: row.description ?? '',
    auth: row.auth ?? 'key-or-login',
    scope: row.scope ?? null,
    authority: row.authority ?? 'any',
    whenSuspended: row.whenSuspended ?? false,
    outsidePatterns: row.outsidePatterns ?? 'forbidden',
    effect: completeEffect(row.effect),
    serves: row.serves,
    changes: row.changes ?? null,
    needsFirst: row.needsFirst ?? null,
    runsAs: row.runsAs ?? 'query',
    success: row.success ?? 200,
    statuses: row.statuses,
    query: row.query ?? null,
    request: row.request ?? null,
    bodyRequired: row.bodyRequired ?? hasBody,
    inputCode: row.inputCode ?? 'invalid',
    answer: row.answer,
    parameters: row.parameters ?? {},
    restParameter: row.restParameter ?? null,
    bodyBytesMax: row.bodyBytesMax ?? (hasBody ? bodyBytesDefault(row) : 0),
    sameOrigin: row.sameOrigin ?? false,
    rateLimitHeaders: row.rateLimitHeaders ?? false,
    idempotent: row.idempotent ?? false,
    mcp: row.mcp ?? null,
    built: row.built ?? true,
  };
}

function bodyBytesDefault({ auth }: OperationRow): number {
  return auth === 'none' ? limits.openBodyBytesMax : limits.queryBodyBytesMax;
}

export const operationNames = Object.keys(rows) as readonly OperationName[];

export const operations = Object.fromEntries(
  operationNames.map((name) => [name, complete(name, rows[name])]),
) as Readonly<Record<OperationName, Operation>>;

export const operationList: readonly Operation[] = operationNames.map((name) => operations[name]);

/** Whether a request with this method has a body to read. HEAD is a GET. */
export function takesBody(operation: Operation, method: string): boolean {
  return operation.request !== null && method !== 'GET' && method !== 'HEAD';
}

/** The schema of the query string of this method, or null where every parameter is unknown. */
export function querySchemaOf(operation: Operation, method: string): z.ZodObject | null {
  const isOther = operation.methods.length > 1 && method !== 'GET' && method !== 'HEAD';
  return isOther ? null : operation.query;
}
