import { type ColumnParameter, quoted, wrongParameter } from './import-error.ts';
import type { ImportQuestion } from './import-request.ts';

/** What the columns of a file are for, each by its place in the file. */
export interface ChosenFields {
  /** The column with the ids; null: the row's number. */
  readonly id: number | null;
  readonly text: readonly number[];
  readonly vector: number | null;
  /** Columns that a row's meta has, in the order of the file. */
  readonly meta: readonly number[];
  /** Places among `meta` of the columns that are a row's text, and not its id: a long row's meta may leave them out. */
  readonly metaText: readonly number[];
}

/** Says what columns of these names are for. Throws ApiError 422 where the query names one that is not there. */
export function chooseFields(
  names: readonly string[],
  question: Pick<ImportQuestion, 'id' | 'text' | 'vector' | 'columns' | 'skip'>,
): ChosenFields {
  const fieldOf = (name: string, parameter: ColumnParameter) => placeOf(names, name, parameter);
  const { columns, skip } = question;
  const id = question.id === null ? null : fieldOf(question.id, 'id');
  const text = question.text.map((name) => fieldOf(name, 'text'));
  const vector = question.vector === null ? null : fieldOf(question.vector, 'vector');
  const kept = columns === null ? null : new Set(columns.map((name) => fieldOf(name, 'columns')));
  const left = new Set(skip.map((name) => fieldOf(name, 'skip')));
  const meta = names
    .map((_, field) => field)
    .filter((field) => field !== vector && !left.has(field) && (kept?.has(field) ?? true));
  const metaText = text
    .filter((field) => field !== id)
    .map((field) => meta.indexOf(field))
    .filter((place) => place >= 0);
  return { id, text, vector, meta, metaText };
}

function placeOf(names: readonly string[], name: string, parameter: ColumnParameter): number {
  const field = names.indexOf(name);
  if (field >= 0) return field;
  const known = names.slice(0, 20).map(quoted).join(', ');
  throw wrongParameter(
    parameter,
    `there is no column ${quoted(name)}; columns are ${known}${names.length > 20 ? ', …' : ''}`,
  );
}
