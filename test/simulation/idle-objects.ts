import { decodeManifest, encodeManifest } from '../../actors/storage/manifest.ts';
import { tenantManifestCodec } from '../../actors/tenant/tenant-state.ts';
import { must } from '../../src/base/assert.ts';
import { assertListing } from '../../src/object-store/keys.ts';
import type { ListOptions, ListPage } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { epochMs, StoredObjects, type StoredVersion } from './stored-objects.ts';

/** Who has been asked for nothing since long ago: so many tenants with so many namespaces each. */
export interface IdleData {
  readonly tenants: number;
  readonly namespacesEach: number;
}

/** The first idle tenant; those below are in use. */
const firstIdleTenant = 1_000_000;

/**
 * A store in which next to what is in use lie the manifests of idle tenants and of their namespaces. They are copies of those of one tenant
 * and one namespace that a server has made, under other names and ids, made when they are read: a million fit into memory.
 */
export class IdleObjects extends StoredObjects {
  readonly #idle = new Map<string, () => Uint8Array>();
  #sortedKeys: readonly string[] | null = null;
  #idleRead = 0;

  /** How many idle objects were read. */
  get idleRead(): number {
    return this.#idleRead;
  }

  /** Copies the tenant and its only namespace, both of which are flushed. */
  addIdle(
    { tenants, namespacesEach }: IdleData,
    like: { readonly tenantId: number; readonly namespace: string },
  ): void {
    const tenantKey = paths.tenantManifest(like.tenantId);
    const tenant = tenantManifestCodec.decode(
      must(this.find(tenantKey), 'a flushed tenant').bytes,
      tenantKey,
    );
    const entry = must(tenant.state.names.get(like.namespace), 'a name that the tenant knows');
    const key = paths.namespaceManifest(entry.namespaceId);
    const namespace = decodeManifest(must(this.find(key), 'a flushed namespace').bytes, key);
    for (let tenantId = firstIdleTenant; tenantId < firstIdleTenant + tenants; tenantId++) {
      const place = paths.tenantManifest(tenantId);
      this.#idle.set(place, () => {
        const names = new Map(
          Array.from({ length: namespacesEach }, (_, at) => [
            idleName(at),
            { ...entry, namespaceId: idleId(tenantId, at) },
          ]),
        );
        const record = { ...must(tenant.state.tenant, 'a tenant'), id: tenantId };
        return tenantManifestCodec.encode(
          { ...tenant, state: { ...tenant.state, tenant: record, names } },
          place,
        );
      });
      for (let at = 0; at < namespacesEach; at++) {
        const namespaceId = idleId(tenantId, at);
        this.#idle.set(paths.namespaceManifest(namespaceId), () =>
          encodeManifest({ ...namespace, tenantId, name: idleName(at), namespaceId }),
        );
      }
    }
    this.#sortedKeys = null;
  }

  override find(key: string): StoredVersion | undefined {
    const found = super.find(key);
    if (found !== undefined) return found;
    const make = this.#idle.get(key);
    if (make === undefined) return undefined;
    this.#idleRead++;
    return { bytes: make(), etag: '"idle"', createdMs: 0, modifiedMs: 0 };
  }

  override delete(key: string): void {
    if (this.#idle.delete(key)) this.#sortedKeys = null;
    super.delete(key);
  }

  override list(prefix: string, options: ListOptions, asOfMs: number): ListPage {
    assertListing(prefix, options);
    const page = super.list(prefix, options, asOfMs);
    const after = options.after ?? '';
    this.#sortedKeys ??= [...this.#idle.keys()].sort();
    const from = firstAtLeast(this.#sortedKeys, prefix > after ? prefix : after);
    const idle: string[] = [];
    for (let at = from; idle.length <= options.limit; at++) {
      const key = this.#sortedKeys[at];
      if (key === undefined || !key.startsWith(prefix)) break;
      if (key > after && super.find(key) === undefined) idle.push(key);
    }
    if (idle.length === 0) return page;
    const listed = idle.map((key) => ({ key, size: 1, modifiedAtMs: epochMs }));
    const objects = [...page.objects, ...listed].sort((a, b) => (a.key < b.key ? -1 : 1));
    return { objects: objects.slice(0, options.limit), more: page.more || objects.length > options.limit };
  }
}

export function idleTenant(number: number): number {
  return firstIdleTenant + number;
}

export function idleName(number: number): string {
  return `idle-${number}`;
}

function idleId(tenantId: number, at: number): string {
  return tenantId.toString(16).padStart(16, '0') + at.toString(16).padStart(16, '0');
}

function firstAtLeast(sorted: readonly string[], wanted: string): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle] as string) < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}
