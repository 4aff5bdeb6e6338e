import { ApiError } from '../../protocol/errors.ts';
import type { HttpExchange } from './http-types.ts';

/** What the body of an import may be packed with. */
export const packings = ['gzip', 'zstd'] as const;
export type Packing = (typeof packings)[number];

/** Answers what an import's body is packed with; null for none. Throws ApiError 415 for another encoding, or several. */
export function packingOf(exchange: Pick<HttpExchange, 'header'>): Packing | null {
  const encoding = exchange.header('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity') return null;
  const known = packingNamed(encoding === 'x-gzip' ? 'gzip' : encoding);
  if (known !== null) return known;
  const sentence =
    'the Content-Encoding of an import can be gzip or zstd: pack the file with one of them, or send it unpacked';
  throw new ApiError('bad_request', sentence, { status: 415 });
}

export function packingNamed(name: string): Packing | null {
  return packings.find((packing) => packing === name) ?? null;
}
