/** What `kubectl kustomize` makes of a folder, for the few fields that ours uses. */
import { createHash } from 'node:crypto';
import { parseAllDocuments } from 'yaml';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

interface Generator {
  readonly name: string;
  readonly envs: readonly string[];
}

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
  readonly configMapGenerator: readonly Generator[];
  readonly secretGenerator: readonly Generator[];
}

const knownFields: ReadonlySet<string> = new Set([
  'apiVersion',
  'kind',
  'namespace',
  'resources',
  'images',
  'configMapGenerator',
  'secretGenerator',
]);

/** The objects of the folder that `readText` reads, as they reach the cluster. Throws on a field of kustomization.yaml that it does not know. */
export function renderKustomization(readText: (file: string) => string): Manifest[] {
  const [kustomization] = documentsOf(readText('kustomization.yaml')) as Kustomization[];
  if (kustomization === undefined) throw new Error('kustomization.yaml is empty');
  const unknown = Object.keys(kustomization).filter((name) => !knownFields.has(name));
  if (unknown.length > 0) throw new Error(`kustomization.yaml has fields that are not rendered: ${unknown}`);
  const { namespace, resources, images, configMapGenerator, secretGenerator } = kustomization;
  const configMaps = configMapGenerator.map(({ name, envs }) =>
    withDigest({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: variablesOf(envs, readText),
    }),
  );
  const secrets = secretGenerator.map(({ name, envs }) => {
    const data = Object.fromEntries(
      Object.entries(variablesOf(envs, readText)).map(([key, value]) => [
        key,
        Buffer.from(value).toString('base64'),
      ]),
    );
    return withDigest({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'Opaque', data });
  });
  const generated = new Map(
    [...configMaps, ...secrets].map(({ from, made }) => [`${made.kind} ${from}`, made.metadata.name]),
  );
  const imageNames = new Map(images.map(({ name, newName, newTag }) => [name, `${newName}:${newTag}`]));
  const written = resources.flatMap((file) => documentsOf(readText(file)) as Manifest[]);
  return [...configMaps, ...secrets]
    .map(({ made }): Manifest => made)
    .concat(written.map((object) => withNames(object, generated, imageNames) as Manifest))
    .map((object) =>
      object.kind === 'Namespace' ? object : { ...object, metadata: { ...object.metadata, namespace } },
    );
}

function documentsOf(text: string): unknown[] {
  return [...parseAllDocuments(text)].map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS();
  });
}

/** One NAME=value a line; comments and empty lines say nothing. */
function variablesOf(files: readonly string[], readText: (file: string) => string): Record<string, string> {
  const lines = files.flatMap((file) => readText(file).split('\n')).filter((line) => /^[^#\s]/.test(line));
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', value = ''] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
      if (name === '') throw new Error(`a line of ${files} is no NAME=value: ${line}`);
      return [name, value];
    }),
  );
}

interface Generated extends Manifest {
  readonly type?: string;
  readonly data: Readonly<Record<string, string>>;
}

/** The digits and vowels that could make a word, and what stands in their place. */
const digestLetters: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };

/** The same under the name that kustomize gives it, which ends in a digest of its fields. They have no name yet at that moment. */
function withDigest(object: Generated): { readonly from: string; readonly made: Generated } {
  const { kind, data, type } = object;
  const { name } = object.metadata;
  const sorted = Object.fromEntries(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const text = JSON.stringify({ data: sorted, kind, name: '', type });
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 10);
  const suffix = digest.replace(/[013ae]/g, (letter) => digestLetters[letter] ?? letter);
  return { from: name, made: { ...object, metadata: { name: `${name}-${suffix}` } } };
}

/** The same, with generated names where an `envFrom` has those that they were made from, and with the images' own places. */
function withNames(
  value: unknown,
  generated: ReadonlyMap<string, string>,
  images: ReadonlyMap<string, string>,
): unknown {
  if (Array.isArray(value)) return value.map((one) => withNames(one, generated, images));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => {
      const kind = { configMapRef: 'ConfigMap', secretRef: 'Secret' }[field];
      if (kind !== undefined) {
        const { name } = inner as { readonly name: string };
        return [field, { ...inner, name: generated.get(`${kind} ${name}`) ?? name }];
      }
      if (field === 'image' && typeof inner === 'string') return [field, images.get(inner) ?? inner];
      return [field, withNames(inner, generated, images)];
    }),
  );
}
