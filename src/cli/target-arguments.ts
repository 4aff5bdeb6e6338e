import { namespaceNameProblem } from '../../protocol/ids.ts';

/** What commands that send something are told of where to: server, namespace, key. */
/** The command cannot be understood. The message is for a person. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Where `tidebase serve` listens unless it is told otherwise. */
export const urlDefault = 'http://127.0.0.1:8080';

export function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

export function targetNamespace(name: string | undefined): string {
  if (name === undefined) throw new UsageError('into which namespace? Say --namespace NAME');
  const problem = namespaceNameProblem(name);
  if (problem !== null) throw new UsageError(`the namespace's name ${problem}`);
  return name;
}

export function urlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`"${text}" is no address of a server: it must begin with http:// or https://`);
  }
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new UsageError('the address of the server may hold no user name, query or fragment');
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** The key is never repeated: it may be a secret with a typing error. */
export function keyOf(key: string | undefined): string {
  if (key === undefined) throw new UsageError('with which API key? Say --key KEY or set TIDEBASE_API_KEY');
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError('the API key holds a character that no key has');
  return key;
}
