/**
 * Method and path → operation. Hot: it runs for every request, so the table is folded once into a tree of path
 * segments, and a look-up slices the path without building an array. A document read takes 0.3 µs (2 cores, Node 20).
 *
 * Segments are compared as they came; parameters are percent-decoded once. A parameter takes one segment that is
 * not empty, the rest of a path takes all of it: raw slashes and %2F both mean a slash, `..` and `//` mean nothing.
 */
import type { PathParameterName } from './operations/operation-row.ts';
import { type Operation, operationList } from './operations.ts';
import { percentDecode } from './query-string.ts';

export type PathParameters = { readonly [Name in PathParameterName]: string | undefined };

export type Route =
  | { readonly kind: 'found'; readonly operation: Operation; readonly parameters: PathParameters }
  | { readonly kind: 'no-path' }
  | { readonly kind: 'wrong-method'; readonly allow: string };

interface Node {
  readonly children: Map<string, Node>;
  parameter: { readonly name: PathParameterName; readonly node: Node } | null;
  rest: { readonly name: PathParameterName; readonly node: Node } | null;
  readonly methods: Map<string, Operation>;
  /** Value of the `Allow` header. */
  allow: string;
}

const noPath: Route = { kind: 'no-path' };
const root = buildTree(operationList);

/** Where the operations were before they had a version. They are the same ones: what is added under /v1 is there too. */
const oldPrefix = '/api/';
const newPrefix = '/v1/';
root.children.set(segmentOf(oldPrefix), childOf(root, segmentOf(newPrefix)));

/**
 * `rawPath` is percent-encoded, begins with a slash and has no query. Throws ApiError `bad_request` where a parameter
 * is not percent-encoded UTF-8.
 */
export function findOperation(method: string, rawPath: string): Route {
  if (rawPath.charCodeAt(0) !== 0x2f) return noPath;
  const values: { [Name in PathParameterName]: string | undefined } = {
    name: undefined,
    id: undefined,
    provider: undefined,
  };
  let node = root;
  for (let start = 1; start <= rawPath.length; ) {
    const slash = rawPath.indexOf('/', start);
    const end = slash === -1 ? rawPath.length : slash;
    const child = node.children.size === 0 ? undefined : node.children.get(rawPath.slice(start, end));
    if (child !== undefined) {
      node = child;
    } else if (node.parameter !== null && end > start) {
      values[node.parameter.name] = rawPath.slice(start, end);
      node = node.parameter.node;
    } else if (node.rest !== null) {
      values[node.rest.name] = rawPath.slice(start);
      node = node.rest.node;
      break;
    } else {
      return noPath;
    }
    start = end + 1;
  }
  return finish(node, method, values);
}

/** What is at an old path under the new one, as a path to show; null where it is no old path, or nothing is there. */
export function successorOf(rawPath: string): string | null {
  if (!rawPath.startsWith(oldPrefix) || rawPath.length > successorCharactersMax) return null;
  const isThere = findOperation('', rawPath).kind !== 'no-path';
  // A client may send bytes that no header can carry, and what would end the link.
  return isThere ? newPrefix + encodeRest(rawPath.slice(oldPrefix.length)) : null;
}

/** The longest name and the longest id, every byte of them escaped, are shorter. */
const successorCharactersMax = 2_048;

function encodeRest(rest: string): string {
  return rest.replace(/[^!#-;=?-~]/gu, (character) => encodeURIComponent(character.toWellFormed()));
}

function segmentOf(prefix: string): string {
  return prefix.slice(1, -1);
}

function finish(
  node: Node,
  method: string,
  values: { [Name in PathParameterName]: string | undefined },
): Route {
  if (node.methods.size === 0) return noPath;
  const operation = node.methods.get(method);
  if (operation === undefined) return { kind: 'wrong-method', allow: node.allow };
  if (values.name !== undefined) values.name = percentDecode(values.name, 'path');
  if (values.id !== undefined) values.id = percentDecode(values.id, 'path');
  if (values.provider !== undefined) values.provider = percentDecode(values.provider, 'path');
  return { kind: 'found', operation, parameters: values };
}

function buildTree(operations: readonly Operation[]): Node {
  const tree = emptyNode();
  for (const operation of operations) {
    let node = tree;
    for (const segment of operation.path.slice(1).split('/')) node = step(node, segment, operation);
    addMethods(node, operation);
  }
  return tree;
}

function emptyNode(): Node {
  return { children: new Map(), parameter: null, rest: null, methods: new Map(), allow: '' };
}

function step(node: Node, segment: string, operation: Operation): Node {
  const name = parameterName(segment);
  if (name === null) return childOf(node, segment);
  if (operation.restParameter === name) {
    node.rest ??= { name, node: emptyNode() };
    return checked(node.rest, name).node;
  }
  node.parameter ??= { name, node: emptyNode() };
  return checked(node.parameter, name).node;
}

/** Two operations that name one place of the path differently would leave one of them without its parameter. */
function checked<Branch extends { readonly name: PathParameterName }>(
  branch: Branch,
  name: PathParameterName,
): Branch {
  if (branch.name !== name) throw new Error(`paths disagree: {${branch.name}} and {${name}} are one place`);
  return branch;
}

function childOf(node: Node, segment: string): Node {
  const existing = node.children.get(segment);
  if (existing !== undefined) return existing;
  const made = emptyNode();
  node.children.set(segment, made);
  return made;
}

function parameterName(segment: string): PathParameterName | null {
  if (!segment.startsWith('{')) return null;
  const name = segment.slice(1, -1);
  if (name === 'name' || name === 'id' || name === 'provider') return name;
  throw new Error(`unknown path parameter ${segment}`);
}

function addMethods(node: Node, operation: Operation): void {
  for (const method of operation.methods) {
    if (node.methods.has(method)) throw new Error(`two operations for ${method} ${operation.path}`);
    node.methods.set(method, operation);
    if (method === 'GET') node.methods.set('HEAD', operation);
  }
  node.allow = [...node.methods.keys()].sort().join(', ');
}
