import { isIP } from 'node:net';
import { ApiError } from '../../../protocol/errors.ts';
import { originRefusal } from '../same-origin.ts';

/**
 * Refuses requests that a page could make by giving a name of its own this server's address (DNS rebinding): the host must be that
 * of the base URL, or an address or `localhost`, which nobody else can name. Then a page's origin is judged as elsewhere.
 *
 * @returns 403 `forbidden`, or null where the request may go on
 */
export function foreignRefusal(
  { host, origin }: { readonly host: string | undefined; readonly origin: string | undefined },
  baseUrl: string,
): ApiError | null {
  if (host !== undefined && !isOurs(host, baseUrl)) {
    const sentence =
      'this Host is not the address of this server: use the address that the server was given, or set TIDEBASE_BASE_URL to this one';
    return new ApiError('forbidden', sentence);
  }
  return originRefusal(origin, { host, baseUrl });
}

function isOurs(host: string, baseUrl: string): boolean {
  const given = `http://${host}`;
  if (!URL.canParse(given)) return false;
  const { hostname } = new URL(given);
  if (hostname === new URL(baseUrl).hostname || hostname === 'localhost') return true;
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
}
