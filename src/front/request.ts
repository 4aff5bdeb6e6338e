import type { Operation } from '../../protocol/operations.ts';
import type { PathParameters } from '../../protocol/routing.ts';
import type { Principal } from '../auth/principal.ts';
import type { AdmissionTicket } from './admission.ts';
import type { FrontComponents } from './front-components.ts';
import type { HttpExchange } from './http-types.ts';
import type { Observed } from './observed.ts';
import {
  CalledExchange,
  type OperationAnswered,
  type OperationCall,
  type Surface,
} from './operation-call.ts';

/**
 * A request on its way through the front. One object is made for each, and every step gets it and nothing else; what is found out on
 * the way is filled in.
 */
export interface RequestInHand extends Observed {
  readonly front: FrontComponents;
  /** Set once it is admitted: has the rate-limit headers, and is released when the answer has left. */
  ticket: AdmissionTicket | null;
}

/** A request for an operation. */
export interface OperationRequest extends RequestInHand {
  readonly operation: Operation;
  /** When the whole request was here, on the observer's clock. The time that a query may take counts from then. */
  completeMs: number;
  /** The body that came with an operation call; null where the client sends it, or the operation takes none. */
  readonly given: Uint8Array | null;
  readonly surface: Surface;
  /** The body once it is whole; null where the operation takes none. It is handed over to whoever does the work. */
  body: Uint8Array | null;
  /** The e-mail address of who asks, for operations that note it; else empty. */
  callerAddress: string;
}

/** A request whose caller is known, was let in, and may do what it asks for. `admit` makes it, and nobody else. */
export interface Admitted extends OperationRequest {
  /** Changes where it is looked up again: what was true of it when the head came may not be true any more. */
  principal: Principal;
  ticket: AdmissionTicket;
}

const noParameters: PathParameters = { name: undefined, id: undefined, provider: undefined };

export function requestForNothing(
  front: FrontComponents,
  exchange: HttpExchange,
  beganMs: number,
): RequestInHand {
  return {
    front,
    exchange,
    id: exchange.requestId,
    beganMs,
    operation: null,
    parameters: noParameters,
    principal: null,
    ticket: null,
    receivedBytes: 0,
    bodyHold: null,
    email: null,
    personId: null,
  };
}

/** Hot: the one object that a request has. */
export function requestFor(
  front: FrontComponents,
  exchange: HttpExchange,
  route: { readonly operation: Operation; readonly parameters: PathParameters },
  beganMs: number,
): OperationRequest {
  return {
    front,
    exchange,
    id: exchange.requestId,
    beganMs,
    completeMs: beganMs,
    operation: route.operation,
    parameters: route.parameters,
    given: null,
    surface: 'rest',
    body: null,
    principal: null,
    ticket: null,
    callerAddress: '',
    receivedBytes: 0,
    bodyHold: null,
    email: null,
    personId: null,
  };
}

const emptyBody = new Uint8Array();

/** `answered` gets the answer that a client of the REST operation would get. */
export function requestForCall(
  front: FrontComponents,
  call: OperationCall,
  answered: OperationAnswered,
): OperationRequest {
  const parameters = { ...noParameters, ...call.parameters };
  const exchange = new CalledExchange(call, answered);
  return {
    ...requestFor(front, exchange, { operation: call.operation, parameters }, front.observer.now()),
    given: call.body ?? emptyBody,
    surface: call.surface,
  };
}
