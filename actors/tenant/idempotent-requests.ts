import { ApiError } from '../../protocol/errors.ts';
import type { BeganRequest, BegunRequest } from '../../protocol/messages.ts';
import type { ProviderKeyRecord, StoredAnswer } from '../../protocol/stored-tenant.ts';
import { openAnswer, sealAnswer } from '../../src/accounts/answer-envelope.ts';
import type { ActorComponents } from '../actor/components.ts';
import { storedAnswer } from './stored-answers.ts';

type Components = Pick<ActorComponents, 'clock' | 'random' | 'keyEncryptionKeys'>;

interface KnownAnswers {
  readonly tenantId: number;
  answers(): ReadonlyMap<string, StoredAnswer>;
}

/**
 * Requests with an `Idempotency-Key`, of one tenant. A key is one request's: sent again, it is answered as it was the first
 * time; while the first is under way, 409; with another request, 422.
 *
 * What a request does and what it was answered become durable together. Where the tenant does the work itself both are one
 * event. Where the front does it, the id of what is made is durable before anything is made of it, so that a repetition after
 * a crash makes the same thing again, which is none more.
 *
 * Only success is kept: a refusal has changed nothing, and its reason may be gone when the request comes again.
 */
export class IdempotentRequests {
  readonly #components: Components;
  readonly #known: KnownAnswers;
  /** Digests of keys whose requests are under way. Of those that the front does, it says when they have ended. */
  readonly #running = new Set<string>();

  constructor(components: Components, known: KnownAnswers) {
    this.#components = components;
    this.#known = known;
  }

  /** What was answered before, or the run that whoever does the work now has to end. Throws 409 and 422. */
  begin(
    request: Omit<BegunRequest, 'plannedId'>,
  ): { readonly done: Extract<BeganRequest, { kind: 'done' }> } | IdempotentRun {
    const { keyDigest, requestDigest } = request;
    if (this.#running.has(keyDigest)) {
      const sentence = 'a request with this Idempotency-Key is under way: wait for its answer';
      throw new ApiError('conflict', sentence, { retryAfter: 1 });
    }
    const before = storedAnswer(this.#known.answers(), keyDigest, this.#components.clock.now());
    if (before !== null && before.requestDigest !== requestDigest) {
      throw new ApiError('invalid', 'Idempotency-Key: was sent with another request', {
        fields: { 'Idempotency-Key': 'was sent with another request' },
      });
    }
    if (before !== null && before.envelope !== null) return { done: this.#opened(before, before.envelope) };
    this.#running.add(keyDigest);
    return new IdempotentRun(before?.plannedId ?? null, () => this.#running.delete(keyDigest));
  }

  /** Ends a request that was begun by a call of its own. */
  ended(keyDigest: string): void {
    this.#running.delete(keyDigest);
  }

  /** For the event that makes it durable. `answer` null: the request has only begun. */
  stored(
    { keyDigest, requestDigest, plannedId }: BegunRequest,
    answer: { readonly status: number; readonly text: string } | null,
  ): StoredAnswer {
    const { clock, random, keyEncryptionKeys } = this.#components;
    const owner = { tenantId: this.#known.tenantId, keyDigest, requestDigest };
    const envelope = answer === null ? null : sealAnswer(keyEncryptionKeys, owner, answer.text, random);
    return { keyDigest, requestDigest, plannedId, at: clock.now(), status: answer?.status ?? 0, envelope };
  }

  #opened(
    { keyDigest, requestDigest, status }: StoredAnswer,
    envelope: ProviderKeyRecord['envelope'],
  ): Extract<BeganRequest, { kind: 'done' }> {
    const owner = { tenantId: this.#known.tenantId, keyDigest, requestDigest };
    const answer = openAnswer(this.#components.keyEncryptionKeys, owner, envelope);
    if (answer !== null) return { kind: 'done', status, answer };
    const sentence =
      'this request was done, and its answer was kept under another TIDEBASE_KEY_ENCRYPTION_KEY';
    throw new ApiError('conflict', sentence);
  }
}

/** A request under way. Its key is taken until every one who holds it has let go. */
export class IdempotentRun {
  /** The id that an earlier beginning planned, which is not known to have ended; null where there was none. */
  readonly plannedId: number | null;
  readonly #release: () => void;
  #holds = 1;

  constructor(plannedId: number | null, release: () => void) {
    this.plannedId = plannedId;
    this.#release = release;
  }

  /** A client may be told that nobody knows what became of its request while this is still open. */
  holdUntil(work: Promise<unknown>): void {
    this.#holds++;
    const letGo = () => this.letGo();
    work.then(letGo, letGo);
  }

  letGo(): void {
    this.#holds--;
    if (this.#holds === 0) this.#release();
  }
}

/** How a request with an `Idempotency-Key` is to be remembered, once its answer is known. */
export interface Remembering<Made> {
  readonly run: IdempotentRun;
  answer(made: Made): StoredAnswer;
}
