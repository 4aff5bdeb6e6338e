import * as account from '../account.ts';
import { keyedProviders } from '../namespace.ts';
import { z } from '../validate.ts';
import { DELETE, GET, idNumber, type OperationRows, POST, PUT } from './operation-row.ts';

const provider = { provider: z.enum(keyedProviders) } as const;

/** Only keys and people that are admins without limits manage keys. */
const byAdmin = { tag: 'keys', scope: 'admin', authority: 'unlimited-admin' } as const;

/** What deleting a key, a connection or a stored key has in common: it ends at once. */
const ended = { ...byAdmin, methods: DELETE, success: 204, statuses: [401, 403, 404], answer: null } as const;

/** A tenant's API keys, and its keys of embedding providers. */
export const keyRows = {
  listKeys: {
    ...byAdmin,
    methods: GET,
    path: '/v1/keys',
    summary: "The tenant's live keys, newest first",
    effect: { does: 'read' },
    serves: 'tenant',
    needsFirst: 'usage-told',
    statuses: [401, 403],
    answer: account.keyListSchema,
  },
  createKey: {
    ...byAdmin,
    methods: POST,
    path: '/v1/keys',
    summary: 'Create a key; it is shown only in this answer',
    effect: { does: 'write', audits: 'key.created' },
    serves: 'tenant',
    needsFirst: 'caller-address',
    success: 201,
    statuses: [400, 401, 403, 409, 422],
    request: account.keyRequestSchema,
    answer: account.newKeySchema,
    idempotent: true,
  },
  revokeKey: {
    ...ended,
    path: '/v1/keys/{id}',
    summary: 'Revoke a key at once',
    effect: { does: 'write', audits: 'key.revoked' },
    serves: 'tenant',
    parameters: idNumber,
  },
  replaceKeyLimits: {
    ...byAdmin,
    methods: PUT,
    path: '/v1/keys/{id}/limits',
    summary: "Replace a key's limits",
    effect: { does: 'write', audits: 'key.limits-changed' },
    serves: 'tenant',
    needsFirst: 'usage-told',
    success: 204,
    statuses: [400, 401, 403, 404, 422],
    request: account.keyLimitsSchema,
    answer: null,
    parameters: idNumber,
  },
  listConnections: {
    ...byAdmin,
    methods: GET,
    path: '/v1/connections',
    summary: 'MCP clients that people of the tenant have let connect, newest first',
    effect: { does: 'read' },
    serves: 'front',
    statuses: [401, 403],
    answer: account.connectionListSchema,
  },
  endConnection: {
    ...ended,
    path: '/v1/connections/{id}',
    summary: 'End the connection of an MCP client at once',
    effect: { does: 'write', audits: 'connection.ended' },
    serves: 'front',
    parameters: idNumber,
  },
  listEmbeddingKeys: {
    ...byAdmin,
    methods: GET,
    path: '/v1/embedding-keys',
    summary: 'Stored keys of embedding providers, never the keys themselves',
    effect: { does: 'read' },
    serves: 'tenant',
    statuses: [401, 403],
    answer: account.embeddingKeyListSchema,
  },
  putEmbeddingKey: {
    ...byAdmin,
    methods: PUT,
    path: '/v1/embedding-keys/{provider}',
    summary: "Store a provider's key after trying it",
    effect: { does: 'write', audits: 'embedding-key.stored' },
    serves: 'tenant',
    statuses: [400, 401, 403, 404, 422, 429, 502],
    request: account.embeddingKeyRequestSchema,
    answer: account.embeddingKeySchema,
    parameters: provider,
  },
  deleteEmbeddingKey: {
    ...ended,
    path: '/v1/embedding-keys/{provider}',
    summary: "Forget a provider's key at once",
    effect: { does: 'write', audits: 'embedding-key.forgotten' },
    serves: 'tenant',
    parameters: provider,
  },
} as const satisfies OperationRows;
