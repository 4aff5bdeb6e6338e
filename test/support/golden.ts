import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes that were once written and must be readable for ever. `UPDATE_GOLDEN=1` writes what the code makes now. */
export function goldenBytes(name: string, made: Uint8Array): Buffer {
  const file = join(process.cwd(), 'test/golden', name);
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, made);
  return readFileSync(file);
}
