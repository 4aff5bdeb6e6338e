/**
 * The pages that a person sees: path → bytes, all made once. They are plain files with nothing of anybody's in them; what
 * they show, the browser asks of the public interface. A request for an operation never gets here.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { HttpExchange } from '../http-types.ts';
import type { HeaderList } from '../rate-limit-headers.ts';
import type { Answer } from '../response.ts';
import { type Asset, readAssets } from './assets.ts';
import { assetsFolder, assetsPath, pageDocument, type ServerFacts } from './document.ts';

interface Page {
  readonly type: string;
  readonly headers: HeaderList;
  readonly etag: string;
  readonly plain: Buffer;
  readonly packed: Buffer;
}

const documentPaths = ['/', '/console', '/verify', '/reset'] as const;

/**
 * Scripts and styles are this server's files and nothing else, calls go to this server, nothing frames these pages, and no
 * script may parse markup at all (Trusted Types): data that looks like markup stays text even where a view had a fault.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const safetyHeaders: HeaderList = [
  ['content-security-policy', policy],
  // The address of a mail link has its token.
  ['referrer-policy', 'no-referrer'],
  [
    'permissions-policy',
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-read=()',
  ],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['vary', 'accept-encoding'],
];

/** Asked for each time, and mostly answered 304: it names the assets of this build. */
const documentHeaders: HeaderList = [...safetyHeaders, ['cache-control', 'no-cache']];
/** A year: the path has the content's digest. */
const assetHeaders: HeaderList = [...safetyHeaders, ['cache-control', 'public, max-age=31536000, immutable']];

/** Answers at a path where no operation is; null where no page is either. */
export type PageAt = (exchange: HttpExchange) => Answer | 'wrong-method' | null;

/**
 * Makes the pages of one server. Their files are read at the first request for one: it takes some milliseconds, once, and a
 * server whose pages nobody opens does without.
 */
export function createPages(facts: ServerFacts): PageAt {
  let pages: ReadonlyMap<string, Page> | null = null;
  return (exchange) => {
    if (pages === null && !isPagePath(exchange.path)) return null;
    pages ??= readPages(facts);
    const page = pages.get(exchange.path);
    if (page === undefined) return null;
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return 'wrong-method';
    return answerOf(page, exchange);
  };
}

export const pageMethods = 'GET, HEAD';

function isPagePath(path: string): boolean {
  return path.startsWith(assetsFolder) || documentPaths.some((known) => known === path);
}

function answerOf(page: Page, exchange: HttpExchange): Answer {
  const packed = acceptsGzip(exchange.header('accept-encoding') ?? '');
  // Two encodings are two representations, so each has a tag of its own.
  const etag = packed ? `"${page.etag}-gzip"` : `"${page.etag}"`;
  const headers: (readonly [string, string])[] = [...page.headers, ['etag', etag]];
  if (isKnown(exchange.header('if-none-match') ?? '', etag)) {
    return { status: 304, headers, body: '', contentType: page.type };
  }
  if (packed) headers.push(['content-encoding', 'gzip']);
  return { status: 200, headers, body: packed ? page.packed : page.plain, contentType: page.type };
}

function acceptsGzip(header: string): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?!0(?:\.0*)?\s*(?:,|$)))/i.test(header);
}

function isKnown(header: string, etag: string): boolean {
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag || tag.trim() === '*');
}

function readPages(facts: ServerFacts): ReadonlyMap<string, Page> {
  const assets = readAssets();
  const html: Asset = {
    name: 'page',
    type: 'text/html; charset=utf-8',
    body: Buffer.from(pageDocument(assets, facts)),
  };
  const shown = documentPaths.map((path) => [path, pageOf(html, documentHeaders)] as const);
  const files = assets.files.map(
    (asset) => [`${assetsPath(assets.digest)}${asset.name}`, pageOf(asset, assetHeaders)] as const,
  );
  return new Map([...shown, ...files]);
}

function pageOf({ type, body }: Asset, headers: HeaderList): Page {
  const etag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { type, headers, etag, plain: body, packed: gzipSync(body, { level: 9 }) };
}
