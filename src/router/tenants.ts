import { apiErrorFromBody } from '../../protocol/errors.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import {
  actorAnswerFromWire,
  type BeganRequest,
  type BegunRequest,
  type BillingChange,
  type ConnectionUse,
  type EndedRequest,
  type KeyStanding,
  type MeteredUsage,
  noCaller,
  type TenantStanding,
} from '../../protocol/messages.ts';
import type { KeyRecord, TenantRecord, UsageNote } from '../../protocol/stored-tenant.ts';
import type { TenantDirectory } from '../auth/authenticate.ts';
import { packMessage, unpackMessage } from '../base/msgpack.ts';
import type { TenantCreator } from '../identity/people.ts';
import type { Router } from './router.ts';

/** Tenants as the front sees them: their records, asked of their actors by message. */
export interface Tenants {
  /** Durable when it resolves; creating the same tenant again is success. */
  create(tenant: TenantRecord, firstKey: KeyRecord | null): Promise<void>;
  get(tenantId: number): Promise<TenantStanding | null>;
  key(tenantId: number, keyId: number): Promise<KeyStanding | null>;
  /** What all its namespaces take in the object store, in bytes, as they have told. */
  storedBytes(tenantId: number): Promise<number>;
  /** Takes what a front has counted: durable when it resolves, with what the tenant has used by then. */
  noteUsage(tenantId: number, notes: readonly UsageNote[]): Promise<TenantStanding | null>;
  /** Durable, and known to every front, when it resolves. */
  ownerVerified(tenantId: number): Promise<void>;
  /** Ends all keys, or those that a person made: durable, and forgotten by every front, when it resolves. */
  endKeys(tenantId: number, madeBy: number | null): Promise<void>;
  /** Every front has forgotten what it knew of these connections, and of the tenant's keys, when it resolves. */
  forgetConnections(tenantId: number, ids: readonly number[]): Promise<void>;
  /** When the tenant's connections were used last, by their ids. */
  connectionUse(tenantId: number): Promise<readonly ConnectionUse[]>;
  /** Durable, and known to every front, when it resolves. Throws 404 where there is none, or none any more. */
  setStatus(tenantId: number, status: TenantRecord['status']): Promise<void>;
  /** Durable, and known to every front, when it resolves; what is older than the tenant knows changes nothing. Throws 404. */
  setBilling(tenantId: number, change: BillingChange): Promise<void>;
  /** What is metered of it, durably; null where there is no such tenant. */
  meteredUsage(tenantId: number): Promise<MeteredUsage | null>;
  /** A request with an `Idempotency-Key` that the front does. Throws 409 and 422; see actors/tenant/idempotent-requests.ts. */
  beginRequest(tenantId: number, request: BegunRequest): Promise<BeganRequest>;
  endRequest(tenantId: number, request: EndedRequest): Promise<void>;
}

const callDeadlineMs = 10_000;

export function tenantsThrough(router: Pick<Router, 'call'>): Tenants {
  const ask = async (
    operation: string,
    to: { readonly tenantId: number; readonly argument?: string },
    body: Uint8Array | null = null,
  ): Promise<unknown> => {
    const call = {
      operation,
      tenantId: to.tenantId,
      namespace: '',
      argument: to.argument ?? '',
      query: '',
      deadlineMs: callDeadlineMs,
      caller: noCaller,
    };
    const answer = await router.call(call, body);
    const bytes = answer.body ?? new Uint8Array();
    if (actorAnswerFromWire(answer.head).status >= 400) throw apiErrorFromBody(bytes);
    return unpackMessage(bytes);
  };
  return {
    async create(tenant, firstKey) {
      await ask(internalCalls.createTenant, { tenantId: tenant.id }, packMessage({ tenant, firstKey }));
    },
    get: async (tenantId) => (await ask(internalCalls.getTenant, { tenantId })) as TenantStanding | null,
    key: async (tenantId, keyId) =>
      (await ask(internalCalls.tenantKey, { tenantId, argument: String(keyId) })) as KeyStanding | null,
    storedBytes: async (tenantId) => (await ask(internalCalls.storedBytes, { tenantId })) as number,
    noteUsage: async (tenantId, notes) =>
      (await ask(internalCalls.noteUsage, { tenantId }, packMessage(notes))) as TenantStanding | null,
    async ownerVerified(tenantId) {
      await ask(internalCalls.ownerVerified, { tenantId });
    },
    async endKeys(tenantId, madeBy) {
      await ask(internalCalls.endKeys, { tenantId }, packMessage({ madeBy }));
    },
    async forgetConnections(tenantId, ids) {
      await ask(internalCalls.forgetConnections, { tenantId }, packMessage({ ids }));
    },
    connectionUse: async (tenantId) =>
      (await ask(internalCalls.connectionUse, { tenantId })) as readonly ConnectionUse[],
    async setStatus(tenantId, status) {
      await ask(internalCalls.setTenantStatus, { tenantId }, packMessage({ status }));
    },
    async setBilling(tenantId, change) {
      await ask(internalCalls.setBilling, { tenantId }, packMessage(change));
    },
    meteredUsage: async (tenantId) =>
      (await ask(internalCalls.meteredUsage, { tenantId })) as MeteredUsage | null,
    beginRequest: async (tenantId, request) =>
      (await ask(internalCalls.beginRequest, { tenantId }, packMessage(request))) as BeganRequest,
    async endRequest(tenantId, request) {
      await ask(internalCalls.endRequest, { tenantId }, packMessage(request));
    },
  };
}

/** Who counts what they use hears of it whenever one is looked up. */
export interface StandingListener {
  learn(standing: TenantStanding): void;
  learnKey(tenantId: number, standing: KeyStanding): void;
}

/** What authentication needs of them. */
export function directoryOf(tenants: Tenants, listener: StandingListener): TenantDirectory {
  return {
    async key(tenantId, keyId) {
      const key = await tenants.key(tenantId, keyId);
      if (key === null) return null;
      listener.learnKey(tenantId, key);
      return {
        keyId: key.id as KeyId,
        scope: key.scope,
        namespaces: key.namespaces,
        caps: { ratePerS: key.ratePerSecond, queries: key.capQueries, writes: key.capWrites },
        createdBy: key.personId === 0 ? null : (key.personId as PersonId),
      };
    },
    async tenant(tenantId) {
      const tenant = await tenants.get(tenantId);
      if (tenant === null) return null;
      listener.learn(tenant);
      return {
        tenantId: tenant.id as TenantId,
        status: tenant.status,
        planName: tenant.plan,
        ownerVerified: tenant.ownerVerified,
        ownerId: tenant.ownerId,
      };
    },
  };
}

/** What signing up needs of them. */
export function creatorOf(tenants: Tenants, emailOf: (personId: number) => Promise<string>): TenantCreator {
  return {
    async createTenant({ tenantId, name, ownerId, firstKey }) {
      const createdAt = new Date(firstKey.createdAt).toISOString();
      await tenants.create(
        { id: tenantId, name, plan: 'free', status: 'active', ownerId, ownerVerified: false, createdAt },
        {
          id: firstKey.keyId,
          name: firstKey.name,
          prefix: firstKey.prefix,
          digest: firstKey.digest,
          scope: firstKey.scope,
          namespaces: [],
          ratePerSecond: null,
          capQueries: null,
          capWrites: null,
          createdAt,
          createdBy: await emailOf(ownerId),
          personId: ownerId,
        },
      );
    },
  };
}
