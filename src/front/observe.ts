import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { AuditLog } from './audit.ts';
import type { OwnAnswer } from './http-types.ts';
import type { Observed } from './observed.ts';
import type { RequestMetrics } from './request-metrics.ts';
import type { Answer } from './response.ts';

export interface ObserverComponents {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: RequestMetrics;
  readonly audit: AuditLog;
  /** Whether each request is a line of the log, which costs it a tenth of a warm read. */
  readonly logsRequests: boolean;
}

/** Who hears of every answer: metrics, the log at `debug`, and the audit log where the operation is one of its events. */
export class RequestObserver {
  readonly #components: ObserverComponents;

  constructor(components: ObserverComponents) {
    this.#components = components;
  }

  now(): number {
    return this.#components.clock.monotonic();
  }

  /** Call before the answer is handed over: the client's address may be unknown afterwards. */
  answered(request: Observed, answer: Answer): void {
    const { metrics, audit, logsRequests } = this.#components;
    const { operation, exchange, receivedBytes } = request;
    const name = operation?.name ?? null;
    if (exchange.aborted) metrics.gone(name);
    else {
      const { status, body } = answer;
      metrics.answered({
        operation: name,
        status,
        seconds: (this.now() - request.beganMs) / 1_000,
        receivedBytes,
        isTenants: request.principal !== null,
        sentBytes: typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength,
      });
    }
    // What was done is to be known also where nobody heard the answer.
    if (operation !== null) audit.answered(request, answer);
    if (logsRequests) this.#log(request, exchange.aborted ? null : answer.status);
  }

  /** The client went away before there was anything to answer. */
  gone(request: Observed): void {
    this.#components.metrics.gone(request.operation?.name ?? null);
    if (this.#components.logsRequests) this.#log(request, null);
  }

  ownAnswer({ requestId, status }: OwnAnswer): void {
    this.#components.metrics.ownAnswer(status);
    if (this.#components.logsRequests)
      this.#components.logger.debug('the door answered itself', { requestId, status });
  }

  /** Logs a request without its path, query or body: names of documents and questions are the tenant's. */
  #log({ id, operation, principal, beganMs }: Observed, status: number | null): void {
    this.#components.logger.debug('answered', {
      requestId: id,
      operation: operation?.name ?? null,
      status,
      ms: Math.round((this.now() - beganMs) * 1_000) / 1_000,
      tenantId: principal?.tenantId,
    });
  }
}
