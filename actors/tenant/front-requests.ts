import type { BeganRequest, BegunRequest, EndedRequest } from '../../protocol/messages.ts';
import type { TenantEvent } from '../../protocol/stored-tenant.ts';
import type { IdempotentRequests } from './idempotent-requests.ts';
import type { TenantLog } from './tenant-log.ts';

interface FrontRequestsParts {
  readonly log: TenantLog;
  readonly requests: IdempotentRequests;
}

/** Requests with an `Idempotency-Key` that the front does itself: each begins and ends here by a call of its own. */
export class FrontRequests {
  readonly #parts: FrontRequestsParts;

  constructor(parts: FrontRequestsParts) {
    this.#parts = parts;
  }

  /** Begins a request, before the front does anything. */
  async begin(request: BegunRequest): Promise<BeganRequest> {
    const { log, requests } = this.#parts;
    const begun = requests.begin(request);
    if ('done' in begun) return begun.done;
    const plannedId = begun.plannedId ?? request.plannedId;
    try {
      const stored = requests.stored({ ...request, plannedId }, null);
      if (begun.plannedId === null)
        await log.confirmed(log.append({ kind: 'answer-stored', answer: stored }));
    } catch (error) {
      begun.letGo();
      throw error;
    }
    return { kind: 'begun', plannedId };
  }

  async end({ outcome, ...request }: EndedRequest): Promise<void> {
    const { log, requests } = this.#parts;
    const { keyDigest } = request;
    try {
      if (outcome.kind === 'unknown') return;
      const event: TenantEvent =
        outcome.kind === 'done'
          ? { kind: 'answer-stored', answer: requests.stored(request, outcome) }
          : { kind: 'answer-forgotten', keyDigest };
      await log.confirmed(log.append(event));
    } finally {
      requests.ended(keyDigest);
    }
  }
}
