/** Third part of the detail of an import's record, `[base sequence, written at, "import"]`, whose payload is no batch. */
export const importMark = 'import';

/** Whether the record of a namespace with this detail is an import's. */
export function isImport(detail: unknown): boolean {
  return (detail as readonly unknown[])[2] === importMark;
}
