import { counter, type Family, gauge, histogram } from '../base/exposition.ts';

/** Seconds; from a warm read over one wire to the longest wait for a log. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

const outcomes = ['answered', 'full', 'unavailable', 'unknown'] as const;
/** `unknown`: a write that may have been done. */
export type ForwardOutcome = (typeof outcomes)[number];

const repeats = ['moved', 'unreachable', 'third', 'lost', 'silent', 'copy'] as const;
/**
 * Why a call was sent once more; `third`: through a third server; `silent`: so too, while the first copy waits on a line that says nothing;
 * `copy`: a write whose answer was lost, under its name.
 */
export type ForwardRepeat = (typeof repeats)[number];

const services = ['delivered', 'moved', 'full', 'other_version'] as const;
export type ServedOutcome = (typeof services)[number];

/** What forwarded calls came to, on both sides. Hot, since each is counted: numbers in arrays, which become text when they are asked for. */
export class ForwardMetrics {
  readonly #byOutcome = new Float64Array(outcomes.length);
  readonly #byRepeat = new Float64Array(repeats.length);
  readonly #byService = new Float64Array(services.length);
  readonly #byDuration = new Float64Array(bounds.length + 1);
  #seconds = 0;
  #unconfirmed = 0;

  forwarded(outcome: ForwardOutcome, seconds: number): void {
    count(this.#byOutcome, outcomes.indexOf(outcome));
    if (outcome !== 'answered') return;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
    count(this.#byDuration, bucket);
    this.#seconds += seconds;
  }

  repeated(why: ForwardRepeat): void {
    count(this.#byRepeat, repeats.indexOf(why));
  }

  served(outcome: ServedOutcome): void {
    count(this.#byService, services.indexOf(outcome));
  }

  /** A server did not say in time that it has forgotten a tenant. */
  unconfirmed(): void {
    this.#unconfirmed++;
  }

  families(now: {
    readonly inFlight: number;
    readonly waiting: number;
    readonly heldBytes: number;
  }): Family[] {
    return [
      counter(
        'tidebase_forwards_total',
        'Calls of other servers’ actors by outcome; unknown: a write that may have been done',
        outcomes.map((outcome, at) => ({ labels: { outcome }, value: this.#byOutcome[at] ?? 0 })),
      ),
      histogram('tidebase_forward_seconds', 'From such a call to its answer, all tries together', bounds, [
        { labels: {}, counts: this.#byDuration, sum: this.#seconds },
      ]),
      counter(
        'tidebase_forwards_repeated_total',
        'Calls that were sent once more, by why; third: through a third server; silent: so too, beside the first; copy: to learn what became of it',
        repeats.map((why, at) => ({ labels: { why }, value: this.#byRepeat[at] ?? 0 })),
      ),
      counter(
        'tidebase_forwards_served_total',
        'Calls of other servers for actors of this one',
        services.map((outcome, at) => ({ labels: { outcome }, value: this.#byService[at] ?? 0 })),
      ),
      counter(
        'tidebase_revocations_unconfirmed_total',
        'Servers that did not say in time that they have forgotten a tenant',
        this.#unconfirmed,
      ),
      gauge('tidebase_forwards_in_flight', 'Calls that are under way to other servers', now.inFlight),
      gauge('tidebase_forwards_waiting', 'Calls that wait for a newer placement', now.waiting),
      gauge('tidebase_forward_held_bytes', 'What bodies between servers hold', now.heldBytes),
    ];
  }
}

function count(counts: Float64Array, at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}
