import { ApiError, apiErrorFromBody, sourceIsGone } from '../../protocol/errors.ts';
import { internalCalls } from '../../protocol/internal-calls.ts';
import {
  actorAnswerFromWire,
  actorCallToWire,
  type NewNamespace,
  noCaller,
  type ResolvedNamespace,
  type SharedNamespace,
} from '../../protocol/messages.ts';
import type { ProviderKeyRecord } from '../../protocol/stored-tenant.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';
import type { PortChannel } from '../../src/base/port-channel.ts';
import type { NamespaceDirectory } from './components.ts';

/** What a namespace answers that is being dropped, and not gone yet. */
export const notErasedStatus = 202;

/** A namespace lets nobody in any more, and its objects may still be there. */
export class NotErasedYet extends ApiError {
  constructor() {
    super('unavailable', 'the objects of this namespace are not all gone yet', { retryAfter: 1 });
  }
}

/** What the tenant knows of a name; null where it is none, or a link whose source is gone. */
export function unlessDangling(found: ResolvedNamespace | null): ResolvedNamespace | null {
  return found === null || found.isDangling ? null : found;
}

/** What the tenant knows of a name that a client named; null where it is none. Throws 404 where it is a link whose source is gone. */
export function refuseDangling(name: string, found: ResolvedNamespace | null): ResolvedNamespace | null {
  if (found?.isDangling === true && found.linked !== null)
    throw sourceIsGone({ name, source: found.linked.source });
  return found;
}

/** Calls to actors elsewhere: through the router at the other end of the front port, which knows where they live. */
export function createDirectory(channel: PortChannel): NamespaceDirectory {
  const call = async (
    operation: string,
    to: { tenantId: number; namespace: string; argument?: string; query?: string },
    body: Uint8Array | null = null,
  ): Promise<Uint8Array> => (await callWithStatus(operation, to, body)).bytes;
  const callWithStatus = async (
    operation: string,
    to: { tenantId: number; namespace: string; argument?: string; query?: string },
    body: Uint8Array | null = null,
  ): Promise<{ readonly status: number; readonly bytes: Uint8Array }> => {
    const { tenantId, namespace, argument = '', query = '' } = to;
    const wire = actorCallToWire({
      operation,
      tenantId,
      namespace,
      argument,
      query,
      deadlineMs: 10_000,
      caller: noCaller,
    });
    const answer = await channel.call(wire, body);
    const bytes = answer.body ?? new Uint8Array();
    const { status } = actorAnswerFromWire(answer.head);
    if (status >= 400) throw apiErrorFromBody(bytes);
    return { status, bytes };
  };
  const known = async (tenantId: number, name: string, create: NewNamespace | null) => {
    const to = { tenantId, namespace: '', argument: name };
    const body = create === null ? null : packMessage(create);
    return unpackMessage(await call(internalCalls.resolveNamespace, to, body)) as ResolvedNamespace | null;
  };
  return {
    async resolve(tenantId, name, create) {
      return unlessDangling(await known(tenantId, name, create));
    },
    async lookUp(tenantId, name, create) {
      return refuseDangling(name, await known(tenantId, name, create));
    },
    async confirm(tenantId, name, namespaceId) {
      await call(internalCalls.confirmNamespace, {
        tenantId,
        namespace: '',
        argument: name,
        query: namespaceId,
      });
    },
    async report(tenantId, name, report) {
      const to = { tenantId, namespace: '', argument: name };
      await call(internalCalls.reportNamespace, to, packMessage(report));
    },
    async reportHeld(tenantId, namespaceId, bytes) {
      const to = { tenantId, namespace: '', argument: namespaceId };
      await call(internalCalls.reportHeld, to, packMessage(bytes));
    },
    async storedBytes(tenantId) {
      return unpackMessage(await call(internalCalls.storedBytes, { tenantId, namespace: '' })) as number;
    },
    async admitHosted(tenantId, tokens) {
      await call(internalCalls.admitHosted, { tenantId, namespace: '', argument: String(tokens) });
    },
    async providerKey(tenantId, provider) {
      const to = { tenantId, namespace: '', argument: provider };
      return unpackMessage(await call(internalCalls.providerKey, to)) as ProviderKeyRecord | null;
    },
    async setEmbed(tenantId, name, change) {
      await call(internalCalls.setEmbed, { tenantId, namespace: '', argument: name }, packMessage(change));
    },
    async drop(tenantId, name, namespaceId) {
      const to = { tenantId, namespace: name, argument: namespaceId };
      const { status } = await callWithStatus(internalCalls.dropNamespace, to);
      if (status === notErasedStatus) throw new NotErasedYet();
    },
    async versionOf(tenantId, name, namespaceId) {
      const to = { tenantId, namespace: name, argument: namespaceId };
      return unpackMessage(await call(internalCalls.namespaceVersion, to)) as number | null;
    },
    async began(tenantId, name, namespaceId, stored) {
      const to = { tenantId, namespace: name, argument: namespaceId };
      await call(internalCalls.namespaceBegan, to, packMessage(stored));
    },
    async nearBlocks(tenantId, name, wanted) {
      const answer = await call(internalCalls.nearBlocks, { tenantId, namespace: name }, packMessage(wanted));
      return unpackMessage(answer) as readonly (Uint8Array | null)[];
    },
    async share(tenantId, name, namespaceId, request) {
      const to = { tenantId, namespace: name, argument: namespaceId };
      const answer = await call(internalCalls.shareNamespace, to, packMessage(request));
      return unpackMessage(answer) as SharedNamespace | null;
    },
    async release(tenantId, name, namespaceId, holderId) {
      const to = { tenantId, namespace: name, argument: namespaceId, query: holderId };
      await call(internalCalls.releaseNamespace, to);
    },
    async read(asked, body) {
      const answer = await channel.call(actorCallToWire(asked), body);
      return { answer: actorAnswerFromWire(answer.head), bytes: answer.body ?? new Uint8Array() };
    },
    async collect(tenantId, name, namespaceId) {
      await call(internalCalls.collectNamespace, { tenantId, namespace: name, argument: namespaceId });
    },
    async forget(tenantId) {
      await call(internalCalls.forgetTenant, { tenantId, namespace: '' });
    },
  };
}
