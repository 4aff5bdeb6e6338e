import type { PersonId } from '../../protocol/ids.ts';
import type { PathParameters } from '../../protocol/routing.ts';
import type { Principal } from '../auth/principal.ts';

/** A request for an operation that the front does itself. `body` is parsed JSON; of a signed one the bytes, as they were sent. */
export interface FrontRequest {
  readonly body: unknown;
  /** The `Stripe-Signature` of a signed body. */
  readonly signature?: string | undefined;
  /** The caller; null where the operation takes no credentials. */
  readonly principal: Principal | null;
  /** The client's address as text: behind trusted proxies the one that they name. */
  readonly clientAddress: string;
  /** `X-Tenant` as sent. */
  readonly tenant: string | undefined;
  /** Tells the audit log whom a request without credentials turned out to be about. */
  readonly isAbout: (personId: PersonId) => void;
  readonly parameters: PathParameters;
  /** The id of what the operation makes: the same one whenever this request is repeated with its `Idempotency-Key`. */
  readonly plannedId: number;
}

export type FrontOperation = (request: FrontRequest) => Promise<unknown>;
