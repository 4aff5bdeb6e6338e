/**
 * Kubernetes' own description of its objects, as `kubernetes-models` carries it: JSON schemas, which say types, what must be
 * there and which values there are, and declarations, by which the compiler finds fields that no schema knows. The server of a
 * cluster only warns of those and leaves them out.
 */
import { resolve } from 'node:path';
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Namespace } from 'kubernetes-models/v1/Namespace';
import { Secret } from 'kubernetes-models/v1/Secret';
import { Service } from 'kubernetes-models/v1/Service';
import ts from 'typescript-5';

interface Kind {
  readonly module: string;
  /** Throws where the object's fields are not those of the schema. */
  readonly check: (object: never) => void;
}

const kinds: Readonly<Record<string, Kind>> = {
  'apps/v1 StatefulSet': {
    module: 'apps/v1/StatefulSet',
    check: (object) => new StatefulSet(object).validate(),
  },
  'autoscaling/v2 HorizontalPodAutoscaler': {
    module: 'autoscaling/v2/HorizontalPodAutoscaler',
    check: (object) => new HorizontalPodAutoscaler(object).validate(),
  },
  'policy/v1 PodDisruptionBudget': {
    module: 'policy/v1/PodDisruptionBudget',
    check: (object) => new PodDisruptionBudget(object).validate(),
  },
  'networking.k8s.io/v1 NetworkPolicy': {
    module: 'networking.k8s.io/v1/NetworkPolicy',
    check: (object) => new NetworkPolicy(object).validate(),
  },
  'v1 ConfigMap': { module: 'v1/ConfigMap', check: (object) => new ConfigMap(object).validate() },
  'v1 Namespace': { module: 'v1/Namespace', check: (object) => new Namespace(object).validate() },
  'v1 Secret': { module: 'v1/Secret', check: (object) => new Secret(object).validate() },
  'v1 Service': { module: 'v1/Service', check: (object) => new Service(object).validate() },
};

interface Described {
  readonly apiVersion: string;
  readonly kind: string;
}

/** What is wrong with each of the objects, as sentences, in their order; none where it is as described. */
export function problemsOfObjects(objects: readonly Described[]): string[][] {
  const known = objects.map((object) => kinds[`${object.apiVersion} ${object.kind}`]);
  const declared = declarationProblems(
    objects.map((object, index) => ({ type: `I${object.kind}`, module: known[index]?.module, object })),
  );
  return objects.map((object, index) => {
    const kind = known[index];
    if (kind === undefined) return [`${object.apiVersion} ${object.kind} is not described here`];
    return [...schemaProblems(kind, object), ...(declared[index] ?? [])];
  });
}

function schemaProblems(kind: Kind, object: Described): string[] {
  try {
    kind.check(object as never);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

interface Declared {
  readonly type: string;
  readonly module: string | undefined;
  readonly object: unknown;
}

/** Compiles a file for each object, in which it stands as a literal of its kind's type. */
function declarationProblems(all: readonly Declared[]): string[][] {
  const texts = new Map(
    all.flatMap(({ type, module, object }, index) =>
      module === undefined
        ? []
        : [
            [
              resolve(`kubernetes-object-${index}.ts`),
              `import type { ${type} } from 'kubernetes-models/${module}';\n` +
                `export const object: ${type} = ${JSON.stringify(object)};\n`,
            ] as const,
          ],
    ),
  );
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (path) => texts.has(path) || fileExists.call(host, path);
  host.readFile = (path) => texts.get(path) ?? readFile.call(host, path);
  host.getSourceFile = (path, ...rest) => {
    const text = texts.get(path);
    return text === undefined
      ? getSourceFile.call(host, path, ...rest)
      : ts.createSourceFile(path, text, ts.ScriptTarget.ES2022);
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  return all.map((_, index) => {
    const source = program.getSourceFile(resolve(`kubernetes-object-${index}.ts`));
    if (source === undefined) return [];
    return program
      .getSemanticDiagnostics(source)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
  });
}
