import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Random, randomHex } from '../base/random.ts';

/**
 * This server's name in the cluster view, kept in its data folder: so a restarted server finds its own previous log
 * and seals it at once, instead of waiting until its lease has run out.
 */
export async function loadServerId(dataDir: string, random: Random): Promise<string> {
  await mkdir(dataDir, { recursive: true });
  const file = join(dataDir, 'server-id');
  try {
    await writeFile(file, `${randomHex(random, 8)}\n`, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const id = (await readFile(file, 'utf8')).trim();
  // A crash may have left the file empty: a new name only costs the wait for the old lease.
  if (/^[0-9a-f]{16}$/.test(id)) return id;
  const made = randomHex(random, 8);
  await writeFile(file, `${made}\n`);
  return made;
}
