/**
 * Writers who know what they wrote. Each owns its ids and has one request under way at a time, so that after a crash
 * there are two states that its documents may be in: all that was acknowledged, or that and the last request, whole.
 */
import assert from 'node:assert/strict';
import { type ApiAnswer, type ApiClient, documentPath, type ErrorBody } from './api-client.ts';

/** What a document holds: the request that put it, and the one that patched it last. */
interface Held {
  readonly token: string;
  readonly patch: string | null;
}

type Documents = ReadonlyMap<string, Held>;

export interface WriterOptions {
  readonly name: string;
  readonly namespace: string;
  readonly random: () => number;
  /** Ids that it puts, patches and deletes again and again. */
  readonly ids: number;
  /** Most documents of one request. */
  readonly documentsMax: number;
  /** The bytes of each document's text. */
  readonly textBytes?: number;
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: object;
  readonly after: Documents;
}

export type Outcome = 'acknowledged' | 'refused' | 'unknown';

export class ModelWriter {
  readonly options: WriterOptions;
  acknowledged = 0;
  refused = 0;
  /** The version of its last acknowledged write. */
  version = 0;
  #documents: Documents = new Map();
  /** What there is if the request whose answer never came was applied. */
  #perhaps: Documents | null = null;
  #requests = 0;

  constructor(options: WriterOptions) {
    this.options = options;
  }

  /** Writes until told to stop, or until an outcome is not known; `paceMs` lie between two writes. */
  async run(api: ApiClient, stopped: () => boolean, paceMs = 0): Promise<void> {
    while (!stopped()) {
      const outcome = await this.write(api);
      if (paceMs > 0) await new Promise((resolve) => setTimeout(resolve, paceMs));
      if (outcome === 'unknown') return;
      if (outcome === 'refused') await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async write(api: ApiClient): Promise<Outcome> {
    assert.equal(this.#perhaps, null, 'an unknown outcome is looked at before the next write');
    const request = this.#nextRequest();
    this.#perhaps = request.after;
    const answer = await answerOrNull(api, request.method, request.path, request.body);
    const outcome = outcomeOf(answer);
    if (outcome === 'refused') {
      this.refused++;
      this.#perhaps = null;
    } else if (outcome === 'acknowledged') {
      const { version } = jsonOf(answer) as { version: number };
      assert.ok(version > this.version, `${this.options.name}: version ${version} after ${this.version}`);
      this.version = version;
      this.acknowledged++;
      this.#documents = request.after;
      this.#perhaps = null;
    }
    return outcome;
  }

  /** Holds what the server has against what it may have, and goes on from there. */
  async check(api: ApiClient): Promise<void> {
    const { name, namespace } = this.options;
    const known = await answerOrNull(api, 'GET', `/v1/namespaces/${namespace}`, undefined);
    assert.ok(known !== null, 'the server answers');
    const found = known.status === 404 ? new Map<string, Held>() : await this.#found(api);
    const perhaps = this.#perhaps ?? this.#documents;
    if (!same(found, this.#documents) && !same(found, perhaps)) {
      const lines = [
        `${name} in ${namespace}: the documents are neither those acknowledged nor those and the last request`,
        `lacks of the acknowledged: ${difference(this.#documents, found)}`,
        `has beside the acknowledged: ${difference(found, this.#documents)}`,
        `lacks of the last request: ${difference(perhaps, found)}`,
      ];
      assert.fail(lines.join('\n'));
    }
    this.#documents = found;
    this.#perhaps = null;
  }

  async #found(api: ApiClient): Promise<Documents> {
    const { name, namespace } = this.options;
    const found = new Map<string, Held>();
    const first = await api.search(namespace, { limit: 1 });
    assert.ok(first.version >= this.version, `${namespace}: version ${first.version} after ${this.version}`);
    for (const { id, line, meta } of await api.searchAll(namespace, { filter: { writer: name } })) {
      const { token, patch } = meta as { token: string; patch?: string };
      assert.equal(line, token, `${id}: text and meta are of one request`);
      assert.ok(!found.has(id), `${id} is there twice`);
      found.set(id, { token, patch: patch ?? null });
    }
    // Reads by id go another way than searches.
    for (const id of [...found.keys(), `${name}/0`].slice(-2)) {
      const { status } = await api.request('GET', documentPath(namespace, id));
      assert.equal(status, found.has(id) ? 200 : 404, id);
    }
    return found;
  }

  #nextRequest(): Request {
    const { name, namespace, random, documentsMax } = this.options;
    const token = `${name}#${++this.#requests}`;
    const ids = this.#someIds(1 + Math.floor(random() * documentsMax));
    const known = ids.filter((id) => this.#documents.has(id));
    const kind = random();
    if (kind < 0.15) return deletion(namespace, ids, this.#documents);
    if (kind < 0.35 && known.length > 0)
      return patching(namespace, { ids: known, token, documents: this.#documents });
    return this.#putting(ids, token);
  }

  #putting(ids: readonly string[], token: string): Request {
    const { name, namespace, random, textBytes = 0 } = this.options;
    const text = `${token}\n${'x'.repeat(textBytes)}`;
    const docs = ids.map((id) => ({ id, text, meta: { writer: name, token } }));
    const deletes = random() < 0.3 ? this.#someIds(3) : [];
    const after = new Map(this.#documents);
    for (const id of deletes) after.delete(id);
    for (const id of ids) after.set(id, { token, patch: null });
    return { method: 'POST', path: `/v1/namespaces/${namespace}/docs`, body: { docs, deletes }, after };
  }

  #someIds(count: number): string[] {
    const { name, ids, random } = this.options;
    const chosen = new Set<string>();
    for (let i = 0; i < count; i++) chosen.add(`${name}/${Math.floor(random() * ids)}`);
    return [...chosen];
  }
}

function deletion(namespace: string, ids: readonly string[], documents: Documents): Request {
  const after = new Map(documents);
  for (const id of ids) after.delete(id);
  return { method: 'POST', path: `/v1/namespaces/${namespace}/delete`, body: { ids }, after };
}

function patching(
  namespace: string,
  { ids, token, documents }: { ids: readonly string[]; token: string; documents: Documents },
): Request {
  const after = new Map(documents);
  for (const id of ids) after.set(id, { token: documents.get(id)?.token ?? '', patch: token });
  const docs = ids.map((id) => ({ id, meta: { patch: token } }));
  return { method: 'PATCH', path: `/v1/namespaces/${namespace}/docs`, body: { docs }, after };
}

/** Null where the connection broke before an answer came. */
export async function answerOrNull(
  api: ApiClient,
  method: string,
  path: string,
  body: unknown,
): Promise<ApiAnswer | null> {
  try {
    return await api.request(method, path, { body });
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return null;
  }
}

export function jsonOf(answer: ApiAnswer | null): unknown {
  assert.ok(answer !== null);
  return answer.json();
}

/** What an answer says of whether the request was applied. Throws for an answer that no right write gets. */
export function outcomeOf(answer: ApiAnswer | null): Outcome {
  if (answer === null) return 'unknown';
  if (answer.status < 300) return 'acknowledged';
  const { code, error } = answer.json() as ErrorBody;
  if (code === 'write_unknown') return 'unknown';
  // A namespace that is not there yet: its first write was lost.
  const expected = ['unavailable', 'write_busy', 'rate_limited', 'not_found'];
  assert.ok(expected.includes(code), `${answer.status} ${code}: ${error}`);
  return 'refused';
}

function same(a: Documents, b: Documents): boolean {
  return a.size === b.size && difference(a, b) === '';
}

/** The first few of `a` that `b` has not, or has otherwise. */
function difference(a: Documents, b: Documents): string {
  const lacking: string[] = [];
  for (const [id, held] of a) {
    const other = b.get(id);
    if (other?.token === held.token && other.patch === held.patch) continue;
    lacking.push(`${id}=${held.token}+${held.patch} (${other?.token ?? 'absent'}+${other?.patch ?? ''})`);
    if (lacking.length === 5) break;
  }
  return lacking.join(', ');
}

/** mulberry32: small, and the same on every machine. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
