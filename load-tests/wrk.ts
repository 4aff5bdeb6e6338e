import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);

export function wrkIsInstalled(): boolean {
  return spawnSync('wrk', ['--version']).error === undefined;
}

export interface WrkTarget {
  readonly url: string;
  readonly key: string;
  /** A file of `writePathScript`. */
  readonly script: string;
  readonly seconds: number;
}

const connections = 64;

/** Requests a second. Rejects where one of the answers was not a success: a refusal is quick, and is no read. */
export async function requestsPerSecond({ url, key, script, seconds }: WrkTarget): Promise<number> {
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script];
  const { stdout } = await run('wrk', [...options, '-H', `Authorization: Bearer ${key}`, url]);
  const rate = /^Requests\/sec:\s+([\d.]+)$/m.exec(stdout)?.[1];
  const bad = /Non-2xx|Socket errors/.test(stdout);
  if (rate === undefined || bad) throw new Error(`wrk: not every request was answered well\n${stdout}`);
  return Number(rate);
}

/** Requests are made before the run begins, so that both sides pay the same next to nothing for asking different things. */
export function writePathScript(file: string, paths: readonly string[]): void {
  const list = paths.map((path) => `'${path}'`).join(',\n');
  writeFileSync(
    file,
    `local paths = {\n${list}\n}
local requests = {}
local at = 0
init = function()
  for i, path in ipairs(paths) do requests[i] = wrk.format('GET', path) end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`,
  );
}
