import { createReadStream, statSync } from 'node:fs';
import { request } from 'node:http';
import type { MeasuredServer } from './measured-server.ts';

/** Sends a file as the body; the answer, or what was refused. */
export function importFile(
  server: MeasuredServer,
  path: string,
  file: string,
): Promise<{ readonly rows: number }> {
  const headers = { 'x-api-key': server.key, 'content-length': statSync(file).size };
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, server.process.url), { method: 'POST', headers }, async (answer) => {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      const text = Buffer.concat(parts).toString();
      if (answer.statusCode === 200) resolve(JSON.parse(text) as { rows: number });
      else reject(new Error(`${answer.statusCode} ${text}`));
    });
    sent.on('error', reject);
    createReadStream(file, { highWaterMark: 1024 * 1024 }).pipe(sent);
  });
}
