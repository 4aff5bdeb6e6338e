import { OauthError } from '../../oauth/oauth-error.ts';

/** The parameters of a query or of a form, each at most once; empty ones count as absent (RFC 6749, 3.1). */
export type FormParameters = ReadonlyMap<string, string>;

/** More than any request has: each costs an entry. */
const parametersMax = 64;

/** Throws OauthError `invalid_request` for a parameter that is given twice, for too many, and for what is no UTF-8. */
export function formParameters(text: string): FormParameters {
  const parameters = new Map<string, string>();
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > parametersMax)
      throw new OauthError('invalid_request', `there are more than ${parametersMax} parameters`);
    if (value.includes('\ufffd')) throw new OauthError('invalid_request', 'a parameter is not UTF-8');
    if (parameters.has(name))
      throw new OauthError('invalid_request', `a parameter is given twice: ${name.slice(0, 40)}`);
    if (value !== '') parameters.set(name, value);
  }
  return parameters;
}

/** Throws OauthError `invalid_request` where it is absent. */
export function needed(parameters: FormParameters, name: string): string {
  const value = parameters.get(name);
  if (value === undefined) throw new OauthError('invalid_request', `${name} is missing`);
  return value;
}
