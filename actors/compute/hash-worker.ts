import { hashPassword, verifyPassword } from './hash-password.ts';

/** Entry of the hash lane: one password at a time, so that a flood of logins costs one core at most. */
export type HashTask =
  | { readonly task: 'hash'; readonly password: string }
  | { readonly task: 'verify'; readonly hash: string; readonly password: string };

export default function hashLane(task: HashTask): Promise<unknown> {
  return task.task === 'hash' ? hashPassword(task.password) : verifyPassword(task.hash, task.password);
}
