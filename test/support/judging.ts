import type { FindSurroundings } from '../../actors/text/find-match.ts';
import { MatchRunner, type MatchTask } from '../../actors/text/match-task.ts';

/** What a judge needs, in place of a thread and its lanes. */
export interface Judging extends FindSurroundings {
  /** What was judged elsewhere. */
  readonly tasks: MatchTask[];
  /** What was charged, in milliseconds. */
  charged(): number;
  /** How often others had their turn. */
  turnsGiven(): number;
}

/** `isDue`: every look finds the slice over. `cancelAfter`: so many tasks elsewhere, and nobody waits any more. */
export function judging({ isDue = false, cancelAfter = Number.POSITIVE_INFINITY } = {}): Judging {
  const tasks: MatchTask[] = [];
  const runner = new MatchRunner();
  let chargedMs = 0;
  let turnsGiven = 0;
  return {
    tasks,
    charged: () => chargedMs,
    turnsGiven: () => turnsGiven,
    elsewhere: async (task) => {
      tasks.push(task);
      return { ...runner.run(task), cpuMs: 1 };
    },
    turns: {
      due: () => isDue,
      giveWay: async () => {
        turnsGiven++;
      },
      waitUntilDeadline: (work) => work,
      get timedOut() {
        return tasks.length >= cancelAfter;
      },
      cpuMs: 5,
      charge: (cpuMs) => {
        chargedMs += cpuMs;
      },
    },
  };
}
