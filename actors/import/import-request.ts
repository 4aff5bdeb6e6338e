import { invalidField } from '../../protocol/errors.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import { parseQueryWith } from '../../protocol/validate.ts';
import { type ImportFormat, importQuerySchema } from '../../protocol/write.ts';
import { wrongParameter } from './import-error.ts';

/** What an import's query says of its file. It may cross a thread. */
export interface ImportQuestion {
  readonly format: ImportFormat;
  /** The column with the ids; null: the row's number. */
  readonly id: string | null;
  readonly text: readonly string[];
  readonly schema: string | null;
  /** The column with the vectors; null: rows have none. */
  readonly vector: string | null;
  /** The columns that stay in the meta; null: all but those of `skip`. */
  readonly columns: readonly string[] | null;
  /** Columns that are left out of the meta; empty where `columns` says which ones stay. */
  readonly skip: readonly string[];
}

/** Reads the query string of an import. Throws ApiError 422. */
export function importRequest(query: string): ImportQuestion {
  const asked = parseQueryWith(importQuerySchema, parseQueryString(query));
  const { format, id = null, schema = null, vector = null, text = '', columns, skip = '' } = asked;
  if (schema !== null && format !== 'csv')
    throw wrongParameter('schema', 'is for CSV files only: leave it out');
  if (columns !== undefined && skip !== '')
    throw wrongParameter('skip', 'can\'t be sent beside "columns": send one of them');
  const question = {
    format,
    id,
    text: namesIn(text),
    schema,
    vector,
    columns: columns === undefined ? null : namesIn(columns),
    skip: namesIn(skip),
  };
  if (vector !== null && (vector === id || question.text.includes(vector)))
    throw wrongParameter('vector', 'must be a column of its own: name one that is neither the id nor a text');
  return question;
}

function namesIn(list: string): readonly string[] {
  const names = list.split(',').map((name) => name.trim());
  return [...new Set(names)].filter((name) => name !== '');
}

/** Refuses vectors for a namespace that has none. */
export function refuseVectors(): never {
  throw invalidField(
    'vector',
    'this namespace has no vectors: import into a new one, or make one with vector.dims',
  );
}
