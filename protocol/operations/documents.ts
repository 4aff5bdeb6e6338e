import { documentIdSchema, documentQuerySchema, storedDocumentSchema } from '../document.ts';
import { limits } from '../limits.ts';
import * as write from '../write.ts';
import { GET, inNamespace, type OperationRows, PATCH, POST } from './operation-row.ts';

const inDocument = { ...inNamespace, id: documentIdSchema } as const;

const writeStatuses = [400, 401, 402, 403, 404, 409, 413, 422, 429, 502, 503, 507] as const;

/** Writing, reading, deleting and importing documents. */
export const documentRows = {
  putDocuments: {
    methods: POST,
    path: '/v1/namespaces/{name}/docs',
    tag: 'documents',
    summary: 'Put documents, delete others, together or not at all',
    description:
      'Deletes apply before puts. Makes the namespace where it is missing. Answers once stored in object storage.',
    scope: 'write',
    effect: { does: 'write', meters: 'write' },
    serves: 'namespace',
    changes: 'put',
    statuses: writeStatuses,
    request: write.putRequestSchema,
    answer: write.writeResultSchema,
    parameters: inNamespace,
    bodyBytesMax: limits.writeBodyBytesMax,
    rateLimitHeaders: true,
    mcp: 'write_documents',
  },
  patchDocuments: {
    methods: PATCH,
    path: '/v1/namespaces/{name}/docs',
    tag: 'documents',
    summary: 'Change documents that exist',
    scope: 'write',
    effect: { does: 'write', meters: 'write' },
    serves: 'namespace',
    changes: 'patch',
    statuses: writeStatuses,
    request: write.patchRequestSchema,
    answer: write.writeResultSchema,
    parameters: inNamespace,
    bodyBytesMax: limits.writeBodyBytesMax,
    rateLimitHeaders: true,
  },
  deleteDocuments: {
    methods: POST,
    path: '/v1/namespaces/{name}/delete',
    tag: 'documents',
    summary: 'Delete documents by id',
    scope: 'write',
    effect: { does: 'write', meters: 'write' },
    serves: 'namespace',
    changes: 'delete',
    statuses: [400, 401, 402, 403, 404, 409, 413, 422, 429, 503],
    request: write.deleteRequestSchema,
    answer: write.writeResultSchema,
    parameters: inNamespace,
    // 10,000 ids of 512 bytes are 5 MB, and each byte may be written as an escape of six.
    bodyBytesMax: limits.writeBodyBytesMax,
    rateLimitHeaders: true,
    mcp: 'delete_documents',
  },
  getDocument: {
    methods: GET,
    path: '/v1/namespaces/{name}/docs/{id}',
    tag: 'documents',
    summary: 'Read one document',
    description: 'The id is the rest of the path and may contain slashes. Counts as one query.',
    scope: 'read',
    effect: { does: 'read', meters: 'query' },
    serves: 'namespace',
    statuses: [400, 401, 402, 403, 404, 409, 422, 429, 503],
    query: documentQuerySchema,
    answer: storedDocumentSchema,
    parameters: inDocument,
    restParameter: 'id',
    rateLimitHeaders: true,
    mcp: 'get_document',
  },
  importDocuments: {
    methods: POST,
    path: '/v1/namespaces/{name}/import',
    tag: 'documents',
    summary: 'Import the rows of a CSV, NDJSON or Parquet file, all or none',
    scope: 'write',
    effect: { does: 'write', meters: 'write' },
    serves: 'namespace',
    statuses: [400, 401, 402, 403, 404, 409, 413, 422, 429, 503, 507],
    query: write.importQuerySchema,
    request: 'file',
    answer: write.importResultSchema,
    parameters: inNamespace,
    bodyBytesMax: limits.importBodyBytesMax,
    rateLimitHeaders: true,
  },
} as const satisfies OperationRows;
