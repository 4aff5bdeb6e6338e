import type { Operation } from '../../protocol/operations.ts';
import type { PathParameters } from '../../protocol/routing.ts';
import type { Principal } from '../auth/principal.ts';
import type { Hold } from '../base/byte-gate.ts';
import type { HttpExchange } from './http-types.ts';

/** What is known of a request on its way; parts that come later are filled in by the handler. */
export interface Observed {
  readonly exchange: HttpExchange;
  readonly id: string;
  /** When the request began, in milliseconds of the observer's clock. */
  readonly beganMs: number;
  /** What was asked for; null where nothing is at the request's path. */
  readonly operation: Operation | null;
  readonly parameters: PathParameters;
  /** Once it is authenticated. */
  principal: Principal | null;
  receivedBytes: number;
  /** The memory of its body, until whoever does the work has dropped it; null where it was not held. */
  bodyHold: Hold | null;
  /** The address in the body of an operation without credentials, as it was sent: whom it is about. */
  email: string | null;
  /** Whom such an operation turned out to be about, where neither its credentials nor its answer tell. */
  personId: number | null;
}
