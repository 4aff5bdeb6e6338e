/** How single settings are read from text. Each throws a `SettingsError` whose message goes after the setting's name. */
import { BlockList, isIP } from 'node:net';
import { type MeteredPart, meteredParts } from './accounts/billing.ts';
import { parseSecret } from './identity/secrets.ts';

/** A setting cannot be used; the message is a sentence for the operator. */
export class SettingsError extends Error {
  override name = 'SettingsError';
}

export type Env = Readonly<Record<string, string | undefined>>;

/** Reads one setting: null where it is unset. A value that cannot be used throws, by the setting's name. */
export type Read = <T>(name: string, parse: (value: string) => T) => T | null;

/** Reads settings of one environment. `names` collects every name that was asked for: afterwards all that there are. */
export function reader(env: Env): { readonly read: Read; readonly names: ReadonlySet<string> } {
  const names = new Set<string>();
  const read: Read = (name, parse) => {
    names.add(name);
    const value = unlessEmpty(env[name]);
    if (value === null) return null;
    try {
      return parse(value);
    } catch (error) {
      if (error instanceof SettingsError) throw new SettingsError(`${name} ${error.message}`);
      throw error;
    }
  };
  return { read, names };
}

/** Spaces around a value are never meant. */
export function unlessEmpty(value: string | undefined): string | null {
  const trimmed = value?.trim() ?? '';
  return trimmed === '' ? null : trimmed;
}

/** Takes any text as it is. */
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
/** Addresses of IPv6 that nobody outside can have: unique local and link-local addresses. */
const privateIpv6 = new BlockList();
privateIpv6.addSubnet('fc00::', 7, 'ipv6');
privateIpv6.addSubnet('fe80::', 10, 'ipv6');
/** The bits before an address of IPv4 within IPv6, `::ffff:a.b.c.d`: a range there is one of IPv4, of so many bits less. */
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

/** Reads the key that another one takes the place of: there must be that other one, and it must be another. */
export function readPrevious(read: Read, name: string): Uint8Array | null {
  const present = read(name, secret);
  const previousName = `${name}_PREVIOUS`;
  const previous = read(previousName, secret);
  if (previous === null) return null;
  if (present === null) {
    throw new SettingsError(`${previousName} is set and ${name} is not: set the new key too, or neither`);
  }
  if (Buffer.compare(present, previous) !== 0) return previous;
  const sentence = 'are the same key: give the new one and the one before it, or take the previous one out';
  throw new SettingsError(`${name} and ${previousName} ${sentence}`);
}

/** Reads a key of 32 bytes. The value is never part of the message: it may be a secret with a typing error. */
export function secret(value: string): Uint8Array {
  const bytes = parseSecret(value);
  if (bytes === null) throw new SettingsError('must be 32 bytes in base64 (44 characters)');
  return bytes;
}

/** A secret key of Stripe's, restricted or not. The value is never part of the message. */
export function stripeKey(value: string): string {
  if (/^[sr]k_(live|test)_[A-Za-z0-9_]{4,250}$/.test(value)) return value;
  throw new SettingsError(
    'must be a secret or restricted key, which begins with sk_live_, sk_test_, rk_live_ or rk_test_',
  );
}

/** An id or a secret that Stripe made. The value is never part of the message. */
export function stripeId(prefix: string): (value: string) => string {
  return (value) => {
    if (value.startsWith(prefix) && /^[A-Za-z0-9_]{5,255}$/.test(value)) return value;
    throw new SettingsError(`must be what Stripe shows, which begins with ${prefix}`);
  };
}

export type UsagePrices = Readonly<
  Partial<Record<MeteredPart, { readonly price: string; readonly meter: string }>>
>;

/** The metered parts of a bill, each with its price and the name of its meter's events. */
export function usagePricesOf(value: string): UsagePrices {
  const prices: Partial<Record<MeteredPart, { readonly price: string; readonly meter: string }>> = {};
  for (const [name, given] of Object.entries(jsonObject(value))) {
    const part = meteredParts.find((each) => each === name);
    if (part === undefined)
      throw new SettingsError(`has "${name}": its parts are ${meteredParts.join(', ')}`);
    const { price, meter, ...more } = isObject(given) ? given : {};
    const isRight =
      typeof price === 'string' &&
      /^price_[A-Za-z0-9_]{1,250}$/.test(price) &&
      typeof meter === 'string' &&
      /^[^\p{Cc}]{1,100}$/u.test(meter) &&
      Object.keys(more).length === 0;
    if (!isRight)
      throw new SettingsError(
        `must have for "${name}" an object like {"price": "price_…", "meter": "the name of its events"}`,
      );
    prices[part] = { price, meter };
  }
  return prices;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function jsonObject(value: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(value);
    if (isObject(parsed)) return parsed;
  } catch {
    // Said below, as of everything that is no object.
  }
  throw new SettingsError('must be a JSON object like {"queries": {"price": "price_…", "meter": "queries"}}');
}
