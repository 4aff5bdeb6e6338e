/** Documents of about 500 bytes each of JSON: an id, a text of words, a small meta. The same for the same numbers. */
export const documentBytes = 500;

const words = (
  'the server writes each group of records once and answers when it is durable search finds text in blocks newest first ' +
  'a segment holds rows ids and checksums the manifest names what a namespace consists of readers take snapshots'
).split(' ');

/** Numbers from a seed, spread over 32 bits. */
function scatter(seed: number): number {
  let x = (seed + 0x9e3779b9) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return (x ^ (x >>> 15)) >>> 0;
}

export function documentIdOf(number: number): string {
  return `document-${String(number).padStart(8, '0')}`;
}

export function documentJson(number: number): string {
  const meta = {
    kind: number % 2 === 0 ? 'note' : 'page',
    year: 2000 + (number % 25),
    score: number % 1_000,
  };
  const head = `{"id":"${documentIdOf(number)}","meta":${JSON.stringify(meta)},"text":"`;
  let text = '';
  for (let i = 0; head.length + text.length + 2 < documentBytes; i++) {
    const word = words[scatter(number * 131 + i) % words.length] ?? '';
    text += i === 0 ? word : ` ${word}`;
  }
  return `${head}${text.slice(0, documentBytes - head.length - 2)}"}`;
}

/** The body of one write request with the documents from `first` on. */
export function batchBody(first: number, count: number): Buffer {
  const documents = Array.from({ length: count }, (_, i) => documentJson(first + i));
  return Buffer.from(`{"docs":[${documents.join(',')}]}`);
}
