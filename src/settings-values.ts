import { BlockList, isIP } from 'node:net';

/** How single settings are read from text. Each throws a `SettingsError` whose message goes after the setting's name. */

/** A setting cannot be used; the message is a sentence for the operator. */
export class SettingsError extends Error {
  override name = 'SettingsError';
}

/** Spaces around a value are never meant. */
export function unlessEmpty(value: string | undefined): string | null {
  const trimmed = value?.trim() ?? '';
  return trimmed === '' ? null : trimmed;
}

/** As it is. */
export function anyText(value: string): string {
  return value;
}

export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = /^[0-9]{1,16}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new SettingsError(`must be a whole number from ${min} to ${max}, not "${value}"`);
  };
}

export function oneOf<const T extends string>(values: readonly T[]): (value: string) => T {
  return (value) => {
    const found = values.find((allowed) => allowed === value);
    if (found !== undefined) return found;
    throw new SettingsError(`must be one of ${values.join(', ')}, not "${value}"`);
  };
}

export function truth(value: string): boolean {
  const lower = value.toLowerCase();
  if (lower === 'true' || lower === '1') return true;
  if (lower === 'false' || lower === '0') return false;
  throw new SettingsError(`must be true or false, not "${value}"`);
}

/** An address or a host name to listen on. */
export function host(value: string): string {
  if (isIP(value) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(value)) return value;
  throw new SettingsError(`must be an address or a host name, not "${value}"`);
}

/** An http or https URL without query, fragment and credentials; the slash at its end is taken off. */
export function baseUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  const web = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === null || !web || `${url.search}${url.hash}${url.username}${url.password}` !== '') {
    throw new SettingsError('must be a URL like https://search.example.com');
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** May contain a password, which must not get into a message. */
export function smtpUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url?.protocol !== 'smtp:' && url?.protocol !== 'smtps:')
    throw new SettingsError('must be a URL like smtp://user:password@mail.example.com:587');
  const [option] = ['requireTLS', 'ignoreTLS', 'opportunisticTLS'].filter((name) =>
    url.searchParams.has(name),
  );
  if (option === undefined) return value;
  throw new SettingsError(`must not have "${option}": TIDEBASE_SMTP_TLS (required or optional) decides that`);
}

/** `Name <address>` or an address: a mail server refuses other senders, and nobody would notice before a mail is missed. */
export function mailSender(value: string): string {
  const address = /^[^<>]*<([^<>]*)>$/.exec(value)?.[1] ?? value;
  if (/^[^\s@<>,]+@[^\s@<>,]+$/.test(address) && !/\p{Cc}/u.test(value)) return value;
  throw new SettingsError(`must be like Tidebase <no-reply@example.com>, not "${value}"`);
}

/** Reads addresses and CIDR ranges, separated by commas. Ranges that are wider than anybody's network are refused. */
export function proxyList(value: string): readonly string[] {
  const proxies = value
    .split(',')
    .map((proxy) => proxy.trim())
    .filter((proxy) => proxy !== '');
  const wrong = proxies.find((proxy) => !isAddressOrRange(proxy));
  if (wrong !== undefined)
    throw new SettingsError(`must list addresses and ranges like 10.0.0.0/8, not "${wrong}"`);
  const wide = proxies.find(isTooWide);
  if (wide === undefined) return proxies;
  throw new SettingsError(
    `must list the proxies and not "${wide}": everybody in that range could name any address as theirs, so that ` +
      `no limit by address would hold for anybody. Ranges have /${bitsMin.ipv4} or more, of IPv6 /${bitsMin.ipv6} or more`,
  );
}

function isAddressOrRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  return /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

/** The widest private network of IPv4 is 10.0.0.0/8; of IPv6 a provider, at the most, has a /16. */
const bitsMin = { ipv4: 8, ipv6: 16 } as const;
/** Those of IPv6 that nobody outside can have: unique local and link-local addresses. */
const privateIpv6 = new BlockList();
privateIpv6.addSubnet('fc00::', 7, 'ipv6');
privateIpv6.addSubnet('fe80::', 10, 'ipv6');
/** Where IPv6 has the addresses of IPv4, `::ffff:a.b.c.d`: a range there is one of IPv4, of so many bits less. */
const mappedBits = 96;

function isTooWide(text: string): boolean {
  const [address = '', given] = text.split('/');
  if (given === undefined) return false;
  const bits = Number(given);
  if (isIP(address) === 4) return bits < bitsMin.ipv4;
  if (coversMappedAddresses(address, bits)) return bits - mappedBits < bitsMin.ipv4;
  const isPrivate = privateIpv6.check(address, 'ipv6') && bits >= (address.startsWith('fe') ? 10 : 7);
  return !isPrivate && bits < bitsMin.ipv6;
}

/** Whether a range of IPv6 has addresses of IPv4 in it. */
function coversMappedAddresses(address: string, bits: number): boolean {
  const range = new BlockList();
  range.addSubnet(address, Math.min(bits, mappedBits), 'ipv6');
  return range.check('::ffff:0:0', 'ipv6');
}
