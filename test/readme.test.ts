import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
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

describe('README', () => {
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
