/**
 * Copies of namespaces that others own, for reads that want an answer although the owner gives none: `consistency: "eventual"`. They are made when
 * they are asked for, read for a second, and made again. Every answer says that it is stale, and how old it may be.
 */
import { consistencies } from '../../protocol/document.ts';
import { ApiError, noSuchNamespace } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import { DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import type { ActorReply } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { NamespaceCopy } from '../namespace/namespace-copy.ts';
import { emptyReadTally } from '../storage/block-fetch.ts';
import { ReadDeadline } from '../storage/read-deadline.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { ReadShares } from '../storage/read-share.ts';
import { readBody } from '../thread/request-body.ts';
import type { Turn } from '../thread/turn.ts';
import { slotKey } from './open-actors.ts';
import { linkOf, NamespaceIsLink, readSource } from './read-link.ts';

export class Copies {
  readonly #components: ActorComponents;
  readonly #readShares: ReadShares;
  /** By the key of their namespace, also those that are being made. */
  readonly #kept = new Map<string, Promise<NamespaceCopy>>();
  #reads = 0;
  #ageMs = 0;

  constructor(components: ActorComponents, readShares: ReadShares) {
    this.#components = components;
    this.#readShares = readShares;
  }

  get statistics(): { readonly open: number; readonly reads: number; readonly ageMs: number } {
    return { open: this.#kept.size, reads: this.#reads, ageMs: this.#ageMs };
  }

  /** Owners have changed: what was made before says nothing of those that are now. */
  clear(): void {
    for (const [key, copy] of [...this.#kept]) this.#forget(key, copy);
  }

  /** Answers a read from what is stored. Throws 503 where that can't be, and for a read that did not ask for it. */
  async read(call: ActorCall, body: Uint8Array | null, turn: Turn): Promise<ActorReply> {
    if (!asksForEventual(call, body)) throw ownerOnly();
    const { clock } = this.#components;
    const beganAt = clock.monotonic();
    const { querySeconds, readInflightBytes } = call.caller;
    const deadline = new ReadDeadline(clock, Math.min(call.deadlineMs, querySeconds * 1_000), turn.beganAt);
    const tally = emptyReadTally(this.#readShares.of(call.tenantId, readInflightBytes), deadline);
    try {
      const copy = await deadline.wait(this.#copyOf(call));
      const end = copy.read();
      try {
        const opened = { tally, deadline, turn, foundAs: 'local' } as const;
        const { link } = copy;
        const asked = link === null ? call : { ...call, link };
        const answer = copy.queries.handle(asked, body, opened);
        const reply = await answer.catch((error) => {
          throw isMissing(error) ? asOf(error, this.#ageOf(copy)) : error;
        });
        return withAge(reply, this.#ageOf(copy));
      } finally {
        end();
      }
    } catch (error) {
      if (error instanceof NamespaceIsLink) {
        const { fromCopy: _, ...asked } = call;
        return readSource(this.#components, error, {
          call: asked,
          body,
          spentMs: clock.monotonic() - beganAt,
        });
      }
      if (error instanceof ApiError) throw error;
      const { requestId } = call.caller;
      const isOfStore = error instanceof StoreError || error instanceof DataError || isReadFailure(error);
      if (!isOfStore)
        this.#components.logger.error('a copy could not be read', { requestId, error: describeError(error) });
      throw new ApiError('unavailable', 'stored data could not be read; try again', {
        retryAfter: 1,
        cause: error,
      });
    }
  }

  #ageOf({ asOfMs }: NamespaceCopy): number {
    const ageMs = Math.max(0, Math.ceil(this.#components.clock.monotonic() - asOfMs));
    this.#reads++;
    this.#ageMs += ageMs;
    return ageMs;
  }

  async #copyOf(call: ActorCall): Promise<NamespaceCopy> {
    const { clock } = this.#components;
    const key = slotKey(call.tenantId, call.namespace);
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    if (this.#kept.size >= limits.copiesMax) throw tooManyCopies();
    const copy = this.#make(call);
    this.#kept.set(key, copy);
    const forget = () => this.#forget(key, copy);
    // What failed is tried again by whoever asks next.
    copy.then(() => clock.after(limits.copyKeptMs, forget), forget);
    return copy;
  }

  async #make({ tenantId, namespace }: ActorCall): Promise<NamespaceCopy> {
    const { directory } = this.#components;
    const resolved = await directory.lookUp(tenantId, namespace, null);
    if (resolved === null) throw noSuchNamespace(namespace);
    const link = linkOf(namespace, resolved);
    if (link !== null && link.version === null) throw new NamespaceIsLink(link);
    const { namespaceId, createdAt } = resolved;
    const identity = { tenantId, name: namespace, namespaceId, createdAt };
    return NamespaceCopy.open(this.#components, identity, { resolved, link, tally: emptyReadTally() });
  }

  #forget(key: string, copy: Promise<NamespaceCopy>): void {
    if (this.#kept.get(key) !== copy) return;
    this.#kept.delete(key);
    copy.then(
      (made) => made.close(),
      () => {},
    );
  }
}

/** Whether the read says so itself: the router only guesses. What is wrong with it otherwise is said by whoever answers it. */
function asksForEventual({ query }: ActorCall, body: Uint8Array | null): boolean {
  const [, eventual] = consistencies;
  if (body === null) return parseQueryString(query).get('consistency') === eventual;
  const asked = readBody(body);
  return (
    typeof asked === 'object' && asked !== null && 'consistency' in asked && asked.consistency === eventual
  );
}

/** The answer with what it says of its age as its first fields. */
function withAge(reply: ActorReply, ageMs: number): ActorReply {
  const fields = `{"stale":true,"age_ms":${ageMs},`;
  const { packed } = reply;
  if (packed === undefined) return { ...reply, json: fields + reply.json.slice(1) };
  return { ...reply, packed: Buffer.concat([Buffer.from(fields), packed.subarray(1)]) };
}

function isMissing(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 'not_found';
}

/** That something is not there is an answer too, and an error has no other place for its age. */
function asOf({ message }: ApiError, ageMs: number): ApiError {
  return new ApiError(
    'not_found',
    `${message}, as of ${ageMs} ms ago: the server that owns it is out of reach`,
  );
}

function tooManyCopies(): ApiError {
  const sentence = 'too many namespaces are read while the servers that own them are out of reach; ask again';
  return new ApiError('unavailable', sentence, { retryAfter: 1 });
}

function ownerOnly(): ApiError {
  return new ApiError('unavailable', 'the server that owns this data is out of reach', { retryAfter: 1 });
}
