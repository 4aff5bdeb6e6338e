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

/** What work that goes on in steps has to wait for between two of them: an interruption's work, or others' turn alone. */
export type Step = Interruption | undefined;

/** Evaluates until nothing interrupts it; whoever takes the steps has the work of each interruption done. */
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

/** The turns of a thread, and the time of the query. */
export interface SqlTurns {
  due(): boolean;
  giveWay(): Promise<void>;
  readonly timedOut: boolean;
}

/** For what nobody waits for. */
export const oneTurn: SqlTurns = { due: () => false, giveWay: async () => {}, timedOut: false };
