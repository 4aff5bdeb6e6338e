import * as searching from '../search.ts';
import { sqlAnswerSchema, sqlRequestSchema } from '../sql.ts';
import { inNamespace, type OperationRows, POST } from './operation-row.ts';

/** The fields that the rows of this file share, because each is a metered query of one namespace. */
const asQuery = {
  tag: 'search',
  scope: 'read',
  effect: { does: 'read', meters: 'query' },
  serves: 'namespace',
  statuses: [400, 401, 402, 403, 404, 413, 422, 429, 503],
  parameters: inNamespace,
  rateLimitHeaders: true,
} as const;

/** Finding and counting documents, SQL, and warming up. */
export const searchRows = {
  search: {
    ...asQuery,
    methods: ['POST', 'GET'],
    path: '/v1/namespaces/{name}/search',
    summary: 'Find documents by text, regex and filter, newest first',
    query: searching.searchQuerySchema,
    request: searching.searchRequestSchema,
    answer: searching.searchAnswerSchema,
    mcp: 'search',
  },
  count: {
    ...asQuery,
    methods: ['POST', 'GET'],
    path: '/v1/namespaces/{name}/count',
    summary: 'Count the matching documents exactly, with a sample of ids',
    query: searching.countQuerySchema,
    request: searching.countRequestSchema,
    answer: searching.countAnswerSchema,
    mcp: 'count',
  },
  sql: {
    ...asQuery,
    methods: POST,
    path: '/v1/namespaces/{name}/sql',
    summary: "Query documents' metadata with SQL",
    runsAs: 'sql',
    request: sqlRequestSchema,
    answer: sqlAnswerSchema,
    mcp: 'sql_query',
  },
  warm: {
    ...asQuery,
    methods: POST,
    path: '/v1/namespaces/{name}/warm',
    summary: 'Open a namespace and fetch what coming queries need',
    request: searching.warmRequestSchema,
    bodyRequired: false,
    answer: searching.warmAnswerSchema,
    mcp: 'warm_namespace',
  },
} as const satisfies OperationRows;
