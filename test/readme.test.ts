import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ApiClient } from './support/api-client.ts';
import { eventually } from './support/eventually.ts';
import { freePorts } from './support/free-ports.ts';
import { repositoryRoot } from './support/repository.ts';
import { startServer, temporaryFolder } from './support/server-process.ts';

/** A block of commands under `<!-- tested -->`, and the block after it that shows the last lines that they print. */
interface Example {
  readonly commands: string;
  /** `…` stands for anything. */
  readonly shown: string | null;
}

const root = repositoryRoot();
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const mainFile = fileURLToPath(new URL('../src/main.js', import.meta.url));
const programs = ['bash', 'curl', 'sed'].filter((name) => spawnSync(name, ['--version']).error !== undefined);
const skip = programs.length > 0 && `README's commands need ${programs.join(' and ')}`;

function examplesOf(text: string): Example[] {
  const blocks = text.matchAll(/^<!-- tested -->\n```sh\n([\s\S]*?)^```\n(?:```\n([\s\S]*?)^```\n)?/gm);
  return [...blocks].map(([, commands = '', shown]) => ({ commands, shown: shown?.trim() ?? null }));
}

function pattern(shown: string): RegExp {
  const parts = shown.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`);
}

/** All examples in one shell, as somebody pastes them: what each printed. */
function paste(examples: readonly Example[], url: string): Promise<string[]> {
  const mark = '----- next example -----';
  const script = examples.map(({ commands }) => `${commands}\necho; echo '${mark}'\n`).join('');
  const options = { cwd: root, env: { PATH: process.env.PATH, TIDEBASE_URL: url }, timeout: 60_000 };
  return new Promise((resolve, reject) => {
    const here = script.replaceAll('node dist/src/main.js', `'${process.execPath}' '${mainFile}'`);
    execFile('bash', ['-euo', 'pipefail', '-c', here], options, (error, output, errors) => {
      if (error === null) resolve(output.split(mark).map((part) => part.trim()));
      else reject(new Error(`README's commands failed: ${error.message}\n${output}\n${errors}`));
    });
  });
}

/** The commands that start several servers, with other ports and another folder than a person's. */
function severalServers(): { readonly commands: string; readonly count: number } {
  const [, commands] = /^```sh\n(export TIDEBASE_BASE_URL[\s\S]*?)^```\n/m.exec(readme) ?? [];
  if (commands === undefined) throw new Error('README.md has no commands that start several servers');
  return { commands, count: 3 };
}

describe('README', () => {
  it('has three lines that start three servers, each of which answers for all', { skip }, async (t) => {
    const { commands, count } = severalServers();
    const folder = temporaryFolder();
    const ports = await freePorts(2 * count);
    // The lines number ports from one on.
    const listed = (all: readonly number[]) => `$(echo ${all.join(' ')} | cut -d' ' -f$n)`;
    const here = commands
      .replace('808$n', listed(ports.slice(0, count)))
      .replace('748$n', listed(ports.slice(count)))
      .replaceAll('data/three', join(folder, 'three'))
      .replace('node dist/src/main.js', `'${process.execPath}' '${mainFile}'`);
    assert.doesNotMatch(here, /808.n|748.n/);
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', `${here}\nwait`], {
      detached: true,
      stdio: 'ignore',
      env: { PATH: process.env.PATH },
    });
    const ended = new Promise((resolve) => shell.once('close', resolve));
    t.after(async () => {
      process.kill(-(shell.pid ?? 0), 'SIGTERM');
      await ended;
    });
    const urls = ports.slice(0, count).map((port) => `http://127.0.0.1:${port}`);
    for (const url of urls)
      await eventually(
        () =>
          fetch(`${url}/healthz`).then(
            ({ ok }) => ok,
            () => false,
          ),
        `${url} is healthy`,
        100,
      );

    const [first = '', ...others] = urls;
    const { key } = await new ApiClient(first).signup('ada@example.com');
    await new ApiClient(first, key).put('notes', [{ id: 'noon', text: 'The tide turns at noon.' }]);
    for (const url of others)
      assert.equal((await new ApiClient(url, key).get('notes', 'noon')).text, 'The tide turns at noon.');
  });

  it('has commands that work when they are pasted', { skip }, async (t) => {
    const examples = examplesOf(readme);
    const server = await startServer({ folder: temporaryFolder(), plans: 'built-in' });
    t.after(() => server.stop());

    const printed = await paste(examples, server.url);

    assert.ok(examples.length >= 4);
    examples.forEach(({ shown }, i) => {
      if (shown === null) return;
      const last = printed[i]?.split('\n').slice(-shown.split('\n').length) ?? [];
      assert.match(last.join('\n'), pattern(shown));
    });
  });
});
