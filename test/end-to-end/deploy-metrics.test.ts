import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { type ClusterServer, ServerCluster } from '../support/cluster.ts';
import { type ReadFamily, readExposition } from '../support/exposition.ts';
import { promtool, promtoolMissing } from '../support/promtool.ts';
import { connectRaw } from '../support/raw-http.ts';
import { repositoryRoot } from '../support/repository.ts';
import { temporaryFolder } from '../support/server-process.ts';

const root = repositoryRoot();
const readText = (path: string) => readFileSync(join(root, path), 'utf8');
const rulesPath = 'deploy/prometheus/tidebase.rules.yml';
const rules = readText(rulesPath);
const dashboard = JSON.parse(readText('deploy/grafana/tidebase.json')) as {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
};

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

/** The dashboard's queries, with what Grafana fills in. */
const queries = [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.annotations.list.map(({ expr }) => expr),
].map((expr) => expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$\w+/g, '.*'));

/** What Prometheus adds to every sample. */
const addedLabels = ['job', 'instance'];

/** Names of metrics in queries that no family has, and labels that a family's samples don't have. */
function unknownNames(text: string, families: ReadonlyMap<string, ReadFamily>): string[] {
  const samples = [...families.values()].flatMap((family) => family.samples);
  const used = text.matchAll(/\b((?:tidebase|process|nodejs)_\w+)(?:\{([^}]*)\})?/g);
  return [...used].flatMap(([, name = '', matchers = '']) => {
    const found = samples.filter((sample) => sample.name === name);
    if (found.length === 0) return [name];
    const labels = [...matchers.matchAll(/(\w+)(?==~?"|!)/g)].map(([, label = '']) => label);
    return labels
      .filter((label) => !addedLabels.includes(label) && !found.some((sample) => label in sample.labels))
      .map((label) => `${name}{${label}}`);
  });
}

describe('what an operator watches', () => {
  let families: ReadonlyMap<string, ReadFamily>;

  before(async () => {
    // One of several, as far as it can tell, has the metrics of one that is alone, and those of a cluster.
    const cluster = await ServerCluster.start({ servers: 1 });
    const [{ process: server, metricsUrl }] = cluster.servers as readonly [ClusterServer];
    const anyone = new ApiClient(server.url);
    const { key } = await anyone.signup('watched@example.com');
    const api = anyone.as(key);
    await api.put('watched', [{ id: 'a', text: 'the tide' }]);
    await api.search('watched', { q: 'tide' });
    // Broken HTTP: the server answers by itself.
    const broken = await connectRaw(server.port);
    broken.send('GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n');
    await broken.waitForAnswers(1);
    broken.destroy();
    families = readExposition(await (await fetch(`${metricsUrl}/metrics`)).text());
    anyone.close();
    await cluster.stop();
  });

  it('names metrics and labels that a server has', () => {
    assert.deepEqual(unknownNames(rules, families), [], rulesPath);
    assert.deepEqual(unknownNames(queries.join('\n'), families), [], 'the dashboard');
    assert.deepEqual(unknownNames('tidebase_nothing + tidebase_thread_up{lane="a"}', families), [
      'tidebase_nothing',
      'tidebase_thread_up{lane}',
    ]);
  });

  it('has alerts that fire when they should, and not when all is well', { skip: promtoolMissing }, () => {
    const checked = promtool(['check', 'config', join(root, 'deploy/prometheus/prometheus.yml')]);
    assert.equal(checked.status, 0, checked.said);
    const tested = promtool(['test', 'rules', join(root, 'deploy/prometheus/tidebase.rules.test.yml')]);
    assert.equal(tested.status, 0, tested.said);
  });

  it('has a test and a paragraph of the runbook for each alert', () => {
    const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
    const fired = readText('deploy/prometheus/tidebase.rules.test.yml').matchAll(
      /alertname: (\w+)\n +exp_alerts:\n/g,
    );
    const told = readText('deploy/README.md').matchAll(/^\*\*(Tidebase\w+)\*\*/gm);

    assert.ok(alerts.length > 10);
    assert.deepEqual([...fired].map(([, name]) => name).toSorted(), alerts.toSorted());
    assert.deepEqual([...told].map(([, name]) => name).toSorted(), alerts.toSorted());
  });

  it('has a dashboard whose queries Prometheus understands', { skip: promtoolMissing }, () => {
    const file = join(temporaryFolder(), 'queries.yml');
    const recorded = (expr: string, at: number) => ({ record: `query:${at}`, expr });
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: queries.map(recorded) }] }));

    const told = promtool(['check', 'rules', file]);

    assert.ok(queries.length > 40);
    assert.equal(told.status, 0, told.said);
  });

  it('has a dashboard whose panels say what they show and lie beside each other', () => {
    const { panels } = dashboard;
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );

    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    assert.equal(new Set(cells).size, cells.length, 'two panels lie on one another');
    for (const { type, title, description = '' } of panels)
      assert.ok(type === 'row' || description.length > 15, title);
  });
});
