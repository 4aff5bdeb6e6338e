import { counter, type Family, gauge, histogram } from '../base/exposition.ts';
import type { CallOutcome } from './call.ts';

/** Seconds; from a warm read on the same machine to the longest wait for a log. */
const bounds = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;

const outcomes = ['answered', 'not-sent', 'refused', 'lost'] as const;
type Outcome = 'answered' | CallOutcome;

/** What calls between servers came to. Hot, since each call is counted: numbers in arrays, which become text when they are asked for. */
export class PeerMetrics {
  readonly #byOutcome = new Float64Array(outcomes.length);
  readonly #byDuration = new Float64Array(bounds.length + 1);
  #seconds = 0;
  #served = 0;
  #passedOn = 0;
  #dialsFailed = 0;
  #connectionsLost = 0;
  #strangers = 0;

  called(outcome: Outcome, seconds: number): void {
    const at = outcomes.indexOf(outcome);
    this.#byOutcome[at] = (this.#byOutcome[at] ?? 0) + 1;
    if (outcome !== 'answered') return;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
    this.#byDuration[bucket] = (this.#byDuration[bucket] ?? 0) + 1;
    this.#seconds += seconds;
  }

  served(): void {
    this.#served++;
  }

  passedOn(): void {
    this.#passedOn++;
  }

  dialFailed(): void {
    this.#dialsFailed++;
  }

  connectionLost(): void {
    this.#connectionsLost++;
  }

  stranger(): void {
    this.#strangers++;
  }

  families(now: { readonly connections: number; readonly waiting: number }): Family[] {
    return [
      counter(
        'tidebase_peer_calls_total',
        'Calls to other servers by outcome; lost: whether it was done is not known',
        outcomes.map((outcome, at) => ({ labels: { outcome }, value: this.#byOutcome[at] ?? 0 })),
      ),
      histogram('tidebase_peer_call_seconds', 'From a call to the beginning of its answer', bounds, [
        { labels: {}, counts: this.#byDuration, sum: this.#seconds },
      ]),
      counter('tidebase_peer_calls_served_total', 'Calls of other servers', this.#served),
      counter(
        'tidebase_peer_calls_passed_on_total',
        'Calls of other servers that went on to the one that they are for',
        this.#passedOn,
      ),
      counter(
        'tidebase_peer_dials_failed_total',
        'Tries to reach another server that failed',
        this.#dialsFailed,
      ),
      counter(
        'tidebase_peer_connections_lost_total',
        'Connections to others that ended',
        this.#connectionsLost,
      ),
      counter(
        'tidebase_peer_strangers_total',
        'Connections to the peer port without the key',
        this.#strangers,
      ),
      gauge('tidebase_peer_connections', 'Connections from and to other servers', now.connections),
      gauge('tidebase_peer_calls_waiting', 'Calls to other servers that wait for an answer', now.waiting),
    ];
  }
}
