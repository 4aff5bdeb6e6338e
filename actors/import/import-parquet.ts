import { ApiError } from '../../protocol/errors.ts';
import type { ImportedRows, ImportRequest } from './import-csv.ts';
import type { RowSink } from './row-writer.ts';

export async function importParquet(_request: ImportRequest, _sink: RowSink): Promise<ImportedRows> {
  throw new ApiError('not_implemented', 'Parquet files are not imported yet');
}
