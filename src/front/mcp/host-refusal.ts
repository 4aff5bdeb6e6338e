/** 403 `forbidden` for a request that a foreign page may have made, or null where the request may go on. */
import { isIP } from 'node:net';
import { ApiError } from '../../../protocol/errors.ts';
import { originRefusal } from '../same-origin.ts';

export type ForeignRefusal = (headers: {
  readonly host: string | undefined;
  readonly origin: string | undefined;
}) => ApiError | null;

/**
 * Refuses requests that a page could make by giving a name of its own this server's address (DNS rebinding): the host must be that
 * of the base URL, or an address or `localhost`, which nobody else can name. Then a page's origin is judged as elsewhere.
 *
 * Hot: clients name the same host again and again, and to read it as a URL takes longer than all other checks of a head.
 */
export function foreignRefusalOf(baseUrl: string): ForeignRefusal {
  let lastOfOurs: string | undefined;
  return ({ host, origin }) => {
    if (host !== undefined && host !== lastOfOurs) {
      if (!isOurs(host, baseUrl)) return notOurs();
      lastOfOurs = host;
    }
    return originRefusal(origin, { host, baseUrl });
  };
}

function notOurs(): ApiError {
  const sentence =
    'this Host is not the address of this server: use the address that the server was given, or set TIDEBASE_BASE_URL to this one';
  return new ApiError('forbidden', sentence);
}

function isOurs(host: string, baseUrl: string): boolean {
  const given = `http://${host}`;
  if (!URL.canParse(given)) return false;
  const { hostname } = new URL(given);
  if (hostname === new URL(baseUrl).hostname || hostname === 'localhost') return true;
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
}
