import { limits } from '../protocol/limits.ts';

/** Less than the memtable's limit: the next writes would flush it. */
const memtableShare = 0.85;
/** The share of a small corpus that is replaced at most, so that most of it stays in segments. */
const replacedShareMax = 0.3;

/** Picks the texts of a corpus that were written last, as many as a memtable holds: they are replaced by themselves. `bytes`: of all. */
export function newestTexts(
  texts: ReadonlyMap<string, Buffer>,
  bytes: number,
): (readonly [string, Buffer])[] {
  let left = Math.min(limits.memtableBytesMax * memtableShare, bytes * replacedShareMax);
  return [...texts].reverse().filter(([id, text]) => {
    const fits = left >= text.length + id.length;
    if (fits) left -= text.length + id.length;
    return fits;
  });
}
