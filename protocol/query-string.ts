import { ApiError, invalidField } from './errors.ts';

/** No operation takes more than a dozen parameters; the rest would only cost time to refuse. */
export const queryParametersMax = 64;

const none: ReadonlyMap<string, string> = new Map();

/**
 * A raw query string (without its question mark) as names and values, form-decoded: `+` is a space.
 * Throws ApiError: 400 for bad percent-encoding or invalid UTF-8, 422 for a parameter given twice or too many.
 */
export function parseQueryString(raw: string): ReadonlyMap<string, string> {
  if (raw === '') return none;
  const parameters = new Map<string, string>();
  for (let start = 0; start <= raw.length; ) {
    const ampersand = raw.indexOf('&', start);
    const end = ampersand === -1 ? raw.length : ampersand;
    if (end > start) addParameter(parameters, raw.slice(start, end));
    start = end + 1;
  }
  return parameters;
}

function addParameter(parameters: Map<string, string>, piece: string): void {
  const equals = piece.indexOf('=');
  const name = formDecode(equals === -1 ? piece : piece.slice(0, equals));
  if (parameters.has(name)) throw invalidField(name, 'is given twice in the query string');
  if (parameters.size >= queryParametersMax) {
    throw invalidField('query', `may have at most ${queryParametersMax} parameters`);
  }
  parameters.set(name, equals === -1 ? '' : formDecode(piece.slice(equals + 1)));
}

function formDecode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  return percentDecode(spaced, 'query string');
}

/** What an HTTP server makes of bytes that are not UTF-8: the character itself must come percent-encoded. */
const replacement = '\ufffd';

/** Decodes once. Throws ApiError `bad_request` for a broken escape or for bytes that are not UTF-8. */
export function percentDecode(text: string, place: string): string {
  if (text.includes(replacement)) throw new ApiError('bad_request', `the ${place} is not valid UTF-8`);
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ApiError('bad_request', `the ${place} is not valid percent-encoded UTF-8`, { cause });
  }
}
