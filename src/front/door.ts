/**
 * The server's place on the network. It listens from the first moment, so that a port that is taken is found out before
 * anything else is begun, and answers 503 until there is somebody to serve.
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { systemClock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { randomHex, systemRandom } from '../base/random.ts';
import { Admission } from './admission.ts';
import { type HttpEngine, listenHttp } from './http.ts';
import type { HttpExchange, HttpHandler, OwnAnswer } from './http-types.ts';
import { respond } from './response.ts';

export interface FrontDoor {
  /** Where it listens. */
  readonly url: string;
  /** The public address, without a slash at its end. */
  readonly baseUrl: string;
  readonly admission: Admission;
  /** Which HTTP server serves. */
  readonly engine: string;
  serve(handler: HttpHandler): void;
  /** Requests that were admitted and not answered yet. */
  inFlight(): number;
  stopListening(): void;
  close(): Promise<void>;
}

export interface DoorAddress {
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** Null: made of the two. */
  readonly baseUrl: string | null;
}

/** The address can't be had; the message is a sentence for the operator. */
export class CannotListen extends Error {
  override name = 'CannotListen';
}

/** Throws CannotListen. */
export async function openDoor(
  address: DoorAddress,
  engine: HttpEngine,
  logger: Logger,
  onOwnAnswer: (answer: OwnAnswer) => void,
): Promise<FrontDoor> {
  const { host, port } = address;
  const idPrefix = randomHex(systemRandom, 4);
  let requests = 0;
  const nextRequestId = () => `${idPrefix}-${(++requests).toString(36)}`;
  let handler: HttpHandler = refuseWhileStarting;
  const options = {
    host,
    port,
    bodyDeadlineMs: limits.bodyDeadlineMs,
    handlerDeadlineMs: limits.handlerDeadlineMs,
    writeDeadlineMs: limits.writeDeadlineMs,
    handler: (exchange: HttpExchange) => handler(exchange),
    nextRequestId,
    onOwnAnswer,
    engine,
  };
  const listener = await listenHttp(options, logger, systemClock).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CannotListen(
      `port ${port} on ${host} can't be listened on (${reason}): set TIDEBASE_PORT to a free one, or 0 for any`,
    );
  });
  logger.info('listening', { engine: listener.engine, port: listener.port });
  const admission = new Admission({ clock: systemClock });
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
  return {
    url,
    baseUrl: address.baseUrl ?? url,
    admission,
    engine: listener.engine,
    serve(next) {
      handler = next;
    },
    inFlight: () => admission.inFlight,
    stopListening: () => listener.stopListening(),
    close: () => listener.close(),
  };
}

function refuseWhileStarting(exchange: HttpExchange): void {
  const refusal = new ApiError('unavailable', 'the server is starting', { retryAfter: 1 });
  respond(exchange, exchange.requestId, {
    status: refusal.status,
    headers: [['retry-after', '1']],
    body: refusal.toBody(),
  });
}
