import { ApiError } from '../../protocol/errors.ts';

/**
 * Judges whether a page may make a request that needs no credentials, by the `Origin` that its browser sends. Otherwise any
 * page could log its visitors in as somebody else, or make them sign up and ask for resets from their own addresses.
 *
 * Accepted are pages of the base URL, and of the host that the request itself names, which is right for `localhost` and behind
 * proxies that keep `Host`. Whether the page came by https is not compared there: a proxy may end TLS. Programs that are no
 * browsers send no `Origin` and are not judged; `Origin: null` is a page that hides where it is from.
 *
 * @returns 403 `forbidden`, or null where the request may go on
 */
export function originRefusal(
  origin: string | undefined,
  { host, baseUrl }: { readonly host: string | undefined; readonly baseUrl: string },
): ApiError | null {
  if (origin === undefined) return null;
  const page = webUrl(origin);
  if (page !== null && page.origin === new URL(baseUrl).origin) return null;
  // Read with the page's scheme, so that its default port is the same whether or not it is written.
  if (page !== null && host !== undefined && webUrl(`${page.protocol}//${host}`)?.host === page.host)
    return null;
  const sentence =
    "a page of another origin than this server's may not do this: use the server's own pages, or, where they are these, " +
    'have the proxy keep the Host header or set TIDEBASE_BASE_URL to the address in the browser';
  return new ApiError('forbidden', sentence);
}

/** Null for everything but an http or https URL without a path: `null`, and schemes of extensions and files. */
function webUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return null;
  return url.href === `${url.origin}/` ? url : null;
}
