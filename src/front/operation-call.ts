import type { Operation } from '../../protocol/operations.ts';
import type { PathParameters } from '../../protocol/routing.ts';
import type { Principal } from '../auth/principal.ts';
import { assert } from '../base/assert.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { HttpAnswer, HttpExchange } from './http-types.ts';

/**
 * One operation that is asked for inside another request, for a caller who is authenticated already: an MCP tool call is one.
 * `runOperation` of handle.ts runs it, with the limits, authorisation, metering, metrics, audit and errors of its REST request.
 */
export interface OperationCall {
  readonly operation: Operation;
  /** Path parameters by name, decoded; those that the operation has must be there. */
  readonly parameters: Partial<PathParameters>;
  /** The query string as it would stand in a URL, without its question mark; empty for none. */
  readonly query: string;
  /**
   * The JSON body, or null for none: an operation with several methods is then its GET. It is handed over with its whole buffer,
   * which may move to another thread: don't touch it afterwards. Whoever read it from the client holds its memory.
   */
  readonly body: Uint8Array<ArrayBuffer> | null;
  /** Found just now: it isn't authenticated again before the operation runs. */
  readonly principal: Principal;
  /** The request that this is a part of: gives the id, the client's address, and the end of whoever waits for the answer. */
  readonly outer: HttpExchange;
  readonly surface: Surface;
  /** What the `Idempotency-Key` of a REST request would say; operations that heed none ignore it. */
  readonly idempotencyKey?: string | undefined;
}

/** Takes the REST answer of an operation call. `sent` of it must be released by whoever gets it. */
export type OperationAnswered = (answer: HttpAnswer) => void;

/** The interface through which an operation was asked for: `mcp` is counted as `mcp_queries` and `mcp_writes` too. */
export type Surface = 'rest' | 'mcp';

/**
 * An operation call as the exchange that the front answers. It reads nothing from a client: the body is there, and of the outer
 * request's headers only those that name the client's address pass through.
 */
export class CalledExchange implements HttpExchange {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #outer: HttpExchange;
  readonly #idempotencyKey: string | undefined;
  readonly #answered: OperationAnswered;
  #isAnswered = false;

  /** `answered` is called once, also where nobody waits any more: `sent` of the answer must be released by somebody. */
  constructor(call: OperationCall, answered: OperationAnswered) {
    const { operation, query, body, outer } = call;
    this.requestId = outer.requestId;
    this.method = methodOf(operation, body);
    this.path = operation.path;
    this.query = query;
    this.#outer = outer;
    this.#idempotencyKey = call.idempotencyKey;
    this.#answered = answered;
  }

  get remoteAddress(): string {
    return this.#outer.remoteAddress;
  }

  get aborted(): boolean {
    return this.#outer.aborted;
  }

  get declaredBytes(): number {
    return CHUNKED_BODY;
  }

  header(name: string): string | undefined {
    if (name === 'idempotency-key') return this.#idempotencyKey;
    return name === 'x-forwarded-for' ? this.#outer.header(name) : undefined;
  }

  onAbort(run: () => void): void {
    this.#outer.onAbort(run);
  }

  readBody(): Promise<ArrayBuffer> {
    return Promise.reject(new Error('the body of an operation call is given with it'));
  }

  streamBody(): Promise<number> {
    return Promise.reject(new Error('an operation call has no body to stream'));
  }

  /** The outer request's deadline holds. */
  allowHandlerMs(): void {}

  mayTakeEffect(): void {
    this.#outer.mayTakeEffect();
  }

  secondsLeft(): number {
    return this.#outer.secondsLeft();
  }

  evict(): void {
    this.#outer.evict();
  }

  respond(answer: HttpAnswer): void {
    assert(!this.#isAnswered, () => 'an operation call is answered once');
    this.#isAnswered = true;
    this.#answered(answer);
  }
}

function methodOf({ methods }: Operation, body: Uint8Array | null): string {
  const others = methods.filter((method) => method !== 'GET');
  return (body === null && methods.includes('GET') ? 'GET' : others[0]) ?? 'GET';
}
