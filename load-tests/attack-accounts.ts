import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from './judge.ts';
import { Connections } from './measured-server.ts';
import type { RunningServer } from './server.ts';

/** Somebody who signed up, and a key for each of their tenants: the first is the account's own. */
export interface Account {
  readonly email: string;
  readonly keys: readonly string[];
}

const password = 'low water at noon';
const letterMsMax = 10_000;

/** Signs up with so many tenants. The address stays unverified. */
export async function signUp(server: RunningServer, name: string, tenants = 1): Promise<Account> {
  const client = new Connections(server.url, '', 1);
  const email = `${name}@example.com`;
  const asked = async (path: string, body: object, key = '', more = {}): Promise<Record<string, unknown>> => {
    const { status, text } = await client.send('POST', path, Buffer.from(JSON.stringify(body)), key, more);
    if (status >= 300) throw new Error(`POST ${path}: ${status} ${text}`);
    return JSON.parse(text);
  };
  const keys = [String((await asked('/v1/signup', { email, name, password })).key)];
  if (tenants > 1) {
    const token = String((await asked('/v1/login', { email, password })).token);
    for (let i = 1; i < tenants; i++) {
      const { id } = await asked('/v1/tenants', { name: `${name}-${i}` }, token);
      const made = await asked('/v1/keys', { name: 'attack', scope: 'admin' }, token, {
        'x-tenant': String(id),
      });
      keys.push(String(made.key));
    }
  }
  client.close();
  return { email, keys };
}

/** Follows the link of the mail, which is a file where no mail server is set. */
export async function verifyAddress(server: RunningServer, { email }: Account): Promise<void> {
  const client = new Connections(server.url, '', 1);
  const token = await mailedToken(join(server.folder, 'outbox'), email);
  await client.post('/v1/email/verify', Buffer.from(JSON.stringify({ token })));
  client.close();
}

async function mailedToken(box: string, email: string): Promise<string> {
  for (const until = performance.now() + letterMsMax; performance.now() < until; await sleep(50)) {
    for (const name of namesIn(box)) {
      if (!name.endsWith('-verify.txt')) continue;
      const text = readFileSync(join(box, name), 'utf8');
      if (!text.includes(`<${email}>`)) continue;
      const token = /\?token=([0-9a-f]+)/.exec(text)?.[1];
      if (token !== undefined) return token;
    }
  }
  throw new Error(`no mail for ${email} is in ${box}`);
}

/** None where the first mail has not made the folder yet. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
