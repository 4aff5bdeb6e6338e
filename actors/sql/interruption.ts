/**
 * Thrown where evaluating an expression would be too long for one turn of the thread. `work` does what is missing, in turns;
 * whoever catches it waits for that and evaluates the same once more, which then finds everything made.
 */
export class Interruption extends Error {
  override name = 'Interruption';
  readonly work: () => Promise<void>;

  constructor(work: () => Promise<void>) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super('an expression takes longer than a turn');
    Error.stackTraceLimit = stackTraceLimit;
    this.work = work;
  }
}

/** What a generator yields between two steps: an interruption, whose work must be done first, or nothing but others' turn. */
export type Step = Interruption | undefined;

/** Evaluates until nothing interrupts it; whoever takes the steps does the work of each interruption. */
export function* evaluated<T>(evaluate: () => T): Generator<Step, T, void> {
  for (;;) {
    try {
      return evaluate();
    } catch (error) {
      if (!(error instanceof Interruption)) throw error;
      yield error;
    }
  }
}

/** Tells when the turn of a query on its thread is over, and when its time is. */
export interface SqlTurns {
  due(): boolean;
  giveWay(): Promise<void>;
  readonly timedOut: boolean;
}

/** Turns that never end, for tests and other work that nobody waits for. */
export const oneTurn: SqlTurns = { due: () => false, giveWay: async () => {}, timedOut: false };
