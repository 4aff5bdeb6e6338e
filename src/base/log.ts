/**
 * The door to pino. Three levels. `error`: a developer must look. `info`: state changed. `debug`: the rest. There is no
 * "warn". One JSON object a line on standard error: level, time, thread, the fields, message. Never document values, query
 * literals, keys or e-mail addresses: whoever logs leaves them out, and what slips through is taken out here twice, by the
 * name of its field and by its look.
 */
import { pino } from 'pino';
import { standardError } from './standard-error.ts';

export type LogLevel = 'error' | 'info' | 'debug';
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Logger {
  error(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

/** Fields that hold secrets, or addresses of people, wherever they come from. An object of the store is an `object`, no `key`. */
const secretFields = [
  'authorization',
  'cookie',
  'credential',
  'email',
  'key',
  'password',
  'passwordHash',
  'secret',
  'secretAccessKey',
  'token',
  '["set-cookie"]',
  '["x-api-key"]',
];

export function createLogger(
  thread: string,
  level: LogLevel,
  write: (line: string) => void = standardError,
): Logger {
  const logger = pino(
    {
      level,
      base: { thread },
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretFields, censor: redacted },
    },
    { write: (line: string) => write(withoutSecrets(line)) },
  );
  return {
    error: (message, fields = noFields) => logger.error(fields, message),
    info: (message, fields = noFields) => logger.info(fields, message),
    debug: (message, fields = noFields) => logger.debug(fields, message),
  };
}

const noFields: LogFields = {};
const redacted = '[redacted]';

/**
 * Secrets by their look, for messages of errors that others made: our own keys and tokens, JSON web tokens, credentials in
 * headers, in addresses and in links, and keys as most providers write them. No part matches a quote or a backslash, so that a
 * line stays JSON. Looking costs a tenth of a microsecond, a line four.
 */
const secretLooks =
  /\btb[a-z]?_[0-9A-Za-z]{20,}|\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*|\bsk-[\w-]{16,}|(?<=\b(?:Bearer|Basic) +)[^\s"\\]+|(?<=:\/\/)[^\s:@/"\\]*:[^\s@/"\\]+(?=@)|(?<=[?&#](?:code|key|password|secret|token)=)[^&\s"\\]+/g;

export function withoutSecrets(line: string): string {
  return line.replace(secretLooks, redacted);
}

export const silentLogger: Logger = { error() {}, info() {}, debug() {} };

/** One line that names an error and its causes, for a log field. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = `${error.name}: ${error.message}`;
  return error.cause === undefined ? own : `${own} <- ${describeError(error.cause)}`;
}
