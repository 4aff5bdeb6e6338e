/**
 * The clients of a simulated world. Each has one request under way at a time, writes documents that say by which request
 * they were written, and tells the history what it asked, when, and what it heard.
 *
 * Some ids belong to everybody. Others come in groups that are only ever put or deleted whole, by one client, so that any
 * reader sees all of a group with one token or nothing of it.
 */
import type { Chance } from './chance.ts';
import type { DerivedClient } from './derived-client.ts';
import { type Change, type DocumentPatch, documentValue, type ReadOp, type Value } from './history.ts';
import type { Answer, SimulatedProcess } from './process.ts';
import type { World } from './world.ts';

export interface Place {
  readonly tenantId: number;
  readonly namespace: string;
}

const operationWeights = {
  put: 34,
  patch: 11,
  remove: 9,
  get: 12,
  list: 15,
  count: 5,
  describe: 2,
  names: 2,
  create: 2,
  drop: 2.5,
};

export const sharedIds = 7;
const groups = 4;
export const groupSize = (group: number) => 2 + (group % 3);
/** A client gives an answer up after this long. */
export const patienceMs = 20_000;
/** Makes a record too large for the log itself. */
const fillerBytes = 2_000;

export interface Request {
  readonly operation: string;
  /** Empty: it goes to the tenant. */
  readonly namespace: string;
  readonly asked: {
    readonly argument?: string;
    readonly query?: string;
    readonly body?: unknown;
    readonly tenantId: number;
  };
  /** Null for what only reads. */
  readonly change: Change | null;
}

export interface ClientParts {
  readonly chance: Chance;
  readonly places: readonly Place[];
  readonly derived: DerivedClient | null;
}

export class Client {
  readonly #name: string;
  readonly #world: World;
  readonly #chance: Chance;
  readonly #places: readonly Place[];
  readonly #thinkMsMax: number;
  readonly #derived: DerivedClient | null;
  #requests = 0;

  /** `derived`: its use of links and branches, in worlds that have them. */
  constructor(name: string, world: World, { chance, places, derived }: ClientParts) {
    this.#derived = derived;
    this.#name = name;
    this.#world = world;
    this.#chance = chance;
    this.#places = places;
    this.#thinkMsMax = chance.pick([50, 400, 2_000, 4_000]);
  }

  /** Asks until the world has seen enough. */
  async run(): Promise<void> {
    const { scheduler } = this.#world;
    while (this.#world.takeTurn()) {
      await this.#world.think(this.#chance.fraction() * this.#thinkMsMax, this.#chance);
      const process = this.#world.processFor(this.#chance);
      if (process === null) {
        await scheduler.sleep(100);
        continue;
      }
      await this.askOnce(process);
    }
  }

  async askOnce(process: SimulatedProcess): Promise<void> {
    const token = `${this.#name}.${++this.#requests}`;
    if (await this.#derived?.askOnce(process, token)) return;
    const place = this.#chance.pick(this.#places);
    const request = this.#request(place, token);
    await this.#world.ask({ process, place, token, request, patienceMs });
  }

  #request({ tenantId, namespace }: Place, token: string): Request {
    const chance = this.#chance;
    const kind = chance.weighted(operationWeights);
    switch (kind) {
      case 'put':
        return this.#put({ tenantId, namespace }, token);
      case 'patch':
        return this.#patch({ tenantId, namespace }, token);
      case 'remove': {
        // An id that never was tells in the log whose record it is.
        const ids = [...this.#deletable(), `${token};`];
        const change = { kind: 'put', docs: [], deletes: ids } as const;
        return { operation: 'deleteDocuments', namespace, asked: { tenantId, body: { ids } }, change };
      }
      case 'get':
        return {
          operation: 'getDocument',
          namespace,
          asked: { tenantId, argument: chance.pick([this.#sharedId(), this.#groupId()]) },
          change: null,
        };
      case 'list':
        return { operation: 'search', namespace, asked: { tenantId, body: { limit: 1_000 } }, change: null };
      case 'count':
        return { operation: 'count', namespace, asked: { tenantId, body: {} }, change: null };
      case 'describe':
        return { operation: 'getNamespace', namespace, asked: { tenantId }, change: null };
      case 'names':
        return { operation: 'listNamespaces', namespace: '', asked: { tenantId }, change: null };
      case 'create':
        return {
          operation: 'createNamespace',
          namespace: '',
          asked: { tenantId, body: { name: namespace } },
          change: null,
        };
      case 'drop':
        return {
          operation: 'deleteNamespace',
          namespace: '',
          asked: { tenantId, argument: namespace },
          change: { kind: 'drop' },
        };
    }
  }

  #put({ tenantId, namespace }: Place, token: string): Request {
    const chance = this.#chance;
    const filler = chance.happens(0.06) ? ` ${'tide '.repeat(fillerBytes / 5)}` : '';
    const ids = new Set<string>();
    if (chance.happens(0.7)) for (const id of this.#groupIds(chance.integer(0, groups - 1))) ids.add(id);
    while (ids.size === 0 || chance.happens(0.4)) ids.add(this.#sharedId());
    const docs = [...ids].map((id) => ({ id, text: `${token}\n${filler}`, meta: { token } }));
    const deletes = chance.happens(0.2) ? this.#deletable().filter((id) => !ids.has(id)) : [];
    const value = documentValue(token, token, '');
    const change = {
      kind: 'put',
      docs: docs.map(({ id }): [string, Value] => [id, value]),
      deletes,
    } as const;
    return { operation: 'putDocuments', namespace, asked: { tenantId, body: { docs, deletes } }, change };
  }

  #patch({ tenantId, namespace }: Place, token: string): Request {
    const chance = this.#chance;
    const ids = new Set([chance.pick([this.#sharedId(), this.#groupId()])]);
    while (chance.happens(0.3)) ids.add(this.#sharedId());
    const docs: DocumentPatch[] = [...ids].map((id) =>
      chance.happens(0.5) ? { id, patch: token } : { id, text: token },
    );
    const body = {
      docs: docs.map(({ id, text, patch }) =>
        text === undefined ? { id, meta: { patch } } : { id, text: `${text}\n` },
      ),
    };
    return {
      operation: 'patchDocuments',
      namespace,
      asked: { tenantId, body },
      change: { kind: 'patch', docs },
    };
  }

  #sharedId(): string {
    return `s${this.#chance.integer(0, sharedIds - 1)}`;
  }

  #groupIds(group: number): string[] {
    return Array.from({ length: groupSize(group) }, (_, i) => `${this.#name}-${group}-${i}`);
  }

  #groupId(): string {
    return this.#chance.pick(this.#groupIds(this.#chance.integer(0, groups - 1)));
  }

  /** Shared ids, or a whole group. */
  #deletable(): string[] {
    const chance = this.#chance;
    if (chance.happens(0.4)) return this.#groupIds(chance.integer(0, groups - 1));
    const ids = new Set([this.#sharedId()]);
    while (chance.happens(0.4)) ids.add(this.#sharedId());
    return [...ids];
  }
}

/** What a read's answer shows; null where it is of no use to the history. */
export function sawOf(
  operation: string,
  answer: Answer,
  id: string,
): { readonly saw: ReadOp['saw']; readonly version: number | null } | null {
  const { body, status } = answer;
  const isMissing = status === 404;
  if (status !== 200 && !isMissing) return null;
  switch (operation) {
    case 'getDocument': {
      const value = isMissing
        ? null
        : documentValue(body.meta.token ?? '', firstLine(body.text ?? ''), body.meta.patch ?? '');
      return { saw: { kind: 'one', id, value }, version: null };
    }
    case 'count':
      if (isMissing) return { saw: { kind: 'count', count: 0 }, version: null };
      return { saw: { kind: 'count', count: body.count }, version: body.version };
    case 'search': {
      if (isMissing) return { saw: { kind: 'all', docs: new Map() }, version: null };
      if (body.partial || body.next !== '') return null;
      const docs = new Map<string, Value>();
      for (const { id: hit, line, meta } of body.hits) {
        // Twice the same id would be hidden by the map: it must not be the document.
        docs.set(
          docs.has(hit) ? `${hit} again` : hit,
          documentValue(meta.token ?? '', line, meta.patch ?? ''),
        );
      }
      return { saw: { kind: 'all', docs }, version: body.version };
    }
    default:
      return null;
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
