import {
  type CommandTarget,
  onlyPositional,
  parsedOptions,
  targetOf,
  targetOptions,
} from './target-arguments.ts';

/** What `tidebase load` was asked to do, from its arguments and the environment. */
export interface LoadArguments extends CommandTarget {
  readonly folder: string;
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
  const { values, positionals } = parsedOptions(args, {
    ...targetOptions,
    verbose: { type: 'boolean', short: 'v' },
  });
  if (values.help === true) return null;
  return {
    folder: onlyPositional(positionals, 'folder'),
    ...targetOf(values, env),
    verbose: values.verbose ?? false,
  };
}
