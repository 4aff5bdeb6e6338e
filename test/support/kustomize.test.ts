import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { renderKustomization } from './kustomize.ts';

const files: Readonly<Record<string, string>> = {
  'kustomization.yaml': `namespace: one
resources: [pod.yaml]
images: [{name: i, newName: r/i, newTag: "2"}]
configMapGenerator: [{name: c, envs: [c.env]}]
secretGenerator: [{name: s, envs: [s.env]}]
`,
  'c.env': '# says nothing\n\nB=2=3\nA=\n',
  's.env': 'KEY=x\n',
  'pod.yaml': `apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - {name: k, image: i, envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}, {secretRef: {name: other}}]}
`,
};
const render = (changed: Record<string, string> = {}) =>
  renderKustomization((file) => changed[file] ?? files[file] ?? assert.fail(`no file ${file}`));

describe('renderKustomization', () => {
  it('makes what kubectl kustomize 5.5.0 made of the same files', () => {
    assert.deepEqual(render(), [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'c-7km528bcd6', namespace: 'one' },
        data: { A: '', B: '2=3' },
      },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 's-6tkm5f54f7', namespace: 'one' },
        type: 'Opaque',
        data: { KEY: 'eA==' },
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', namespace: 'one' },
        spec: {
          containers: [
            {
              name: 'k',
              image: 'r/i:2',
              envFrom: [
                { configMapRef: { name: 'c-7km528bcd6' } },
                { secretRef: { name: 's-6tkm5f54f7' } },
                { secretRef: { name: 'other' } },
              ],
            },
          ],
        },
      },
    ]);
  });

  it('refuses what it does not know', () => {
    const withPatch = `${files['kustomization.yaml']}patches: []\n`;

    assert.throws(() => render({ 'kustomization.yaml': withPatch }), /fields that are not rendered: patches/);
    assert.throws(() => render({ 's.env': 'KEY\n' }), /is no NAME=value: KEY/);
    assert.throws(() => render({ 'pod.yaml': 'a: 1\na: 2\n' }), /unique/);
  });
});
