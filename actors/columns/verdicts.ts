/** What columns say of a row. As bits, so that `&` of two terms' verdicts is the verdict of both: no, ask the document, yes. */
export const no = 0;
export const ask = 1;
export const yes = 3;
export type Verdict = typeof no | typeof ask | typeof yes;
