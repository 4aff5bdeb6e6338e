import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { keptFolder } from './kept-folder.ts';

/**
 * Installs packages that we compare with and do not depend on, into a folder of their own below the temporary folder,
 * unless they are there from an earlier run. Resolves with the folder of its modules.
 */
export async function peerPackages(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(keptFolder('tidebase-peers'), name);
  const modules = join(folder, 'node_modules');
  const mark = join(folder, 'installed');
  const wanted = packages.join(' ');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return modules;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  const child = spawn('npm', ['install', '--no-save', ...packages], {
    cwd: folder,
    env: withoutOwnSettings(process.env),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  if (code !== 0) throw new Error(`npm could not install ${wanted}:\n${errors}`);
  // Written last: an install that was ended half way is begun again.
  writeFileSync(mark, wanted);
  return modules;
}

/**
 * The environment without what npm made of this repository's `.npmrc`. `npm run` hands those settings down as variables,
 * and a peer's install must not obey them: `strict-allow-scripts` fails it, since our `allowScripts` does not name the
 * peer's packages. What a person has set for npm, such as a registry, stays.
 */
export function withoutOwnSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = [...readFileSync('.npmrc', 'utf8').matchAll(/^\s*([\w-]+)\s*=/gm)].map(
    ([, name]) => `npm_config_${(name ?? '').replaceAll('-', '_')}`,
  );
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.includes(name.toLowerCase())));
}
