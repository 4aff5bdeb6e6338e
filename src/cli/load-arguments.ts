import { parseArgs } from 'node:util';
import { keyOf, nonEmpty, targetNamespace, UsageError, urlDefault, urlOf } from './target-arguments.ts';

/** What `tidebase load` was asked to do, from its arguments and the environment. */
export interface LoadArguments {
  readonly folder: string;
  readonly namespace: string;
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
  readonly verbose: boolean;
}

export const loadUsageLine = 'tidebase load FOLDER --namespace NAME [--url URL] [--key KEY] [--verbose]\n';
export const loadUsage = `${loadUsageLine}
Sends the folder's text files as documents: id = path, meta = extension, size and mtime. Loading again replaces.
  --namespace, -n  the namespace; it is made if there is none
  --url            the server (or TIDEBASE_URL; default http://127.0.0.1:8080)
  --key            an API key that may write (or TIDEBASE_API_KEY, which other users of the machine cannot see)
  --verbose, -v    name every file that is left out
`;

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
    namespace: targetNamespace(values.namespace),
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
