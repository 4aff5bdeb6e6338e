import {
  below,
  chance,
  type Draw,
  damaged,
  damagedText,
  jsonText,
  naughtyStrings,
  oddString,
  oddValue,
  pick,
} from './fuzz-values.ts';

/**
 * Requests made from an OpenAPI document, as data: right ones, nearly right ones and wrong ones. A request depends on the seed and
 * on its number alone, so that any of them can be made again.
 */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly items?: Schema;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

interface DescribedOperation {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
  readonly responses: Readonly<Record<string, unknown>>;
}

export interface ApiDescription {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface FuzzTarget {
  readonly method: string;
  readonly path: string;
  readonly operation: DescribedOperation;
  /** Statuses that the description names. */
  readonly statuses: ReadonlySet<number>;
}

/** A request, as it is sent. */
export interface SentRequest {
  readonly number: number;
  readonly method: string;
  /** Path and query, as sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  readonly isChunked: boolean;
  readonly credential: Credential;
}

/** A request to an operation of the description. */
export interface FuzzRequest extends SentRequest {
  readonly kind: 'operation';
  readonly target: FuzzTarget;
  /** Whether path or method may lead to another operation, or to none. */
  readonly isAstray: boolean;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly retryAfter: string | undefined;
  readonly location: string | undefined;
  readonly body: string;
}

export const credentials = ['admin', 'login', 'read', 'limited', 'none', 'garbage', 'oauth'] as const;
/** The last two are of connections that work at /mcp. */
export type Credential = (typeof credentials)[number] | 'oauth read' | 'oauth limited';

/** Operations of which one in twenty is sent: passwords are hashed one by one, and what is deleted can't be asked about. */
const rareOperations: ReadonlySet<string> = new Set([
  'signup',
  'login',
  'forgotPassword',
  'resendVerification',
  'createTenant',
  'deleteNamespace',
]);
const rareShare = 0.05;

export const targetsOf = ({ paths }: ApiDescription): readonly FuzzTarget[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
      statuses: new Set(Object.keys(operation.responses).map(Number).filter(Number.isFinite)),
    })),
  );

export const fuzzNamespaces: readonly string[] = Array.from({ length: 6 }, (_, i) => `fuzz-${i}`);
/** The length of the vectors of the last two. */
export const fuzzDims = 4;
const ids = ['a', 'b/c', 'd 1', 'ключ', '..', 'x'.repeat(512), '%41', 'e'];
const words = ['tide', 'harbour', 'Low', 'x', '', 'is at dusk', '\\d+', 'é', '😀', 'ti', '42'];

export function fuzzRequest(
  description: ApiDescription,
  targets: readonly FuzzTarget[],
  { draw, number }: { readonly draw: Draw; readonly number: number },
): FuzzRequest {
  let target = pick(draw, targets);
  if (rareOperations.has(target.operation.operationId) && !chance(draw, rareShare))
    target = pick(draw, targets);
  const isAstray = chance(draw, 0.05);
  const { body, type } = bodyOf(draw, description, target);
  const credential = chance(draw, 0.85) ? 'admin' : pick(draw, credentials);
  return {
    kind: 'operation',
    number,
    target,
    method:
      isAstray && chance(draw, 0.5)
        ? pick(draw, ['GET', 'PUT', 'PATCH', 'DELETE', 'POST', 'HEAD', 'OPTIONS', 'TRACE'])
        : target.method,
    path: pathOf(draw, description, target, isAstray),
    headers: headersOf(draw, type),
    body,
    isChunked: chance(draw, 0.1),
    isAstray,
    credential,
  };
}

function bodyOf(
  draw: Draw,
  description: ApiDescription,
  { operation, method }: FuzzTarget,
): { readonly body: Buffer | null; readonly type: string | null } {
  const content = operation.requestBody?.content;
  if (content === undefined) {
    if (method === 'GET' || !chance(draw, 0.05)) return { body: null, type: null };
    return { body: Buffer.from(jsonText(oddValue(draw))), type: 'application/json' };
  }
  const schema = content['application/json']?.schema;
  if (schema === undefined) return { body: fileOf(draw), type: 'application/octet-stream' };
  const way = draw();
  let value = rightValue(draw, description, schema, '');
  if (way > 0.4) value = damaged(draw, value);
  if (way > 0.75) value = damaged(draw, value);
  const text = jsonText(value);
  const body = way > 0.95 ? damagedText(draw, text) : Buffer.from(text);
  return { body, type: 'application/json' };
}

const csv = 'id,n,day,name\n1,2,2026-03-01,Dover\n2,,2026-03-01 10:00:00,"Le""ith"\n';
const ndjson = '{"id":"a","n":1,"name":"x"}\n{"id":"b","n":null}\n';
const files: readonly string[] = [
  csv,
  ndjson,
  csv.repeat(20),
  'PAR1....PAR1',
  '',
  'a\n"',
  '\ufeffa,b\n1,2',
  'a,a\n1,2',
  '\n\n\n',
  '{}',
  '[1]',
];

function fileOf(draw: Draw): Buffer {
  const file = pick(draw, files);
  return chance(draw, 0.4) ? damagedText(draw, file) : Buffer.from(file);
}

function pathOf(
  draw: Draw,
  description: ApiDescription,
  { path, operation }: FuzzTarget,
  isAstray: boolean,
): string {
  const parameters = (operation.parameters ?? []).filter(({ $ref }) => $ref === undefined);
  let filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(
      parameterValue(draw, description, name, parameters.find((each) => each.name === name)?.schema ?? {}),
    );
    return path.endsWith(`{${name}}`) && name === 'id'
      ? value.split('/').map(encoded).join('/')
      : encoded(value);
  });
  if (isAstray)
    filled = pick(draw, [
      `${filled}/`,
      filled.replace('/v1/', '/api/'),
      filled.toUpperCase(),
      `/${filled}`,
      `${filled}/%2e%2e`,
      `${filled}%`,
      `${filled}%ff`,
      '/',
      '/v1',
      '/v1/namespaces//docs',
      '/metrics',
    ]);
  const query = parameters.filter((each) => each.in === 'query' && chance(draw, 0.4));
  const pairs = query.map(
    ({ name, schema }) => `${name}=${encoded(String(parameterValue(draw, description, name, schema)))}`,
  );
  if (chance(draw, 0.05))
    pairs.push(pick(draw, ['extra=1', 'q=%', 'limit=5&limit=6', '=', '&&', 'q=%ff', 'a=b=c', '__proto__=1']));
  const whole = pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`;
  return whole.length <= pathCharactersMax ? whole : filled;
}

/** uWebSockets cuts a head of 64 KB and more without an answer. */
const pathCharactersMax = 16_000;

/** Half a surrogate pair has no percent-encoding. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed()) || '%20';

function parameterValue(draw: Draw, description: ApiDescription, name: string, schema: Schema): unknown {
  if (chance(draw, 0.15)) return textOf(oddString(draw));
  if (name === 'filter') return jsonText(filterOf(draw));
  const value = rightValue(draw, description, schema, name);
  return typeof value === 'object' ? jsonText(value) : value;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '\0');

/** A right value of a schema, with what is known of the field's name. */
export function rightValue(draw: Draw, description: ApiDescription, schema: Schema, name: string): unknown {
  if (schema.$ref !== undefined) {
    const named = description.components.schemas[schema.$ref.split('/').at(-1) ?? ''];
    return rightValue(draw, description, named ?? {}, name);
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return pick(draw, schema.enum);
  if (schema.anyOf !== undefined) return rightValue(draw, description, pick(draw, schema.anyOf), name);
  switch (schema.type) {
    case 'null':
      return null;
    case 'boolean':
      return chance(draw, 0.5);
    case 'integer':
    case 'number':
      return numberOf(draw, schema, name);
    case 'array':
      return arrayOf(draw, description, schema, name);
    case 'object':
      return objectOf(draw, description, schema, name);
    default:
      return stringOf(draw, name);
  }
}

function numberOf(draw: Draw, { minimum = 0, maximum = 1_000, type }: Schema, name: string): number {
  if (name === 'dims') return chance(draw, 0.7) ? fuzzDims : pick(draw, [1, 2_048]);
  if (name === 'min_version') return 0;
  if (type === 'number') return pick(draw, [0, 1, -1, 0.5, 1e-7, 12_345.678]);
  return chance(draw, 0.3)
    ? pick(draw, [minimum, maximum])
    : minimum + below(draw, Math.min(50, maximum - minimum + 1));
}

function arrayOf(
  draw: Draw,
  description: ApiDescription,
  { items = {}, maxItems = 5 }: Schema,
  name: string,
): unknown[] {
  const length = name === 'vector' ? fuzzDims : below(draw, Math.min(5, maxItems) + 1);
  return Array.from({ length }, () => rightValue(draw, description, items, name));
}

/** The three places where users' own data may be any object. */
function objectOf(draw: Draw, description: ApiDescription, schema: Schema, name: string): unknown {
  if (schema.properties === undefined) return name === 'filter' ? filterOf(draw) : metaOf(draw);
  const { properties, required = [] } = schema;
  const chosen = Object.entries(properties).filter(([each]) => required.includes(each) || chance(draw, 0.35));
  return Object.fromEntries(
    chosen.map(([each, property]) => [each, rightValue(draw, description, property, each)]),
  );
}

const metaKeys = ['n', 'name', 'day', 'ok', '', '__proto__', '#x', 'a b', '"'];

function metaOf(draw: Draw): Record<string, unknown> {
  const entries = Array.from(
    { length: below(draw, 4) },
    () => [pick(draw, metaKeys), scalarOf(draw)] as const,
  );
  return Object.fromEntries(entries);
}

function scalarOf(draw: Draw): unknown {
  return chance(draw, 0.7)
    ? pick(draw, [1, 2, 2.5, -3, true, false, 'x', '2026-03-01', 'Dover', null])
    : oddValue(draw);
}

function filterOf(draw: Draw): Record<string, unknown> {
  const condition = (): unknown => {
    const operator = pick(draw, ['eq', 'ne', 'in', 'gt', 'gte', 'lt', 'lte', 'like']);
    if (chance(draw, 0.4)) return scalarOf(draw);
    return { [operator]: operator === 'in' ? [scalarOf(draw), scalarOf(draw)] : scalarOf(draw) };
  };
  return Object.fromEntries(
    Array.from({ length: 1 + below(draw, 2) }, () => [pick(draw, metaKeys), condition()]),
  );
}

const sqlPieces = [
  'SELECT',
  '*',
  'n',
  'name',
  '"a b"',
  'id',
  ',',
  'FROM docs',
  'WHERE',
  'GROUP BY',
  'ORDER BY',
  'LIMIT 3',
  'OFFSET 1',
  'COUNT(*)',
  'SUM(n)',
  'AVG(n)',
  'MIN(day)',
  'COUNT(DISTINCT name)',
  '=',
  '<>',
  '<',
  '>=',
  '+',
  '-',
  '1',
  '2.5',
  "'x'",
  "'2026-03-01'",
  'NULL',
  'IS NULL',
  'IN (1,2)',
  "LIKE '%o_'",
  'AND',
  'OR',
  'NOT',
  '(',
  ')',
  'CASE WHEN n > 1 THEN 2 ELSE 3 END',
  "contains(text, 'tide')",
  "grep(text, 't.de')",
  "REGEXP_REPLACE(name, 'o(.)', '\\1')",
  "DATE_TRUNC('day', day)",
  'EXTRACT(MINUTE FROM day)',
  'LENGTH(name)',
  'COALESCE(n, 0)',
  'AS c',
  'HAVING',
  'DESC',
  'NULLS FIRST',
  '9223372036854775807',
  '1e999',
  ';',
  '--',
  "'",
];
const statements = [
  'SELECT * FROM docs',
  'SHOW COLUMNS',
  'DESCRIBE docs',
  'SELECT n, COUNT(*) FROM docs GROUP BY n ORDER BY 2 DESC',
  "SELECT id FROM docs WHERE contains(text, 'tide') LIMIT 5",
  'SELECT SUM(n), MIN(name), MAX(day) FROM docs WHERE n IS NOT NULL',
  "SELECT DATE_TRUNC('day', day) AS d, COUNT(*) FROM docs GROUP BY d HAVING COUNT(*) > 0 ORDER BY d NULLS FIRST",
];

function sqlOf(draw: Draw): string {
  if (chance(draw, 0.4)) return pick(draw, statements);
  const pieces = Array.from({ length: 2 + below(draw, 12) }, () => pick(draw, sqlPieces));
  return chance(draw, 0.7) ? `SELECT ${pieces.join(' ')} FROM docs` : pieces.join(' ');
}

const patternPieces = [
  'a',
  'ti',
  '.',
  '*',
  '+',
  '?',
  '(',
  ')',
  '[a-z]',
  '[^x]',
  '|',
  '\\d',
  '\\pL',
  '{2,3}',
  '{1000}',
  '^',
  '$',
  '(?i)',
  '(?s)',
  '\\b',
  'é',
  '\\x{10FFFF}',
  '[',
  '\\',
  '(?P<n>x)',
  '\\C',
  '(?=a)',
];

function stringOf(draw: Draw, name: string): string {
  if (chance(draw, 0.1)) return pick(draw, naughtyStrings);
  switch (name) {
    case 'name':
    case 'namespace':
    case 'source':
    case 'namespaces':
      return pick(draw, [...fuzzNamespaces, ...fuzzNamespaces, 'absent', 'fuzz-*', '.', '..']);
    case 'id':
    case 'ids':
    case 'deletes':
      return chance(draw, 0.5) ? 'a' : pick(draw, ids);
    case 'sql':
      return sqlOf(draw);
    case 'q':
    case 'query':
    case 'queries':
      return chance(draw, 0.5)
        ? pick(draw, words)
        : Array.from({ length: 1 + below(draw, 6) }, () => pick(draw, patternPieces)).join('');
    case 'email':
      return pick(draw, ['fuzz@example.com', `fuzz-${below(draw, 1e6)}@example.com`, 'a@b@c', '@', 'ä@ö']);
    case 'password':
      return pick(draw, ['correct horse', 'short', 'x'.repeat(201)]);
    case 'vector_b64':
      return pick(draw, [Buffer.alloc(4 * fuzzDims, 1).toString('base64'), 'AAAA', '!', '']);
    case 'after':
    case 'cursor':
      return pick(draw, ['', 'fuzz-2', 'AAAA', 'not-a-cursor']);
    case 'lines':
      return pick(draw, ['1-2', '2', '1-', '0', '5-1', 'x', '9999999999999999-']);
    case 'provider':
      return pick(draw, ['openai', 'cohere', 'google', 'mistral', 'service', 'x']);
    case 'schema':
      return pick(draw, ['id INT, n BIGINT, day DATE, name TEXT', 'CREATE TABLE x (id INT)', '(', 'id BLOB']);
    case 'text':
      return pick(draw, [
        'The tide turns at noon.',
        'name',
        'name,n',
        'High water.\nLow tide is at dusk.',
        '',
      ]);
    default:
      return pick(draw, words);
  }
}

/** Headers beside the credential, now and then odd ones. */
export function headersOf(draw: Draw, type: string | null): Record<string, string> {
  const headers: Record<string, string> = {};
  if (type !== null)
    headers['content-type'] = chance(draw, 0.95)
      ? type
      : pick(draw, ['text/plain', '', 'a/b; c', 'application/json; charset=utf-16']);
  if (chance(draw, 0.04))
    headers['x-tenant'] = pick(draw, ['1', '0', '-1', 'x', '1e3', '99999999999999999999']);
  if (chance(draw, 0.04)) headers['idempotency-key'] = pick(draw, ['k', 'k2', 'x'.repeat(256), ' ', 'a\tb']);
  if (chance(draw, 0.02)) headers['content-encoding'] = pick(draw, ['gzip', 'zstd', 'identity', 'x']);
  if (chance(draw, 0.02)) headers['x-forwarded-for'] = pick(draw, ['1.2.3.4', 'x', '::1, 9.9.9.9', ',']);
  if (chance(draw, 0.02)) headers.accept = pick(draw, ['text/html', '*/*', ';']);
  if (chance(draw, 0.02)) headers.origin = pick(draw, ['http://evil.example', 'null']);
  if (chance(draw, 0.01)) headers['x-long'] = 'x'.repeat(3_000);
  return headers;
}
