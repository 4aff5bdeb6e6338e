import type { ActorCall } from '../../protocol/messages.ts';
import { placementKey } from '../../protocol/placement.ts';
import { describeError } from '../../src/base/log.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { SingleFlight } from '../../src/base/single-flight.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import { type ActorReply, reply } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { notErasedStatus } from '../actor/directory.ts';

/** A deletion waits no longer for the objects before it hears that nobody is let in any more. */
const droppedToldMs = 3_000;

/** Namespaces that are being dropped, each once however often that is asked. */
export class Drops {
  readonly #components: Pick<ActorComponents, 'clock' | 'logger' | 'ownership'>;
  readonly #running = new SingleFlight<string, void>();

  constructor(components: Pick<ActorComponents, 'clock' | 'logger' | 'ownership'>) {
    this.#components = components;
  }

  /**
   * Answers a call to drop a namespace: 204 where it is gone, `notErasedStatus` where its objects may still be there. `erase` lets nobody in
   * from its first turn on, so whoever asked need not wait for the objects to know that. Rejects where it is not this server's.
   */
  async run(call: ActorCall, erase: () => Promise<void>): Promise<ActorReply> {
    const { clock, logger, ownership } = this.#components;
    const failure = this.#running.run(call.argument, erase).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    if (!(await settledWithin(clock, failure, droppedToldMs))) return notErased();
    const failed = await failure;
    if (failed === null) return reply('', { status: 204 });
    // Who has not got it has ended nothing.
    if (!ownership.isOwn(placementKey(call.tenantId, call.namespace))) throw failed.error;
    if (!(failed.error instanceof StoreError))
      logger.error('a deleted namespace was not erased', {
        namespaceId: call.argument,
        error: describeError(failed.error),
      });
    return notErased();
  }
}

function notErased(): ActorReply {
  return reply('', { status: notErasedStatus });
}
