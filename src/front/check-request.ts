import { ApiError } from '../../protocol/errors.ts';
import { namespaceNameProblem } from '../../protocol/ids.ts';
import { type Operation, querySchemaOf, takesBody } from '../../protocol/operations.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import { inputError, parseQueryWith } from '../../protocol/validate.ts';
import { packingOf } from './body-packing.ts';
import type { HttpExchange } from './http-types.ts';
import { idempotencyKeyProblem } from './idempotency.ts';
import type { OperationRequest } from './request.ts';

/** Throws what can be said of a request without its body, which is cheap, and comes before the body is read. */
export function checkRequest({ operation, parameters, exchange }: OperationRequest): void {
  if (!operation.built) throw notBuilt(operation, exchange.method);
  if (parameters.name !== undefined) {
    const problem = namespaceNameProblem(parameters.name);
    if (problem !== null) throw inputError(new Map([['name', problem]]));
  }
  if (operation.idempotent) {
    const problem = idempotencyKeyProblem(exchange.header('idempotency-key'));
    if (problem !== null) throw inputError(new Map([['Idempotency-Key', problem]]));
  }
  if (operation.request === 'file') packingOf(exchange);
  else if (takesBody(operation, exchange.method)) refuseEncoding(exchange);
  if (exchange.query === '') return;
  const schema = querySchemaOf(operation, exchange.method);
  const given = parseQueryString(exchange.query);
  if (schema !== null) parseQueryWith(schema, given);
  else if (given.size > 0)
    throw inputError(
      new Map([...given.keys()].map((name) => [name, 'is not a parameter of this operation'])),
    );
}

/** Refuses packed bodies, but of imports: a small body that becomes a large one would be a way around every limit. */
function refuseEncoding(exchange: HttpExchange): void {
  const encoding = exchange.header('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity') return;
  const sentence = 'a body with Content-Encoding is taken by imports only: send this one as plain JSON';
  throw new ApiError('bad_request', sentence, { status: 415 });
}

export function notBuilt({ path }: Operation, method: string): ApiError {
  const sentence = `this version of the server does not have ${method} ${path} yet; nothing was done`;
  return new ApiError('not_implemented', sentence);
}
