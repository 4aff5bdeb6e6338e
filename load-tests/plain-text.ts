/** What a person reads in a file of a package: without compression, without markup, in UTF-8, in pieces that fit a document. */
import { isUtf8 } from 'node:buffer';
import { gunzipSync } from 'node:zlib';

/** Under the limit of a document's text. */
export const pieceBytesMax = 1_900_000;

/** Null for what is no text in UTF-8. Names end as the file's, less `.gz`. */
export function plainText(
  path: string,
  bytes: Buffer,
): { readonly path: string; readonly text: Buffer } | null {
  if (path.endsWith('.gz')) return plainText(path.slice(0, -'.gz'.length), gunzipSync(bytes));
  const text = path.endsWith('.mo') ? messagesOf(bytes) : bytes;
  if (text === null || text.length === 0 || !isUtf8(text)) return null;
  if (!/\.html?$/.test(path)) return { path, text };
  return { path, text: Buffer.from(withoutMarkup(text.toString())) };
}

/** Pieces of at most `bytesMax`, cut between characters. */
export function piecesOf(text: Buffer, bytesMax = pieceBytesMax): Buffer[] {
  const pieces: Buffer[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + bytesMax, text.length);
    while (to < text.length && to > from && ((text[to] ?? 0) & 0xc0) === 0x80) to--;
    pieces.push(text.subarray(from, to));
    from = to;
  }
  return pieces;
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
};

function withoutMarkup(html: string): string {
  return html
    .replaceAll(/<!--[\s\S]*?-->|<(script|style|head|nav|aside|header)\b[\s\S]*?<\/\1\s*>/gi, '')
    .replaceAll(/<\/?(?:p|div|li|h\d|tr|br|d[tdl]|pre|table|ul|ol|section)\b[^>]*>/gi, '\n')
    .replaceAll(/<\/?[a-z!][^>]*>/gi, '')
    .replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) =>
      name === undefined
        ? characterOf(Number.parseInt(decimal ?? hex, decimal ? 10 : 16))
        : (entities[name] ?? whole),
    )
    .replaceAll(/[ \t]+\n/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trimStart();
}

/** Nothing for numbers that are no character of their own. */
function characterOf(code: number): string {
  return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? '' : String.fromCodePoint(code);
}

const messagesMagic = 0x950412de;

/** A compiled catalogue of translations: each message and below it what translates it. Null for another byte order. */
function messagesOf(bytes: Buffer): Buffer | null {
  if (bytes.length < 28 || bytes.readUInt32LE(0) !== messagesMagic) return null;
  const [count, originals, translations] = [8, 12, 16].map((at) => bytes.readUInt32LE(at));
  const textAt = (table = 0, i: number) => {
    const length = bytes.readUInt32LE(table + i * 8);
    const at = bytes.readUInt32LE(table + i * 8 + 4);
    return bytes.toString('utf8', at, at + length).replaceAll('\0', '\n');
  };
  const messages = Array.from(
    { length: count ?? 0 },
    (_, i) => `${textAt(originals, i)}\n${textAt(translations, i)}\n`,
  );
  return Buffer.from(messages.join('\n'));
}
