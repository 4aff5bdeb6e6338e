/** Entry of the hash lane: one password at a time, so that a flood of logins costs what others leave of one core. */
import { workerData } from 'node:worker_threads';
import type { HashThreadData } from '../../protocol/worker-tasks.ts';
import { lowerThreadPriority } from '../../src/base/thread-priority.ts';
import { hashPassword, type PasswordVerdict, verifyPassword } from './hash-password.ts';
import { type LaneAnswer, withCpuTime } from './lane-answer.ts';

export type HashTask =
  | { readonly task: 'hash'; readonly password: string }
  | { readonly task: 'verify'; readonly hash: string; readonly password: string };

lowerThreadPriority((workerData as HashThreadData).backgroundSteps);

export default function hashLane(task: HashTask): LaneAnswer<string | PasswordVerdict> {
  const { password } = task;
  return withCpuTime(task.task === 'hash' ? hashPassword(password) : verifyPassword(task.hash, password));
}
