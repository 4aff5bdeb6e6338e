import type { MeasuredServer } from '../measured-server.ts';
import type { LoopRequest, RequestStream } from '../request-loop.ts';
import type { Sizes } from './sizes.ts';

/**
 * The contract of a scenario of `npm run load`: a file of its own that says what is written first, what is then asked and in
 * which phases. The runner (`run-scenario.ts`) starts the server, acts on the phases, watches memory and writes the result.
 * Every scenario is held to one bar without saying so: no request may fail. What else it judges is in its phases.
 */
export interface Scenario {
  /** What `npm run load -- NAME` and the result's file are called. */
  readonly name: string;
  /** One sentence for people: what is asked of what. */
  readonly about: string;
  /** Settings of the server beside those that `npm start` gives it. */
  readonly env?: Readonly<Record<string, string>>;
  /** `three`: behind HAProxy, on an S3 server (`balanced-servers.ts`). One by default, or as many as the command line says. */
  readonly servers?: 'three';
  /** Writes what the requests need, and says what is to be asked. Phases run in their order. */
  prepare(stage: Stage): Promise<LoadPlan>;
}

/** Where a scenario is played. */
export interface Stage {
  /** The running server; another one after a restart. */
  readonly server: MeasuredServer;
  readonly sizes: Sizes;
  /** Stops the server, lets `between` work on its folder (of several servers the folder of each), starts it again, and resolves with what `between` did. */
  restart<T>(between: (folders: readonly string[]) => T | Promise<T>): Promise<T>;
  /** Stops it, starts it again, opens these namespaces and waits until their merges are done: "warm, in segments". */
  settle(namespaces: readonly string[]): Promise<void>;
}

export interface LoadPlan {
  /** What a reader of the result has to know: how many documents, of which size. */
  readonly settings: Readonly<Record<string, string | number>>;
  /** The credentials that `client` of a request counts in. */
  readonly keys: readonly string[];
  readonly phases: readonly Phase[];
}

export type Phase =
  | ClosedPhase
  | RatesPhase
  | BesidePhase
  | PassesPhase
  | PeerPhase
  | SoakPhase
  | RestartsPhase;

/**
 * Throughput in a closed loop: each connection asks again when it has its answer. In rounds, in turns with a bare server that
 * sends one constant answer to the same requests.
 */
export interface ClosedPhase {
  readonly kind: 'closed';
  readonly name: string;
  /** wrk where autocannon would be the bottleneck; where wrk is missing it is autocannon after all. */
  readonly tool: 'autocannon' | 'wrk';
  readonly connections: number;
  /** Asked in turn; each connection begins at another one. */
  readonly requests: readonly LoopRequest[];
  /** What one request carries, where that is what counts: documents of a batch. */
  readonly carries?: { readonly unit: string; readonly count: number };
}

/** Latency over rate in an open loop, at shares of the throughput that the closed loop before it had. */
export interface RatesPhase {
  readonly kind: 'rates';
  readonly name: string;
  readonly connections: number;
  readonly requests: readonly LoopRequest[];
  /** Rates for people's sake: where a request costs the generator much. */
  readonly ratePerSecondMax?: number;
}

/** Reads at a set rate: alone, and beside other work. */
export interface BesidePhase {
  readonly kind: 'beside';
  readonly name: string;
  readonly ratePerSecond: number;
  readonly connections: number;
  readonly requests: readonly LoopRequest[];
  readonly work: {
    readonly name: string;
    /** Begins the work; its `stop` resolves with what it did, for people. */
    start(): { stop(): Promise<readonly TextFigure[]> };
  };
}

/** Every request once, at a set rate, in several passes that differ by what was done before each. */
export interface PassesPhase {
  readonly kind: 'passes';
  readonly name: string;
  readonly ratePerSecond: number;
  readonly connections: number;
  readonly requests: readonly LoopRequest[];
  readonly passes: readonly { readonly name: string; readonly before: () => Promise<void> }[];
}

/** The same questions to somebody else's program, one after the other, in turns. */
export interface PeerPhase {
  readonly kind: 'peer';
  readonly name: string;
  readonly questions: readonly {
    readonly name: string;
    readonly ours: LoopRequest;
    readonly theirs: () => Promise<unknown>;
  }[];
  close(): void;
}

/** A mix at steady rates for long, in windows, with memory, open files and objects judged at its end. */
export interface SoakPhase {
  readonly kind: 'soak';
  readonly name: string;
  readonly streams: readonly RequestStream[];
  readonly connections: number;
}

/**
 * A mix at steady rates while several servers are restarted one after another. A request that gets 429, 503 or no answer is
 * asked again, as clients are told to; only what fails then counts as failed.
 */
export interface RestartsPhase {
  readonly kind: 'restarts';
  readonly name: string;
  readonly streams: readonly RequestStream[];
  readonly connections: number;
}

/** A figure that is told and not judged. */
export interface TextFigure {
  readonly name: string;
  readonly value: string;
}
