import { ApiError } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import type {
  ActorCall,
  BegunRequest,
  BillingChange,
  EmbedChange,
  EndedRequest,
  NewNamespace,
} from '../../protocol/messages.ts';
import type { KeyRecord, NamespaceReport, TenantRecord, UsageNote } from '../../protocol/stored-tenant.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import { type ActorReply, reply } from '../actor/actor-reply.ts';
import type { TenantActor } from './tenant-actor.ts';

/** A tenant's operations between threads, as MessagePack. */
export async function handleInternalTenantCall(
  actor: TenantActor,
  call: ActorCall,
  body: Uint8Array,
): Promise<ActorReply> {
  switch (call.operation) {
    case internalCalls.createTenant: {
      const { tenant, firstKey } = unpackMessage(body) as {
        tenant: TenantRecord;
        firstKey: KeyRecord | null;
      };
      await actor.life.create(tenant, firstKey);
      return packed(null);
    }
    case internalCalls.tenantKey:
      return packed(actor.keys.standing(Number(call.argument)));
    case internalCalls.getTenant:
      return packed(actor.account.standing());
    case internalCalls.admitHosted:
      actor.account.admitHosted(Number(call.argument));
      return packed(null);
    case internalCalls.noteUsage:
      await actor.account.noteUsage(unpackMessage(body) as UsageNote[]);
      return packed(actor.account.standing());
    case internalCalls.ownerVerified:
      await actor.life.verifyOwner();
      return packed(null);
    case internalCalls.endKeys:
      await actor.keys.endAll((unpackMessage(body) as { readonly madeBy: number | null }).madeBy);
      return packed(null);
    case internalCalls.forgetConnections:
      await actor.keys.forgetConnections((unpackMessage(body) as { readonly ids: readonly number[] }).ids);
      return packed(null);
    case internalCalls.connectionUse:
      return packed(actor.keys.connectionUse());
    case internalCalls.setTenantStatus:
      await actor.life.setStatus((unpackMessage(body) as Pick<TenantRecord, 'status'>).status);
      return packed(null);
    case internalCalls.setBilling:
      await actor.life.setBilling(unpackMessage(body) as BillingChange);
      return packed(null);
    case internalCalls.meteredUsage:
      return packed(await actor.meteredUsage());
    case internalCalls.beginRequest:
      return packed(await actor.frontRequests.begin(unpackMessage(body) as BegunRequest));
    case internalCalls.endRequest:
      await actor.frontRequests.end(unpackMessage(body) as EndedRequest);
      return packed(null);
    case internalCalls.resolveNamespace:
      return packed(
        await actor.names.resolve(
          call.argument,
          body.length === 0 ? null : (unpackMessage(body) as NewNamespace),
        ),
      );
    case internalCalls.confirmNamespace:
      await actor.names.confirm(call.argument, call.query);
      return packed(null);
    case internalCalls.reportNamespace:
      await actor.ledger.report(call.argument, unpackMessage(body) as NamespaceReport);
      return packed(null);
    case internalCalls.reportHeld:
      await actor.ledger.reportHeld(call.argument, unpackMessage(body) as number);
      return packed(null);
    case internalCalls.providerKey:
      return packed(actor.embeddingKeys.find(call.argument));
    case internalCalls.setEmbed:
      await actor.names.setEmbed(call.argument, unpackMessage(body) as EmbedChange);
      return packed(null);
    case internalCalls.storedBytes:
      return packed(actor.ledger.storedBytes);
    default:
      throw new ApiError('not_implemented', `nothing of a tenant does ${call.operation}`);
  }
}

function packed(value: unknown): ActorReply {
  return reply('', { packed: packMessage(value) });
}
