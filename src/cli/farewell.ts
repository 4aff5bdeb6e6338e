/** What a server and its supervisor know of each other; apart from both, so that the supervisor loads no server. */

/** Exit codes of the server process: the supervisor restarts it after anything but these. */
export const exitCodes = { done: 0, cannotStart: 78 } as const;

/** The supervisor's word to a server whose predecessor was ended by native code. */
export const afterCrashFlag = '--after-crash';

/** What the server tells its supervisor before it ends by its own decision. */
export interface Farewell {
  readonly exitCode: number;
}
