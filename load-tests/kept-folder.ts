import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The folder of what is got once and kept for later runs: corpora, packages of peers. It lies below the system's
 * temporary folder, and not below the one of a measurement, which ends with it (`run-command.ts`).
 */
export function keptFolder(name: string): string {
  return join(process.env.KEPT_FOLDER ?? tmpdir(), name);
}
