import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { LoopRequest } from './request-loop.ts';

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
export function requestsPerSecond({ url, key, script, seconds }: WrkTarget): Promise<number> {
  return rateOf(['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script], key, url);
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

/** Requests of any kind, each with its own key and headers, made before the run begins. Needs no `key` in the command. */
export function writeRequestScript(
  file: string,
  requests: readonly LoopRequest[],
  keys: readonly string[],
): void {
  const list = requests.map(({ client, method, path, body, headers }) => {
    const key = keys[client] ?? '';
    const sent = { ...headers, ...(key === '' ? {} : { Authorization: `Bearer ${key}` }) };
    const fields = Object.entries(sent).map(([name, value]) => `[ ${luaText(name)} ] = ${luaText(value)}`);
    const rest = body === undefined ? '' : `, ${luaText(body)}`;
    return `function() return wrk.format('${method}', ${luaText(path)}, {${fields.join(', ')}}${rest}) end`;
  });
  writeFileSync(
    file,
    `local made = {\n${list.join(',\n')}\n}
local requests = {}
local at = 0
init = function()
  for i, make in ipairs(made) do requests[i] = make() end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`,
  );
}

/** A long string of Lua, whose brackets are longer than any in the text; it drops a line feed at its beginning. */
function luaText(text: string): string {
  let marks = '=';
  while (text.includes(`]${marks}]`)) marks += '=';
  return `[${marks}[\n${text}]${marks}]`;
}

/** Answers a second of a script of `writeRequestScript`. As above, nothing but success counts. */
export function rateOfScript(target: {
  readonly url: string;
  readonly script: string;
  readonly seconds: number;
  readonly connections: number;
}): Promise<number> {
  const { url, script, seconds, connections: count } = target;
  return rateOf(['-t1', `-c${count}`, `-d${seconds}s`, '-s', script], '', url);
}

/** Answers a second of any status, one and the same request again and again. */
export async function answersPerSecond(
  { url, key, seconds }: Omit<WrkTarget, 'script'>,
  count: number,
): Promise<number> {
  const options = ['-t1', `-c${count}`, `-d${seconds}s`, '-H', `Authorization: Bearer ${key}`, url];
  const { stdout } = await run('wrk', options);
  const rate = /^Requests\/sec:\s+([\d.]+)$/m.exec(stdout)?.[1];
  if (rate === undefined || /Socket errors/.test(stdout)) throw new Error(`wrk: no answers\n${stdout}`);
  return Number(rate);
}

/** POSTs of these bodies in turn: answers a second. As above, nothing but success counts. */
export async function rateOfBodies(
  target: WrkTarget & {
    readonly bodies: readonly string[];
    readonly connections: number;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<number> {
  const { url, key, script, seconds, bodies, connections: count } = target;
  const headers = Object.entries(target.headers ?? {}).flatMap(([name, value]) => [
    '-H',
    `${name}: ${value}`,
  ]);
  const list = bodies.map((body) => `[==[${body}]==]`).join(',\n');
  writeFileSync(
    script,
    `local bodies = {\n${list}\n}
local requests = {}
local at = 0
init = function()
  for i, body in ipairs(bodies) do requests[i] = wrk.format('POST', nil, nil, body) end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`,
  );
  return rateOf(['-t1', `-c${count}`, `-d${seconds}s`, '-s', script, ...headers], key, url);
}

async function rateOf(options: readonly string[], key: string, url: string): Promise<number> {
  const credential = key === '' ? [] : ['-H', `Authorization: Bearer ${key}`];
  const { stdout } = await run('wrk', [...options, ...credential, url]);
  const rate = /^Requests\/sec:\s+([\d.]+)$/m.exec(stdout)?.[1];
  const bad = /Non-2xx|Socket errors/.test(stdout);
  if (rate === undefined || bad) throw new Error(`wrk: not every request was answered well\n${stdout}`);
  return Number(rate);
}
