/** Documents whose vectors are many and long enough that their segment gets a graph, and lie so that one finds them. */
export const graphDims = 1_024;
const count = 1_050;
const perRequest = 350;

/** Some megabytes a request. All vectors lie in a space of eight dimensions. */
export function* documentsWithGraph(idPrefix: string): Generator<object[]> {
  for (let from = 0; from < count; from += perRequest)
    yield Array.from({ length: perRequest }, (_, i) => {
      const point = Array.from({ length: 8 }, (_n, axis) =>
        Math.fround(Math.sin((from + i + 1) * (axis + 2.7))),
      );
      const vector = Array.from({ length: graphDims }, (_n, at) => point[at % 8]);
      return { id: `${idPrefix}${from + i}`, text: `text ${from + i}`, vector };
    });
}

export const anyVector = Array.from({ length: graphDims }, (_, at) => Math.cos(at % 8));
