import { completeEffect, type Effect, type EffectRow } from './operations/effect.ts';

/** What a call between parts of the server says of itself; see `ActorCall`. Bodies and answers are MessagePack. */
interface InternalCallRow {
  /** What it is called on its way. */
  readonly name: string;
  /** Which side asks. Actors ask through the router, which knows where everybody lives. */
  readonly from: 'front' | 'namespace' | 'tenant' | 'any actor';
  readonly effect: EffectRow;
  /** Served while a server stops: with it namespaces and tenants end what they have begun. */
  readonly endsBegunWork?: boolean;
}

/** Every call that is no operation of the interface, once. All but `namespace.…` and `front.…` are done by a tenant's actor. */
const rows = {
  /** Makes a tenant, with a first key or without. Made again with the same id it is the same tenant. */
  createTenant: { name: 'tenant.create', from: 'front', effect: { does: 'write' } },
  /** → the key with what it has used, or null. */
  tenantKey: { name: 'tenant.key', from: 'front', effect: { does: 'read' } },
  /** → the tenant with what it has used, or null. */
  getTenant: { name: 'tenant.get', from: 'front', effect: { does: 'read' } },
  /** Adds what a front has counted; answers the standing, when the note is durable. Told again it would count twice. */
  noteUsage: { name: 'tenant.note-usage', from: 'front', effect: { does: 'write' } },
  /** Notes that the owner has verified their address: durable, and forgotten by every front, when it is answered. */
  ownerVerified: { name: 'tenant.owner-verified', from: 'front', effect: { does: 'write' } },
  /** Ends all keys, or those that a person made: durable, and forgotten by every front, when it is answered. */
  endKeys: { name: 'tenant.end-keys', from: 'front', effect: { does: 'write' } },
  /** Makes every front forget what it knows of a tenant's connections, and the tenant what those that ended have used. */
  forgetConnections: {
    name: 'tenant.forget-connections',
    from: 'front',
    effect: { does: 'write' },
  },
  /** → what the tenant's connections have used, by their ids. */
  connectionUse: { name: 'tenant.connection-use', from: 'front', effect: { does: 'read' } },
  /**
   * Gives the tenant another status: durable, and forgotten by every front, when it is answered. `deleting` ends the tenant.
   */
  setTenantStatus: { name: 'tenant.status', from: 'front', effect: { does: 'write' } },
  /**
   * Tells the tenant what follows from its subscription: BillingChange, durable, and forgotten by every front, when it is answered. One
   * that is older than what the tenant knows changes nothing.
   */
  setBilling: { name: 'tenant.billing', from: 'front', effect: { does: 'write', lost: 'unavailable' } },
  /** → MeteredUsage, which is durable when it is answered; null where there is no such tenant. */
  meteredUsage: { name: 'tenant.metered', from: 'front', effect: { does: 'write', lost: 'unavailable' } },
  /**
   * Begins a request with an `Idempotency-Key` that the front does itself: BegunRequest → BeganRequest, or 409 or 422. Nothing that
   * the client asked for is done yet, and the same request may begin again.
   */
  beginRequest: { name: 'tenant.begin', from: 'front', effect: { does: 'write', lost: 'unavailable' } },
  /** Ends such a request: EndedRequest, durable when it is answered. What the client asked for was done before. */
  endRequest: { name: 'tenant.end', from: 'front', effect: { does: 'write' } },
  /** → the namespace of a name; makes the name where it is asked to, not durably yet. */
  resolveNamespace: {
    name: 'tenant.resolve',
    from: 'namespace',
    effect: { does: 'write', lost: 'unavailable' },
  },
  /** Makes a name durable that `resolveNamespace` made. */
  confirmNamespace: {
    name: 'tenant.confirm',
    from: 'namespace',
    effect: { does: 'write' },
    endsBegunWork: true,
  },
  /** Tells what a namespace has written and stores, as totals: reported again it is the same. */
  reportNamespace: {
    name: 'tenant.report',
    from: 'namespace',
    effect: { does: 'write', lost: 'unavailable' },
    endsBegunWork: true,
  },
  /** Tells a tenant how many bytes of a deleted namespace others hold: durable when it is answered, and the same when it is told again. */
  reportHeld: {
    name: 'tenant.report-held',
    from: 'namespace',
    effect: { does: 'write', lost: 'unavailable' },
    endsBegunWork: true,
  },
  /** → what all namespaces of the tenant take in the store, in bytes. */
  storedBytes: { name: 'tenant.stored', from: 'any actor', effect: { does: 'read' } },
  /** → 402 where the allowance of the hosted embedding model is used up. */
  admitHosted: { name: 'tenant.admit-hosted', from: 'namespace', effect: { does: 'read' } },
  /** → the sealed key of an embedding provider, or null. */
  providerKey: { name: 'tenant.provider-key', from: 'namespace', effect: { does: 'read' } },
  /** Changes the embedding of a namespace, durably. */
  setEmbed: { name: 'tenant.embed', from: 'namespace', effect: { does: 'write' } },
  /** Erases a namespace whose name is gone. Whoever asked does so until it has ended. */
  dropNamespace: {
    name: 'namespace.drop',
    from: 'tenant',
    effect: { does: 'write', lost: 'unavailable' },
    endsBegunWork: true,
  },
  /** → the version of a namespace; null where the name does not lead to it. */
  namespaceVersion: { name: 'namespace.version', from: 'tenant', effect: { does: 'read' } },
  /** Tells the thread of a namespace that nobody knows yet of its first manifest, so that it opens without reading it. */
  namespaceBegan: {
    name: 'namespace.began',
    from: 'namespace',
    effect: { does: 'write', lost: 'unavailable' },
  },
  /** → blocks that the thread of a namespace has on its part of the local disk, as asked for, null for others. Opens nothing. */
  nearBlocks: { name: 'namespace.blocks', from: 'namespace', effect: { does: 'read' } },
  /** Has a namespace begin as another is: ShareRequest → SharedNamespace; null where that has another version, or the name is another's. */
  shareNamespace: {
    name: 'namespace.share',
    from: 'tenant',
    effect: { does: 'write', lost: 'unavailable' },
  },
  /** Lets go what a namespace holds of another one, whose name may be gone. Whoever calls repeats it until it is done. */
  releaseNamespace: {
    name: 'namespace.release',
    from: 'namespace',
    effect: { does: 'write', lost: 'unavailable' },
    endsBegunWork: true,
  },
  /** Collects what a namespace retired, where that is due. The next sweep asks again. */
  collectNamespace: {
    name: 'namespace.collect',
    from: 'namespace',
    effect: { does: 'write', lost: 'unavailable' },
  },
  /** Makes the front forget what it has cached of a tenant; answered when it is forgotten. */
  forgetTenant: { name: 'front.forget', from: 'tenant', effect: { does: 'read' } },
} as const satisfies Record<string, InternalCallRow>;

export interface InternalCall {
  readonly name: string;
  readonly from: InternalCallRow['from'];
  readonly effect: Effect;
  readonly endsBegunWork: boolean;
}

type Names = { readonly [Key in keyof typeof rows]: (typeof rows)[Key]['name'] };

/** What each is called on its way: the `operation` of an ActorCall. */
export const internalCalls = Object.fromEntries(
  Object.entries(rows).map(([key, { name }]) => [key, name]),
) as Names;

export const internalCallList: readonly InternalCall[] = Object.values<InternalCallRow>(rows).map((row) => ({
  name: row.name,
  from: row.from,
  effect: completeEffect(row.effect),
  endsBegunWork: row.endsBegunWork ?? false,
}));
