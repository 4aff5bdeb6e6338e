/**
 * Where a person's browser may be sent with a code. Pure. Addresses are compared and used as they were written, never as a URL
 * parser would write them; the one exception is the port of a loopback address, which a program takes as it is free (RFC 8252).
 */
import { limits } from '../../protocol/limits.ts';

/** Schemes whose addresses a browser would run, show or read itself, or that make another program of the system act. */
const refusedSchemes: ReadonlySet<string> = new Set([
  'about:',
  'blob:',
  'chrome:',
  'data:',
  'file:',
  'filesystem:',
  'ftp:',
  'intent:',
  'jar:',
  'javascript:',
  'ldap:',
  'ldaps:',
  'mailto:',
  'mk:',
  'res:',
  'search:',
  'search-ms:',
  'shell:',
  'smb:',
  'sms:',
  'ssh:',
  'tel:',
  'telnet:',
  'vbscript:',
  'view-source:',
  'ws:',
  'wss:',
]);

/** Settings, installers, troubleshooters and Office documents open by these. */
const schemesOfWindows = 'ms-';

/** Printable ASCII but for quotes, angle brackets, backslash, caret, backtick and braces: what a parser would leave out or change. */
const addressCharacters = /^[!#-;=?-[\]_a-z~]+$/;

/** What is wrong with a redirect address that a client wants to be known by, or null. */
export function redirectUriProblem(uri: string): string | null {
  const { redirectUriCharactersMax } = limits;
  if (uri.length > redirectUriCharactersMax)
    return `must have at most ${redirectUriCharactersMax} characters`;
  const url = addressCharacters.test(uri) && URL.canParse(uri) ? new URL(uri) : null;
  if (url === null)
    return 'must be a whole address in printable ASCII, such as https://client.example/callback';
  if (uri.includes('#')) return 'must have no part after a #';
  if (url.username !== '' || url.password !== '') return 'must have no user name and no password';
  if (url.protocol === 'https:') return null;
  if (url.protocol === 'http:' && !isLoopbackUri(uri))
    return 'may be http only on this computer (127.0.0.1, localhost or [::1]): use https';
  return refusedSchemes.has(url.protocol) || url.protocol.startsWith(schemesOfWindows)
    ? `must not be a ${url.protocol} address`
    : null;
}

/** Whether an address is among those that a client is known by. */
export function redirectUriMatches(registered: readonly string[], asked: string): boolean {
  if (redirectUriProblem(asked) !== null) return false;
  const wanted = withoutLoopbackPort(asked);
  return registered.some((uri) => uri === asked || (wanted !== null && withoutLoopbackPort(uri) === wanted));
}

/** The address without its port; null for what is no http address on the loopback. */
function withoutLoopbackPort(uri: string): string | null {
  const match = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?([/?].*)?$/.exec(uri);
  return match === null ? null : `${match[1]}${match[2] ?? '/'}`;
}

/** Whether the browser stays on the person's own computer. */
export function isLoopbackUri(uri: string): boolean {
  return withoutLoopbackPort(uri) !== null;
}

/** What a person is shown of where they will be sent: the host, or the scheme of a program. */
export function redirectHost(uri: string): string {
  const { protocol, host } = new URL(uri);
  if (protocol === 'https:' || protocol === 'http:') return host;
  return host === '' ? protocol : `${protocol}//${host}`;
}

/** The address with parameters added to those that it has; null: left out. */
export function redirectWith(uri: string, parameters: Readonly<Record<string, string | null>>): string {
  const added = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null) added.set(name, value);
  return `${uri}${uri.includes('?') ? '&' : '?'}${added.toString()}`;
}
