/** Texts to index: real files, and lines like those of logs. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { seededRandom } from './segments.ts';

/** The texts of the files below `folder` that are valid UTF-8 of at most 2 MB, in the order of their names, up to `bytesMax`. */
export function readTexts(folder: string, bytesMax: number, pattern = /./): Uint8Array[] {
  const texts: Uint8Array[] = [];
  let bytes = 0;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const visit = (path: string): void => {
    if (bytes >= bytesMax) return;
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) {
      for (const name of readdirSync(path).sort()) visit(join(path, name));
    } else if (stat?.isFile() && stat.size <= 2_000_000 && pattern.test(path)) {
      const text = path.endsWith('.gz') ? gunzipSync(readFileSync(path)) : readFileSync(path);
      if (text.length === 0 || text.length > 2_000_000 || text.includes(0)) return;
      try {
        decoder.decode(text);
      } catch {
        return;
      }
      texts.push(text);
      bytes += text.length;
    }
  };
  visit(folder);
  return texts;
}

/** Cuts texts at blank lines into documents of about `length` bytes. */
export function paragraphsOf(texts: readonly Uint8Array[], length: number): Uint8Array[] {
  return texts.flatMap((text) => {
    const parts: Uint8Array[] = [];
    for (let from = 0; from < text.length; ) {
      const blank = Buffer.from(text.buffer, text.byteOffset, text.length).indexOf('\n\n', from + length);
      const to = blank < 0 ? text.length : blank + 2;
      parts.push(text.subarray(from, to));
      from = to;
    }
    return parts;
  });
}

const services = 'gateway billing search ingest auth mailer scheduler thumbnails'.split(' ');
const paths = '/v1/orders /v1/orders/items /v1/people /v2/search /health /v1/files /v1/sessions'.split(' ');
const messages = [
  'request finished',
  'connection reset by peer while reading response header from upstream',
  'cache miss, loading from the object store',
  'slow query took longer than expected',
  'retrying after a timeout of the upstream service',
  'token expired for session',
];
const agents = [
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4',
  'curl/7.88.1',
  'okhttp/4.12.0',
];

/** Lines of about 300 bytes with times, random identifiers, addresses and words that vary. */
export function* logLines(seed: number, count: number): Generator<Uint8Array, void, void> {
  const random = seededRandom(seed);
  const pick = (from: readonly string[]) => from[Math.floor(random() * random() * from.length)] ?? '';
  const hex = (length: number) =>
    Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join('');
  let timeMs = 1_767_225_600_000;
  for (let i = 0; i < count; i++) {
    timeMs += Math.floor(random() * 40);
    const address = Array.from({ length: 4 }, () => Math.floor(random() * 256)).join('.');
    const status = random() < 0.9 ? 200 : 500 + Math.floor(random() * 5);
    yield Buffer.from(
      `${new Date(timeMs).toISOString()} ${random() < 0.05 ? 'ERROR' : 'INFO'} ${pick(services)}-${Math.floor(random() * 20)} ` +
        `trace=${hex(32)} user=${Math.floor(random() * 1e6)} ip=${address} GET ${pick(paths)}/${Math.floor(random() * 1e7)} ` +
        `status=${status} ms=${(random() * random() * 900).toFixed(1)} bytes=${Math.floor(random() * 1e5)} "${pick(agents)}" ${pick(messages)}`,
    );
  }
}
