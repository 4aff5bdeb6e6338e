import { type ParseArgsConfig, parseArgs } from 'node:util';
import { namespaceNameProblem } from '../../protocol/ids.ts';

/** The command cannot be understood. The message is for a person. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Runs a parser of arguments; what it throws becomes a UsageError with the parser's own words. */
export function parsedAsUsage<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Reads options and positional arguments. Throws UsageError. */
export function parsedOptions<const Options extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: Options,
) {
  return parsedAsUsage(() => parseArgs({ args: [...args], allowPositionals: true, options }));
}

/** The one argument that a command takes beside its options. `what`: its kind, such as a file. Throws UsageError. */
export function onlyPositional([first, second]: readonly string[], what: string): string {
  if (first === undefined || first === '') throw new UsageError(`which ${what}? It is the first argument`);
  if (second !== undefined) throw new UsageError(`one ${what} at a time: what is "${second}"?`);
  return first;
}

/** Options of commands that talk to a server, as `parseArgs` takes them. */
export const serverOptions = {
  url: { type: 'string' },
  key: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Those of commands that send to a namespace. */
export const targetOptions = { namespace: { type: 'string', short: 'n' }, ...serverOptions } as const;

/** Where a command sends to. */
export interface CommandTarget {
  readonly namespace: string;
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
}

interface TargetOptions {
  readonly namespace?: string | undefined;
  readonly url?: string | undefined;
  readonly key?: string | undefined;
}

/** Reads a target from options and, where they lack, from the environment. Throws UsageError. */
export function targetOf(
  { namespace, url, key }: TargetOptions,
  env: Readonly<Record<string, string | undefined>>,
): CommandTarget {
  return {
    namespace: targetNamespace(namespace),
    url: urlOf(url ?? nonEmpty(env.TIDEBASE_URL) ?? urlDefault),
    key: keyOf(key ?? nonEmpty(env.TIDEBASE_API_KEY)),
  };
}

/** Where `tidebase serve` listens unless it is told otherwise. */
export const urlDefault = 'http://127.0.0.1:8080';

export function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function targetNamespace(name: string | undefined): string {
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
