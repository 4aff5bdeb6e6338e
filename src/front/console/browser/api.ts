/** Calls of the public interface, as anybody could make them: the login token, and X-Tenant where another tenant was chosen. */
import { parseExactly } from './exact-json.ts';
import { session } from './session.ts';

export class Refusal extends Error {
  override name = 'Refusal';
  readonly status: number;
  readonly code: string;
  /** Input field to what is wrong with it, in the interface's own words. */
  readonly fields: Readonly<Record<string, string>>;

  constructor(status: number, body: RefusalBody) {
    super(body.error);
    this.status = status;
    this.code = body.code;
    this.fields = body.fields ?? {};
  }
}

interface RefusalBody {
  readonly error: string;
  readonly code: string;
  readonly fields?: Readonly<Record<string, string>>;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** What happens when the login has ended; set once, by whoever shows the pages. */
let onLoginEnded: () => void = () => {};

export function whenLoginEnds(run: () => void): void {
  onLoginEnded = run;
}

/** The answer's value. A string is a body as it is, anything else becomes JSON. Throws Refusal. */
export async function call<Answer>(method: Method, path: string, body?: unknown): Promise<Answer> {
  const { token, tenant } = session;
  const headers = new Headers();
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  if (token !== null && tenant !== null) headers.set('x-tenant', String(tenant));
  if (body !== undefined) headers.set('content-type', 'application/json');
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined || typeof body === 'string' ? (body ?? null) : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
  }).catch(() => {
    throw new Refusal(0, { error: 'The server did not answer. Try again in a moment.', code: 'unreachable' });
  });
  if (response.ok) return (response.status === 204 ? null : parseExactly(await response.text())) as Answer;
  const refusal = new Refusal(response.status, await refusalBody(response));
  if (refusal.status === 401 && token !== null && path !== '/v1/login') onLoginEnded();
  throw refusal;
}

/** A proxy in between may answer in words of its own. */
async function refusalBody(response: Response): Promise<RefusalBody> {
  const body: unknown = await response.json().catch(() => null);
  if (typeof body === 'object' && body !== null && 'error' in body && 'code' in body)
    return body as RefusalBody;
  return { error: `The server answered ${response.status} ${response.statusText}`.trim(), code: 'unknown' };
}

/** The interface's own sentence, with a capital and a full stop. */
function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

/** What to show of a refusal. Anything else is a fault of these pages, and goes on to the console. */
export function messageOf(error: unknown): string {
  if (error instanceof Refusal) return sentence(error.message);
  throw error;
}

export const namespacePath = (name: string): string => `/v1/namespaces/${encodeURIComponent(name)}`;

/** Its slashes are kept, except where a part would be taken for a step up or for none at all: then they are escaped too. */
export function documentPath(namespace: string, id: string): string {
  const parts = id.split('/');
  const hasDots = parts.some((part) => part === '.' || part === '..');
  const path = hasDots ? encodeURIComponent(id) : parts.map(encodeURIComponent).join('/');
  return `${namespacePath(namespace)}/docs/${path}`;
}
