import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { IStatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import type { IConfigMap } from 'kubernetes-models/v1/ConfigMap';
import type { IProbe } from 'kubernetes-models/v1/Probe';
import type { ISecret } from 'kubernetes-models/v1/Secret';
import type { IService } from 'kubernetes-models/v1/Service';
import { limits } from '../../protocol/limits.ts';
import { readSettings } from '../../src/settings.ts';
import { problemsOfObjects } from '../support/kubernetes-schemas.ts';
import { type Manifest, renderKustomization } from '../support/kustomize.ts';
import { repositoryRoot } from '../support/repository.ts';

const root = repositoryRoot();
const readText = (path: string) => readFileSync(join(root, path), 'utf8');
const machine = { cores: 64, memoryBytes: 256 * 2 ** 30, diskBytes: () => 2 ** 40 };
const key = Buffer.alloc(32, 1).toString('base64');

/** The example of the secrets as a person fills it in. */
const secretsFile = readText('deploy/kubernetes/secrets.env.example')
  .replace(/^(TIDEBASE_\w+_KEY)=$/gm, `$1=${key}`)
  .replace(/^(S3_\w+)=$/gm, '$1=filled-in')
  .replace(/^SMTP_URL=$/m, 'SMTP_URL=smtp://mail.example.com:587');

/** The objects of the folder, where `change` may spoil what a file says. */
function render(change: (text: string, file: string) => string = (text) => text): Manifest[] {
  return renderKustomization((file) =>
    change(file === 'secrets.env' ? secretsFile : readText(`deploy/kubernetes/${file}`), file),
  );
}

function only<T>(objects: readonly Manifest[], kind: string): T {
  const found = objects.filter((object) => object.kind === kind);
  assert.equal(found.length, 1, `objects of the kind ${kind}`);
  return found[0] as T;
}

function podOf(objects: readonly Manifest[]) {
  const { spec } = only<IStatefulSet>(objects, 'StatefulSet');
  const { metadata, spec: pod } = spec?.template ?? {};
  const [container, ...others] = pod?.containers ?? [];
  assert.ok(spec && pod && container && others.length === 0, 'one container');
  return { spec, pod, container, labels: metadata?.labels ?? {} };
}

const fits = (selector: Record<string, string> | undefined, labels: Record<string, string>) =>
  selector !== undefined && Object.entries(selector).every(([name, value]) => labels[name] === value);

/** Names that lead nowhere, as sentences. */
function brokenNames(objects: readonly Manifest[]): string[] {
  const { spec, pod, container, labels } = podOf(objects);
  const ports = new Map(container.ports?.map(({ name, containerPort }) => [name, containerPort]));
  const services = objects.filter(({ kind }) => kind === 'Service') as unknown as IService[];
  const { spec: policy } = only<INetworkPolicy>(objects, 'NetworkPolicy');
  const claims = new Set(spec.volumeClaimTemplates?.map(({ metadata }) => metadata?.name));
  const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
  const asked = [
    ...services.flatMap(({ spec: service }) => service?.ports?.map(({ targetPort }) => targetPort)),
    ...(policy?.ingress ?? []).flatMap((rule) => rule.ports?.map(({ port }) => port)),
    ...probes.map((probe) => probe?.httpGet?.port),
  ];
  const generated = (container.envFrom ?? []).map(({ configMapRef, secretRef }) =>
    configMapRef === undefined ? `Secret ${secretRef?.name}` : `ConfigMap ${configMapRef.name}`,
  );
  const there = new Set(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
  const governing = services.find(({ metadata }) => metadata?.name === spec.serviceName);
  return [
    ...(fits(spec.selector.matchLabels, labels) ? [] : ['the StatefulSet does not select its pods']),
    ...(fits(policy?.podSelector?.matchLabels, labels) ? [] : ['the policy does not select the pods']),
    ...services
      .filter(({ spec: service }) => !fits(service?.selector, labels))
      .map(({ metadata }) => `Service ${metadata?.name} does not select the pods`),
    ...(governing?.spec?.clusterIP === 'None' ? [] : [`${spec.serviceName} is no headless Service`]),
    ...asked.filter((name) => !ports.has(String(name))).map((name) => `no port is named ${name}`),
    ...generated.filter((name) => !there.has(name)).map((name) => `there is no ${name}`),
    ...(container.volumeMounts ?? [])
      .filter(({ name }) => !claims.has(name) && !pod.volumes?.some((volume) => volume.name === name))
      .map(({ name }) => `no volume is named ${name}`),
  ];
}

/** What the server's process finds in its environment: the image's settings, and over them those of the two generated objects. */
function environmentOf(objects: readonly Manifest[]): Record<string, string> {
  const [, image = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(readText('deploy/Dockerfile')) ?? [];
  const built = [...image.matchAll(/([A-Z][A-Z0-9_]+)=(\S+)/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  const secrets = Object.entries(only<ISecret>(objects, 'Secret').data ?? {}).map(([name, value]) => [
    name,
    Buffer.from(value, 'base64').toString(),
  ]);
  return {
    ...Object.fromEntries(built),
    ...only<IConfigMap>(objects, 'ConfigMap').data,
    ...Object.fromEntries(secrets),
    ...Object.fromEntries(
      podOf(objects).container.env?.map(({ name, value }) => [name, ofFirstPod(value)]) ?? [],
    ),
  };
}

/** Answers a value of the pod's variables as it is in the first pod. */
const ofFirstPod = (value = 'tidebase-0') => value.replace('$(POD_NAME)', 'tidebase-0');

/** Names of the environment that the server never reads. */
function unreadNames(environment: Record<string, string>): string[] {
  const read = new Set<string>();
  const watched = new Proxy<Record<string, string>>(
    {},
    {
      get: (_, name) => {
        read.add(String(name));
        return environment[String(name)];
      },
    },
  );
  readSettings(watched, machine);
  return Object.keys(environment).filter((name) => !read.has(name) && !namesOfOthers.has(name));
}

/** Names that the server never reads: Node reads one, and other variables are made of the other. */
const namesOfOthers = new Set(['NODE_ENV', 'POD_NAME']);

const units: Readonly<Record<string, number>> = { Mi: 2 ** 20, Gi: 2 ** 30, '': 1 };
function bytesOf(quantity: string | number | undefined): number {
  const [, digits = '', unit = ''] = /^(\d+)(Mi|Gi|)$/.exec(String(quantity)) ?? [];
  return Number(digits || Number.NaN) * (units[unit] ?? Number.NaN);
}

/** How long a probe waits until it acts. */
const msOf = ({ periodSeconds = 10, failureThreshold = 3 }: IProbe = {}) =>
  periodSeconds * failureThreshold * 1_000;

describe('what Kubernetes is given', () => {
  it("is as Kubernetes' schemas describe it, and what is not is refused", () => {
    const objects = render();
    const misspelt = render((text) => text.replace('readOnlyRootFilesystem:', 'readOnlyRootFileSystem:'));
    const mistyped = render((text) => text.replace('replicas: 3', 'replicas: one'));
    const unknown = render((text) => text.replace('clusterIP: None', 'clusterIp: None'));
    const unnamed = render((text) => text.replace('- name: tidebase\n          image', '- image'));
    const spoilt = [misspelt, mistyped, unknown, unnamed];

    const problems = problemsOfObjects([...objects, ...spoilt.flat()]);

    assert.deepEqual(objects.map(({ kind }) => kind).toSorted(), [
      'ConfigMap',
      'HorizontalPodAutoscaler',
      'Namespace',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Secret',
      'Service',
      'Service',
      'StatefulSet',
    ]);
    assert.deepEqual(problems.slice(0, objects.length).flat(), []);
    const of = (turn: number) =>
      problems
        .slice((turn + 1) * objects.length, (turn + 2) * objects.length)
        .flat()
        .join('\n');
    assert.match(of(0), /readOnlyRootFileSystem\W+does not exist/);
    assert.match(of(1), /data\/spec\/replicas must be integer/);
    assert.match(of(2), /clusterIp\W+does not exist/);
    assert.match(of(3), /containers\/0 must have required property name/);
  });

  it('has no name that leads nowhere', () => {
    const wrongLabel = render((text, file) =>
      file === 'services.yaml' ? text.replaceAll('/name: tidebase\n  ports', '/name: tide\n  ports') : text,
    );
    const wrongPort = render((text, file) =>
      file === 'networkpolicy.yaml' ? text.replace('port: metrics', 'port: metric') : text,
    );
    const wrongSecret = render((text, file) =>
      file === 'statefulset.yaml' ? text.replace('name: tidebase-secrets', 'name: tidebase-secret') : text,
    );

    assert.deepEqual(brokenNames(render()), []);
    assert.deepEqual(brokenNames(wrongLabel), [
      'Service tidebase does not select the pods',
      'Service tidebase-pods does not select the pods',
    ]);
    assert.deepEqual(brokenNames(wrongPort), ['no port is named metric']);
    assert.deepEqual(brokenNames(wrongSecret), ['there is no Secret tidebase-secret']);
  });

  it('sets what the server knows, in numbers that fit the pod', () => {
    const objects = render();
    const { spec, pod, container } = podOf(objects);
    const environment = environmentOf(objects);

    const settings = readSettings(environment, machine);

    assert.deepEqual(unreadNames(environment), []);
    assert.deepEqual(unreadNames({ ...environment, SMTP_URI: 'smtp://mail' }), ['SMTP_URI']);
    assert.equal(pod.enableServiceLinks, false, 'TIDEBASE_PORT would be the address of a Service');
    assert.equal(settings.objectStore, 's3');
    assert.ok(
      settings.s3?.credentials && settings.loginTokenKey && settings.keyEncryptionKey && settings.smtpUrl,
    );
    const ports = Object.fromEntries(container.ports?.map((port) => [port.name, port.containerPort]) ?? []);
    assert.deepEqual(ports, {
      http: settings.port,
      metrics: settings.metricsPort,
      peer: settings.peers?.port,
    });
    assert.equal(settings.peers?.address, `tidebase-0.${spec.serviceName}:${settings.peers?.port}`);
    assert.deepEqual(
      container.volumeMounts?.map(({ mountPath }) => mountPath),
      [settings.dataDir],
    );
    const { requests, limits: bounds } = container.resources ?? {};
    const cores = Number(requests?.cpu);
    const volume = bytesOf(spec.volumeClaimTemplates?.[0]?.spec?.resources?.requests?.storage);
    assert.ok(settings.memoryBytes * 2 <= bytesOf(bounds?.memory), 'memory');
    assert.equal(requests?.memory, bounds?.memory);
    assert.deepEqual([settings.actorThreads, settings.computeThreads], [cores - 1, cores]);
    assert.ok(settings.cacheBytes <= volume * 0.8, 'the cache leaves room on the volume');
  });

  it('runs three servers that may do little, and waits for it as long as it takes', () => {
    const { spec, pod, container } = podOf(render());

    assert.equal(spec.replicas, 3);
    assert.equal(spec.podManagementPolicy, 'Parallel');
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.equal(pod.automountServiceAccountToken, false);
    assert.equal(pod.securityContext?.runAsNonRoot, true);
    assert.equal(pod.securityContext?.seccompProfile?.type, 'RuntimeDefault');
    const image = readText('deploy/Dockerfile');
    const { runAsUser, runAsGroup, fsGroup } = pod.securityContext ?? {};
    assert.match(image, new RegExp(`^USER ${runAsUser}:${runAsGroup}$`, 'm'));
    assert.equal(fsGroup, runAsGroup);
    assert.ok((pod.terminationGracePeriodSeconds ?? 0) * 1_000 >= 3 * limits.drainMs);
    assert.ok(msOf(container.startupProbe) >= 10 * limits.suspectAfterMs);
    assert.ok(msOf(container.livenessProbe) > limits.threadSilentMsMax, 'the server ends itself first');
    for (const probe of [container.startupProbe, container.livenessProbe])
      assert.deepEqual(probe?.httpGet, { path: '/healthz', port: 'http' });
    assert.deepEqual(container.readinessProbe?.httpGet, { path: '/readyz', port: 'metrics' });
  });

  it('restarts and scales one server at a time', () => {
    const objects = render();
    const { labels } = podOf(objects);
    const { spec: budget } = only<IPodDisruptionBudget>(objects, 'PodDisruptionBudget');
    const { spec: scaler } = only<IHorizontalPodAutoscaler>(objects, 'HorizontalPodAutoscaler');

    assert.equal(budget?.maxUnavailable, 1);
    assert.ok(fits(budget?.selector?.matchLabels, labels));
    assert.deepEqual(scaler?.scaleTargetRef, {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      name: 'tidebase',
    });
    assert.equal(scaler?.minReplicas, 3);
    for (const { policies } of [scaler?.behavior?.scaleUp ?? {}, scaler?.behavior?.scaleDown ?? {}])
      assert.deepEqual(
        policies?.map(({ type, value }) => [type, value]),
        [['Pods', 1]],
      );
  });

  it('lets only the servers reach each other, and the namespace of Prometheus the metrics', () => {
    const { spec } = only<INetworkPolicy>(render(), 'NetworkPolicy');

    assert.deepEqual(spec?.policyTypes, ['Ingress']);
    const doors = spec?.ingress?.map(({ from, ports }) => [ports?.map(({ port }) => port), from]);
    assert.deepEqual(doors, [
      [['http'], [{ namespaceSelector: {} }]],
      [['peer'], [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'tidebase' } } }]],
      [
        ['metrics'],
        [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
      ],
    ]);
  });
});
