import { parseArgs } from 'node:util';
import { namespaceNameProblem } from '../../protocol/ids.ts';

/** What `tidebase load` was asked to do, from its arguments and the environment. */
export interface LoadArguments {
  readonly folder: string;
  readonly namespace: string;
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
  readonly verbose: boolean;
}

/** The command cannot be understood. The message is for a person. */
export class UsageError extends Error {
  override name = 'UsageError';
}

export const loadUsageLine = 'tidebase load FOLDER --namespace NAME [--url URL] [--key KEY] [--verbose]\n';
export const loadUsage = `${loadUsageLine}
Sends the folder's text files as documents: id = path, meta = extension, size and mtime. Loading again replaces.
  --namespace, -n  the namespace; it is made if there is none
  --url            the server (or TIDEBASE_URL; default http://127.0.0.1:8080)
  --key            an API key that may write (or TIDEBASE_API_KEY, which other users of the machine cannot see)
  --verbose, -v    name every file that is left out
`;

/** Where `tidebase serve` listens unless it is told otherwise. */
const urlDefault = 'http://127.0.0.1:8080';

/** Null where help was asked for. Throws UsageError. */
export function parseLoadArguments(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): LoadArguments | null {
  const { values, positionals } = parsed(args);
  if (values.help === true) return null;
  const [folder, ...others] = positionals;
  if (folder === undefined || folder === '') throw new UsageError('which folder? It is the first argument');
  if (others.length > 0) throw new UsageError(`one folder at a time: what is "${others[0]}"?`);
  return {
    folder,
    namespace: namespaceOf(values.namespace),
    url: urlOf(values.url ?? nonEmpty(env.TIDEBASE_URL) ?? urlDefault),
    key: keyOf(values.key ?? nonEmpty(env.TIDEBASE_API_KEY)),
    verbose: values.verbose ?? false,
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        namespace: { type: 'string', short: 'n' },
        url: { type: 'string' },
        key: { type: 'string' },
        verbose: { type: 'boolean', short: 'v' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function namespaceOf(name: string | undefined): string {
  if (name === undefined) throw new UsageError('into which namespace? Say --namespace NAME');
  const problem = namespaceNameProblem(name);
  if (problem !== null) throw new UsageError(`the namespace's name ${problem}`);
  return name;
}

function urlOf(text: string): string {
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
function keyOf(key: string | undefined): string {
  if (key === undefined) throw new UsageError('with which API key? Say --key KEY or set TIDEBASE_API_KEY');
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError('the API key holds a character that no key has');
  return key;
}
