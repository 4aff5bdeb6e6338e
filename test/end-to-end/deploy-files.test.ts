import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readSettings } from '../../src/settings.ts';
import { repositoryRoot } from '../support/repository.ts';
import { temporaryFolder } from '../support/server-process.ts';

const root = repositoryRoot();
const readText = (path: string) => readFileSync(join(root, path), 'utf8');
const dclint = join(root, 'node_modules/.bin/dclint');
const unit = join(root, 'deploy/tidebase.service');
const compose = join(root, 'deploy/compose.yml');
const machine = { cores: 2, memoryBytes: 8 * 2 ** 30, diskBytes: () => 100 * 2 ** 30 };
const secret = Buffer.alloc(32, 1).toString('base64');

/** Judges by the compose specification's schema: what it found wrong. */
function composeErrors(path: string): string {
  return spawnSync(dclint, ['--quiet', path], { encoding: 'utf8' }).stdout.trim();
}

/** How systemd judges the unit: its complaints, and the exposure from 0 to 10. */
function exposureOf(path: string): { readonly said: string; readonly exposure: number } {
  const verified = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
  const judged = spawnSync('systemd-analyze', ['security', '--offline=yes', path], { encoding: 'utf8' });
  const [, exposure = ''] = /exposure level for \S+: ([\d.]+)/.exec(judged.stdout) ?? [];
  return { said: `${verified.stdout}${verified.stderr}`.trim(), exposure: Number(exposure || Number.NaN) };
}

/** What a service of the compose file, or a Dockerfile, gives its process; `${NAME…}` is what a person fills in. */
function settingsIn(text: string, pattern: RegExp): Record<string, string> {
  const found = [...text.matchAll(pattern)].map(([, name = '', value = '']) => [name, value] as const);
  return Object.fromEntries(
    found.map(([name, value]) => [
      name,
      /_KEY$/.test(name) && name.startsWith('TIDEBASE_')
        ? secret
        : value.replace(/\$\{\w+:-(.*)\}/, '$1').replace(/\$\{.*\}/, 'filled-in'),
    ]),
  );
}

const noSystemd =
  spawnSync('systemd-analyze', ['--version']).error !== undefined && 'there is no systemd-analyze';
const noHaproxy = spawnSync('haproxy', ['-v']).error !== undefined && 'there is no haproxy';
const noDclint = !existsSync(dclint) && 'dclint is not installed: npm ci does it';

describe('what the server is deployed by', () => {
  it('is a compose file that keeps the specification', { skip: noDclint }, () => {
    const wrong = join(temporaryFolder(), 'compose.yml');
    writeFileSync(wrong, readText('deploy/compose.yml').replace('read_only:', 'readonly:'));

    assert.equal(composeErrors(compose), '');
    assert.match(composeErrors(wrong), /invalid-schema/);
  });

  it('has a load balancer that knows all servers', { skip: noHaproxy }, () => {
    const folder = temporaryFolder();
    const wrong = join(folder, 'haproxy.cfg');
    writeFileSync(wrong, readText('deploy/haproxy.cfg').replace('balance leastconn', 'balance leastcon'));
    const service = /^ {2}balancer:\n((?: {4}.*\n)+)/m.exec(readText('deploy/compose.yml'))?.[1] ?? '';
    const given = [...service.matchAll(/^ {6}(TIDEBASE_\w+): (\S+)$/gm)].map(([, name, value]) => [
      name,
      value,
    ]);
    // Names of other containers lead nowhere here.
    const env = Object.fromEntries(
      given.map(([name, value = '']) => [name, value.replace(/^tidebase-\d/, '127.0.0.1')]),
    );
    const judge = (file: string) =>
      spawnSync('haproxy', ['-c', '-q', '-f', file], { encoding: 'utf8', env: { ...process.env, ...env } });

    const judged = judge(join(root, 'deploy/haproxy.cfg'));
    assert.deepEqual([judged.status, judged.stderr], [0, '']);
    assert.equal(judge(wrong).status, 1);
    const asked = [...readText('deploy/haproxy.cfg').matchAll(/"\$\{(\w+)\}"/g)].map(([, name]) => name);
    assert.deepEqual(Object.keys(env).toSorted(), asked.toSorted());
  });

  it('is a unit that systemd understands and finds little exposed', { skip: noSystemd }, () => {
    const { said, exposure } = exposureOf(unit);

    // The program's own path is another on each machine.
    assert.equal(said.replace(/^.*Command \S+ is not executable.*$/gm, '').trim(), '');
    assert.ok(exposure <= 2, `exposure ${exposure}`);
  });

  it('sets what the server knows', () => {
    const file = readText('deploy/compose.yml');
    const shared = /^x-settings:.*\n((?: {2}.*\n)+)/m.exec(file)?.[1] ?? '';
    const own = /^ {2}tidebase-1:\n((?: {4}.*\n)+)/m.exec(file)?.[1] ?? '';
    const service = `${shared}${own}`;
    const given = settingsIn(service, /^ +([A-Z][A-Z0-9_]+): (.+)$/gm);
    const [, image = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(readText('deploy/Dockerfile')) ?? [];
    const built = settingsIn(image, /([A-Z][A-Z0-9_]+)=(\S+)/g);

    const settings = readSettings({ ...built, ...given }, machine);

    assert.equal(settings.objectStore, 's3');
    assert.deepEqual([settings.host, settings.port, settings.metricsPort], ['0.0.0.0', 8080, 9464]);
    assert.deepEqual([settings.peers?.port, settings.peers?.address], [7400, 'tidebase-1:7400']);
    for (const server of [1, 2, 3])
      assert.match(readText('deploy/prometheus/prometheus.yml'), new RegExp(`tidebase-${server}:9464`));
    const asked = [...service.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => name);
    for (const name of asked) assert.match(readText('deploy/env.example'), new RegExp(`^${name}=`, 'm'));
  });
});
