import { chunkRowsMax } from '../../columns/value-kinds.ts';
import type { SelectPlan } from '../../sql/plan/bound.ts';

/** The most rows that a frame has of which something is read: they are looked at in a few milliseconds, whatever is done with them. */
export const frameRows = 16_384;
/** Rows of a frame that is grouped by several keys, whose look-up together may take half a microsecond. */
const hashedFrameRows = 2_048;
/** Rows of a frame of which texts are made, as by REGEXP_REPLACE: it takes microseconds for each, and what is made of a frame is bounded. */
const replacingFrameRows = 512;

/** Decides how many rows a frame of a plan has; fewer where a row has many columns to answer. */
export function frameRowsOf({ replaces, outputs, grouping, columns }: SelectPlan): number {
  if (replaces) return replacingFrameRows;
  // Rows that nothing is read of are counted a chunk at a time.
  if (grouping !== null && columns.length === 0) return chunkRowsMax;
  if (grouping !== null) return isHashed(grouping) ? hashedFrameRows : frameRows;
  return Math.max(64, Math.min(frameRows, Math.floor(cellsOfFrame / outputs.length)));
}

/** Decides how many rows a frame has whose rows are filtered first: what is left of it goes on in pieces. */
export function filterRowsOf({ whereReplaces }: SelectPlan): number {
  return whereReplaces ? replacingFrameRows : frameRows;
}

/**
 * Decides for how many rows expressions of that weight may be evaluated at once: some five milliseconds and megabytes. `kept`: how many
 * columns a frame keeps.
 */
export function rowsOfWeight(weight: number, kept: number): number {
  const few = Math.min(fewRows, Math.floor(stepsOfFrame / Math.max(1, kept)));
  return Math.max(frameRowsMin, few, Math.floor(stepsOfFrame / Math.max(1, weight)));
}

const stepsOfFrame = 524_288;
/** With fewer rows, most of the time is what an expression costs however few there are: it has them where they take no more memory. */
const fewRows = 512;
const frameRowsMin = 64;

/**
 * Whether a plan has so many expressions that what each costs, however few the rows are, is more than a turn: others have their turn
 * between two of them.
 */
export function hasManyParts({ weight, whereWeight }: SelectPlan): boolean {
  return Math.max(weight, whereWeight) > partsOfTurn;
}

const partsOfTurn = 256;

function isHashed({ keys, aggregates }: NonNullable<SelectPlan['grouping']>): boolean {
  return keys.length > 1 || (keys.length > 0 && aggregates.some(({ distinct }) => distinct));
}

const cellsOfFrame = 32_768;
