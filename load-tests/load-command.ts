import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const mainFile = fileURLToPath(new URL('../src/main.js', import.meta.url));

export interface LoadRun {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** `tidebase load`, as a person runs it; `through` is a program, with its arguments, that starts it. */
export async function runLoad(
  args: readonly string[],
  server: { readonly url: string; readonly key: string },
  through: readonly string[] = [],
): Promise<LoadRun> {
  const env = { ...process.env, TIDEBASE_URL: server.url, TIDEBASE_API_KEY: server.key };
  const [program = process.execPath, ...rest] = [...through, process.execPath, mainFile, 'load', ...args];
  const child = spawn(program, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output, errors };
}
