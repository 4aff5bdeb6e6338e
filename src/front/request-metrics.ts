import type { OperationName } from '../../protocol/operations.ts';
import type { ChargedMs } from '../base/charges.ts';
import { counter, type Family, type HistogramCounts, histogram, type Sample } from '../base/exposition.ts';

export interface Answered {
  /** Null where the request was for none. */
  readonly operation: OperationName | null;
  readonly status: number;
  readonly seconds: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** Whether it came with a credential that is somebody's. */
  readonly isTenants: boolean;
}

/** Seconds; from a warm read to the longest query. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** `gone`: the client went away, or the deadline passed, before there was an answer. */
const classes = ['gone', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** Why requests are refused, by status: what says that somebody has met a limit or lacks a right. */
const reasons: ReadonlyMap<number, string> = new Map([
  [401, 'unauthorized'],
  [402, 'payment_required'],
  [403, 'forbidden'],
  [413, 'too_large'],
  [429, 'rate_limited'],
  [503, 'unavailable'],
  [507, 'quota_full'],
]);

class OperationCounts {
  readonly byClass = new Float64Array(classes.length);
  readonly byDuration = new Float64Array(bounds.length + 1);
  seconds = 0;
  receivedBytes = 0;
  sentBytes = 0;
}

/** What is nobody's operation. */
const none = 'none';

/**
 * What requests came to, by operation. Hot: counted for every request, on the thread that has the least to spare. A count
 * and an observation are 34 ns here, where prom-client took 285 and 510 (of some 22 us that a warm read has in all), because
 * it looks labels up by a text that it makes each time. So the numbers lie in typed arrays, one lookup an operation, and become
 * text when they are asked for. Labels are operations and classes of status: never anything that a client chooses.
 */
export class RequestMetrics {
  readonly #operations = new Map<string, OperationCounts>();
  readonly #refusals = new Map<number, number>([...reasons.keys()].map((status) => [status, 0]));
  readonly #byShare = { tenants: 0, nobody: 0, upkeep: 0 };
  readonly #ownAnswers = new Map<string, number>();

  constructor(operations: readonly OperationName[]) {
    for (const name of [...operations, none]) this.#operations.set(name, new OperationCounts());
  }

  /** Requests that were answered, by whose they were. */
  get byShare(): ChargedMs {
    return this.#byShare;
  }

  answered({ operation, status, seconds, receivedBytes, sentBytes, isTenants }: Answered): void {
    this.#byShare[isTenants ? 'tenants' : 'nobody']++;
    const counts = this.#operations.get(operation ?? none);
    if (counts === undefined) return;
    const kind = Math.floor(status / 100);
    counts.byClass[kind] = (counts.byClass[kind] ?? 0) + 1;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
    counts.byDuration[bucket] = (counts.byDuration[bucket] ?? 0) + 1;
    counts.seconds += seconds;
    counts.receivedBytes += receivedBytes;
    counts.sentBytes += sentBytes;
    if (status < 400) return;
    const refusals = this.#refusals.get(status);
    if (refusals !== undefined) this.#refusals.set(status, refusals + 1);
  }

  /** Nobody waits for its answer any more. */
  gone(operation: OperationName | null): void {
    const counts = this.#operations.get(operation ?? none);
    if (counts !== undefined) counts.byClass[0] = (counts.byClass[0] ?? 0) + 1;
  }

  /** The door has answered itself. */
  ownAnswer(status: number): void {
    const kind = classes[Math.floor(status / 100)] ?? none;
    this.#ownAnswers.set(kind, (this.#ownAnswers.get(kind) ?? 0) + 1);
  }

  families(): Family[] {
    const each = (value: (counts: OperationCounts) => number): Sample[] =>
      [...this.#operations].map(([operation, counts]) => ({ labels: { operation }, value: value(counts) }));
    const byClass = [...this.#operations].flatMap(([operation, counts]) =>
      classes.map((status, at) => ({ labels: { operation, status }, value: counts.byClass[at] ?? 0 })),
    );
    const durations = [...this.#operations].map(
      ([operation, counts]): HistogramCounts => ({
        labels: { operation },
        counts: counts.byDuration,
        sum: counts.seconds,
      }),
    );
    const refusals = [...this.#refusals].map(([status, value]) => ({
      labels: { reason: reasons.get(status) ?? '' },
      value,
    }));
    const ownAnswers = [...this.#ownAnswers].map(([status, value]) => ({ labels: { status }, value }));
    return [
      counter(
        'tidebase_requests_total',
        'Requests by operation and class of status; gone: nobody waited for the answer any more',
        // The classes that no operation answers with would be lines without a meaning.
        byClass.filter(({ value, labels }) => value > 0 || !/^[13]/.test(labels.status)),
      ),
      histogram(
        'tidebase_request_duration_seconds',
        'From the whole head to the answer, its sending not included',
        bounds,
        durations.filter(({ counts }) => Array.prototype.some.call(counts, (count) => count > 0)),
      ),
      counter('tidebase_requests_refused_total', 'Refused requests by reason', refusals),
      counter('tidebase_door_answers_total', 'Answers that the HTTP server gave by itself', ownAnswers),
      counter(
        'tidebase_request_body_bytes_total',
        'Bytes of bodies that were received',
        each(({ receivedBytes }) => receivedBytes),
      ),
      counter(
        'tidebase_response_body_bytes_total',
        'Bytes of bodies that were answered',
        each(({ sentBytes }) => sentBytes),
      ),
    ];
  }
}
