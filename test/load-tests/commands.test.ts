import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { listOf } from '../../load-tests/command-line.ts';
import { measurements, proofs } from '../../load-tests/commands.ts';
import { scenarios } from '../../load-tests/load/scenarios.ts';
import { withoutOwnSettings } from '../../load-tests/peer-packages.ts';

const child = fileURLToPath(new URL('../support/run-command-child.js', import.meta.url));

/** Starts a process that leaves its group and would live for ever, tells where it is, and goes on as `then` says. */
const program = (then: string) => `
  const { spawn } = require('node:child_process');
  const daemon = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  daemon.unref();
  process.stdout.write(JSON.stringify({ id: daemon.pid, folder: require('node:os').tmpdir() }) + '\\n');
  ${then}`;
const waits = 'setInterval(() => {}, 1_000);';

interface Started {
  readonly run: ChildProcess;
  /** The process that left the group. */
  readonly id: number;
  /** The run's temporary folder. */
  readonly folder: string;
}

async function start(then: string): Promise<Started> {
  const run = spawn(process.execPath, [child, program(then)], { stdio: ['ignore', 'pipe', 'ignore'] });
  for await (const line of createInterface({ input: run.stdout })) return { run, ...JSON.parse(line) };
  throw new Error('the program said nothing');
}

const isLiving = (id: number) => existsSync(`/proc/${id}/cwd`);

/** A process that was killed goes at once, the guard of one that was killed looks a moment later. */
async function assertGone({ id, folder }: Started): Promise<void> {
  const deadline = performance.now() + 20_000;
  while ((isLiving(id) || existsSync(folder)) && performance.now() < deadline)
    await new Promise((wake) => setTimeout(wake, 20));
  assert.ok(!isLiving(id), `process ${id} lives`);
  assert.ok(!existsSync(folder), `${folder} is there`);
}

describe('a measurement ends what it started', () => {
  for (const [what, then, code] of [
    ['ends well', '', 0],
    ['ends with a code of its own', 'process.exitCode = 3;', 3],
    ['crashes', "process.kill(process.pid, 'SIGSEGV');", 139],
  ] as const) {
    it(`when it ${what}`, async () => {
      const started = await start(then);

      const [ended] = (await once(started.run, 'exit')) as [number | null];

      assert.equal(ended, code);
      assert.ok(!isLiving(started.id), 'what it started lives');
      assert.ok(!existsSync(started.folder), 'its folder is there');
    });
  }

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    it(`when it gets ${signal}`, async () => {
      const started = await start(waits);

      started.run.kill(signal);

      assert.deepEqual(await once(started.run, 'exit'), [code, null]);
      await assertGone(started);
    });
  }

  it('when it is killed', async () => {
    const started = await start(waits);

    started.run.kill('SIGKILL');

    await assertGone(started);
  });
});

describe('the list of commands', () => {
  const all = [...measurements, ...proofs];

  it('names each once, with a line, and files that are there', () => {
    assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
    for (const { name, about, steps } of all) {
      assert.ok(about.length > 10, name);
      for (const { program } of steps)
        for (const file of program.filter((word) => word.endsWith('.js')))
          assert.ok(existsSync(file.replace(/^dist\/(.*)\.js$/, '$1.ts')), `${name}: ${file} is not there`);
    }
    assert.equal(listOf(all).length, all.length);
  });

  it('is what load-tests/README.md tells, and nothing that is gone', () => {
    const told = readFileSync('load-tests/README.md', 'utf8');

    for (const [script, commands] of [
      ['measure', measurements],
      ['prove', proofs],
    ] as const) {
      for (const { name } of commands)
        assert.match(told, new RegExp(`\`(?:npm run ${script} -- )?${name}\``), `README: ${name}`);
      const named = [...told.matchAll(new RegExp(`npm run ${script} -- ([a-z][\\w-]*)`, 'g'))];
      assert.ok(named.length > 0);
      for (const [, name] of named)
        assert.ok(
          commands.some((each) => each.name === name),
          name,
        );
    }
  });

  it('is printed by `npm run load` without a name, and with one that it does not know', () => {
    const file = fileURLToPath(new URL('../../load-tests/load.js', import.meta.url));
    const run = (...words: string[]) =>
      execFileSync(process.execPath, [file, ...words], { encoding: 'utf8' });

    assert.match(run(), /^npm run load -- NAME/);
    assert.throws(() => run('nothing-such'), { status: 2 });
  });

  it('tells every scenario of load, each under a name of its own', () => {
    const told = readFileSync('load-tests/README.md', 'utf8');

    assert.equal(new Set(scenarios.map(({ name }) => name)).size, scenarios.length);
    for (const { name, about } of scenarios) {
      assert.match(told, new RegExp(`\`${name}\``), `README: ${name}`);
      assert.match(name, /^[a-z][a-z-]+$/);
      assert.ok(about.length > 20, name);
    }
  });

  for (const script of ['measure', 'prove']) {
    it(`is printed by \`npm run ${script}\` without a name, and with one that it does not know`, () => {
      const file = fileURLToPath(new URL(`../../load-tests/${script}.js`, import.meta.url));
      const run = (...words: string[]) =>
        execFileSync(process.execPath, [file, ...words], { encoding: 'utf8' });

      assert.match(run(), new RegExp(`^npm run ${script} -- NAME`));
      assert.throws(() => run('nothing-such'), { status: 2 });
    });
  }
});

describe('the install of a peer', () => {
  it("does not inherit this repository's settings of npm, and keeps a person's", () => {
    const env = {
      npm_config_strict_allow_scripts: 'true',
      npm_config_fund: '',
      npm_config_audit: '',
      npm_config_registry: 'http://127.0.0.1:1/',
      HOME: '/nobody',
    };

    assert.deepEqual(withoutOwnSettings(env), {
      npm_config_registry: 'http://127.0.0.1:1/',
      HOME: '/nobody',
    });
  });
});
