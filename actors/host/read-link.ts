import { ApiError, sourceIsGone } from '../../protocol/errors.ts';
import type { ActorCall, ReadLink, ResolvedNamespace } from '../../protocol/messages.ts';
import { type ActorReply, reply } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { emptyReadTally } from '../storage/block-fetch.ts';

/**
 * A link was asked for as a namespace of its own, which it is not. Reads catch this and go on to the source; whatever else is asked of
 * a link is refused with it.
 */
export class NamespaceIsLink extends ApiError {
  override name = 'NamespaceIsLink';
  readonly link: ReadLink;

  constructor(link: ReadLink) {
    super('conflict', `"${link.name}" is a link and read-only: write to its source, "${link.source}"`);
    this.link = link;
  }
}

/** The link that the name is; null where it is none. */
export function linkOf(
  name: string,
  { linked, namespaceId, createdAt }: Pick<ResolvedNamespace, 'linked' | 'namespaceId' | 'createdAt'>,
): ReadLink | null {
  if (linked === null) return null;
  const { source, sourceId, version, follows } = linked;
  return { name, source, linkId: namespaceId, createdAt, sourceId, version: follows ? null : version };
}

/**
 * Has the owner of the source answer a read of a link: what it answers, refusals too, is the answer. `spentMs` is the time that
 * the request has used by now.
 */
export async function readSource(
  { directory }: Pick<ActorComponents, 'directory'>,
  { link }: NamespaceIsLink,
  asked: {
    readonly call: ActorCall;
    readonly body: Uint8Array | null;
    readonly spentMs: number;
  },
): Promise<ActorReply> {
  const { call, body, spentMs } = asked;
  // A source is never a link: whoever has the name by now is another namespace.
  if (call.link !== undefined) throw sourceIsGone(call.link);
  const deadlineMs = Math.max(1, call.deadlineMs - spentMs);
  const { answer, bytes } = await directory.read({ ...call, namespace: link.source, link, deadlineMs }, body);
  const { status, headers, meter } = answer;
  const { storeGets, storeBytes, ...used } = meter;
  const tally = { ...emptyReadTally(), storeGets, storeBytes };
  return reply('', { ...used, status, headers, packed: bytes, tally });
}
