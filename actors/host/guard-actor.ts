import { ApiError } from '../../protocol/errors.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import { describeError } from '../../src/base/log.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { NamespaceActor } from '../namespace/namespace-actor.ts';
import { ActorClosed, Deposed } from '../storage/manifest-store.ts';
import { isReadFailure } from '../storage/read-failure.ts';

/** Runs work of an actor, and closes the actor if the work breaks: its state can no longer be trusted, the durable one can. */
export async function guardActor<T>(
  { logger }: Pick<ActorComponents, 'logger'>,
  { operation, namespace, caller }: ActorCall,
  { actor, work }: { readonly actor: NamespaceActor; readonly work: () => Promise<T> },
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError || error instanceof StoreError || error instanceof ActorClosed) throw error;
    actor.close();
    const { requestId } = caller;
    const fields = { requestId, operation, namespace, error: describeError(error) };
    // While data moves, its next owner may be the faster one to change the manifest.
    if (error instanceof Deposed)
      logger.info('an actor is closed, because its namespace has another owner', fields);
    else logger.error('an actor failed and is closed', fields);
    if (!(error instanceof Deposed) && !isReadFailure(error)) throw error;
    // The record may be durable: then the next actor applies it.
    const sentence =
      'this namespace changed its owner, or could not be read: the write may or may not be applied';
    throw new ApiError('write_unknown', sentence, { retryAfter: 1 });
  }
}
