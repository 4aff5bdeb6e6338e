import { parseQueryString } from '../../protocol/query-string.ts';
import { parseQueryWith } from '../../protocol/validate.ts';
import { type ImportFormat, importQuerySchema } from '../../protocol/write.ts';
import { wrongParameter } from './import-error.ts';

/** What a query string says of the file. Throws ApiError 422. */
export function importRequest(query: string): {
  readonly format: ImportFormat;
  readonly id: string | null;
  readonly text: readonly string[];
  readonly schema: string | null;
} {
  const asked = parseQueryWith(importQuerySchema, parseQueryString(query));
  const { format, id = null, schema = null } = asked;
  if (schema !== null && format !== 'csv')
    throw wrongParameter('schema', 'is for CSV files only: leave it out');
  const names = (asked.text ?? '').split(',').map((name) => name.trim());
  return { format, id, text: [...new Set(names)].filter((name) => name !== ''), schema };
}
