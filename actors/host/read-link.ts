import { ApiError, noSuchNamespace } from '../../protocol/errors.ts';
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
  /** The name of the source, whose owner reads it. */
  readonly source: string;
  readonly link: ReadLink;

  constructor(source: string, link: ReadLink) {
    super('conflict', `"${link.name}" is a link and read-only: write to its source, "${source}"`);
    this.source = source;
    this.link = link;
  }
}

/** Throws where the name that was resolved is a link. */
export function refuseLink(name: string, { linked, namespaceId, createdAt }: ResolvedNamespace): void {
  if (linked === null) return;
  const { source, sourceId, version, follows } = linked;
  const link = { name, linkId: namespaceId, createdAt, sourceId, version: follows ? null : version };
  throw new NamespaceIsLink(source, link);
}

/**
 * Has the owner of the source answer a read of a link: what it answers, refusals too, is the answer. `spentMs` is the time that
 * the request has used by now.
 */
export async function readSource(
  { directory }: Pick<ActorComponents, 'directory'>,
  { source, link }: NamespaceIsLink,
  asked: {
    readonly call: ActorCall;
    readonly body: Uint8Array | null;
    readonly spentMs: number;
  },
): Promise<ActorReply> {
  const { call, body, spentMs } = asked;
  // A source is never a link: whoever has the name by now is another namespace.
  if (call.link !== undefined) throw noSuchNamespace(call.link.name);
  const deadlineMs = Math.max(1, call.deadlineMs - spentMs);
  const { answer, bytes } = await directory.read({ ...call, namespace: source, link, deadlineMs }, body);
  const { status, headers, meter } = answer;
  const { storeGets, storeBytes, ...used } = meter;
  const tally = { ...emptyReadTally(), storeGets, storeBytes };
  return reply('', { ...used, status, headers, packed: bytes, tally });
}
