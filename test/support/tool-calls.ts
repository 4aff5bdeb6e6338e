/** A right call of each tool, in an order that works: from a namespace that is not there to its end. */
const namespace = 'notes';

export const rightCalls: readonly (readonly [name: string, args: Readonly<Record<string, unknown>>])[] = [
  ['create_namespace', { name: namespace, dims: 2 }],
  ['list_namespaces', { limit: 5 }],
  [
    'write_documents',
    { namespace, docs: [{ id: 'a', text: 'low tide\nat dusk', meta: { n: 1 }, vector: [1, 0] }], wait: true },
  ],
  [
    'search',
    { namespace, query: 'tide', filter: { n: { gte: 1 } }, context: 1, include: ['text', 'matches'] },
  ],
  ['search', { namespace, vector: [1, 0], limit: 1 }],
  ['count', { namespace, query: 'tide' }],
  ['get_document', { namespace, id: 'a', lines: '1-2' }],
  ['sql_query', { namespace, sql: 'SELECT n, COUNT(*) FROM docs GROUP BY n' }],
  ['warm_namespace', { namespace, queries: ['tide'] }],
  ['delete_documents', { namespace, ids: ['a'] }],
  ['update_namespace', { name: namespace }],
  ['delete_namespace', { name: namespace }],
];
