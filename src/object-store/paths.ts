/** The only file that spells object keys. The layout is that of the commit protocol; see actors/README.md. */
import { sha256Hex } from '../base/hash.ts';

const twentyDigits = (n: number) => String(n).padStart(20, '0');
/** Spreads neighbours over prefixes, which S3 throttles one by one. */
const fan = (id: string) => sha256Hex(id).slice(0, 2);

export const paths = {
  view: 'cluster/view',
  /** How far the sweep for orphans has come. */
  swept: 'cluster/swept',
  lease: (logId: string) => `cluster/lease/${logId}`,

  /** What the keys of every log begin with. */
  logs: 'log/',
  logObject: (logId: string, slot: number) => `log/${logId}/${twentyDigits(slot)}`,
  logFloor: (logId: string) => `log/${logId}/floor`,
  logDone: (logId: string) => `log/${logId}/done`,
  /** What the keys of everything that a log consists of begin with. */
  logFolder: (logId: string) => `log/${logId}/`,
  /** What the keys of a log's blobs begin with. */
  logBlobs: (logId: string) => `log/${logId}/blob/`,
  logBlob: (logId: string, blobId: string) => `log/${logId}/blob/${blobId}`,
  /** Copies of the slots up to `lastSlot`: see actors/log/log-packs.ts. */
  logPack: (logId: string, lastSlot: number) => `log/${logId}/pack/${twentyDigits(lastSlot)}`,

  /** What the keys of all namespaces begin with. */
  namespaces: 'ns/',
  namespaceFolder: (namespaceId: string) => `ns/${fan(namespaceId)}/${namespaceId}/`,
  namespaceManifest: (namespaceId: string) => `ns/${fan(namespaceId)}/${namespaceId}/manifest`,
  namespaceSegment: (namespaceId: string, segmentId: string) =>
    `ns/${fan(namespaceId)}/${namespaceId}/segment/${segmentId}`,
  /** A set of deleted rows that is too large for the manifest. */
  namespaceTombstones: (namespaceId: string, id: string) =>
    `ns/${fan(namespaceId)}/${namespaceId}/deletes/${id}`,
  /** A graph over vectors of a segment. */
  namespaceGraph: (namespaceId: string, id: string) => `ns/${fan(namespaceId)}/${namespaceId}/graph/${id}`,

  /** What the keys of all tenants, people's accounts and OAuth clients begin with. */
  tenants: 'tenant/',
  accounts: 'account/',
  people: 'account/person/',
  emailClaims: 'account/email/',
  oauth: 'oauth/',

  tenantManifest: (tenantId: number) => `tenant/${fan(String(tenantId))}/${tenantId}/manifest`,
  tenantSegment: (tenantId: number, segmentId: string) =>
    `tenant/${fan(String(tenantId))}/${tenantId}/segment/${segmentId}`,

  /** The tenant's customer and subscription at the payment provider, and what was told there. */
  tenantBilling: (tenantId: number) => `tenant/${fan(String(tenantId))}/${tenantId}/billing`,
  /** What the keys of all claims of customers begin with. */
  customerClaims: 'account/customer/',
  /** The claim of a customer of the payment provider. */
  customerClaim: (customerId: string) => `account/customer/${customerId}`,

  /** What the tenant's people let MCP clients have. */
  tenantConnections: (tenantId: number) => `tenant/${fan(String(tenantId))}/${tenantId}/connections`,
  /** Registrations of OAuth clients that nobody has let connect yet; they go after a day. */
  unusedClients: 'oauth/unused-client/',
  unusedClient: (clientId: string) => `oauth/unused-client/${clientId}`,
  usedClient: (clientId: string) => `oauth/client/${clientId}`,

  person: (personId: number) => `account/person/${personId}`,
  /** The claim of an address, by the digest of its lower-cased form. */
  emailClaim: (emailDigest: string) => `account/email/${emailDigest}`,
  /** The claim of an API key, by the digest of the key. */
  keyClaim: (keyDigest: string) => `account/key/${keyDigest}`,

  /** Objects of the start-up probe; removed by it. */
  probes: 'probe/',
  probe: (id: string) => `probe/${id}`,
} as const;

/** The last slot of a pack's key; null for keys of other objects. */
export function lastSlotOfPackKey(key: string): number | null {
  const [, digits] = /^log\/[^/]+\/pack\/([0-9]{20})$/.exec(key) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** The slot of a log object's key; null for keys of other objects. */
export function logSlotOfKey(key: string): number | null {
  const [, digits] = /^log\/[^/]+\/([0-9]{20})$/.exec(key) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** The namespace that an object under `paths.namespaces` belongs to; null where the key is no such object's. */
export function namespaceOfKey(key: string): string | null {
  return /^ns\/[^/]+\/([^/]+)\//.exec(key)?.[1] ?? null;
}

/** The tenant whose manifest has this key; null for keys of other objects. */
export function tenantOfManifestKey(key: string): number | null {
  const [, digits] = /^tenant\/[^/]+\/([0-9]+)\/manifest$/.exec(key) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** Whether the object is replaced by newer ones under its key, as manifests and records are. */
export function isReplaced(key: string): boolean {
  return !/^(?:(?:ns|tenant)\/[^/]+\/[^/]+\/(?:segment|deletes|graph)|log\/[^/]+\/(?:blob|pack))\//.test(key);
}
