/**
 * Says in a few words what makes a pattern costly, for a sentence that refuses it: its greatest repetition, its Unicode
 * classes, or its length.
 */
export function largestPart(query: string): string {
  const repetitions = Array.from(
    query.matchAll(/(?<!\\[uxp])\{(\d+)(?:,(\d*))?\}/gi),
    ([written, min, max]) => ({
      written,
      times: Math.max(Number(min), Number(max === undefined || max === '' ? min : max)),
    }),
  );
  const greatest = repetitions.reduce((most, one) => (one.times > most.times ? one : most), {
    written: '',
    times: 1,
  });
  const classes = query.match(/\\p(?:\{[^}]*\}|.)/gisu) ?? [];
  const [firstClass] = classes;
  if (firstClass !== undefined) {
    const repeated =
      greatest.times > 1 ? `, and "${greatest.written}" repeats up to ${greatest.times} times` : '';
    return `a class such as "${firstClass}" stands for hundreds of ranges of characters${repeated}`;
  }
  if (greatest.times > 1) return `"${greatest.written}" repeats up to ${greatest.times} times`;
  return `it has ${query.length} characters`;
}
