import { ApiError } from '../../protocol/errors.ts';
import type { Operation } from '../../protocol/operations.ts';
import { credentialOf } from '../auth/authenticate.ts';
import { type Authority, authorize } from '../auth/authorize.ts';
import type { Principal } from '../auth/principal.ts';
import { checkRequest } from './check-request.ts';
import { allowanceRefusal, beginCapped } from './metering.ts';
import type { Admitted, OperationRequest } from './request.ts';

/**
 * Lets a request in whose caller is known: limits of the second and of the key first (429), then scope and namespaces (403), then
 * what is wrong with its head, then the plan's allowances (402). Answers the 429 of a flood and throws everything else: a throw
 * was a sixth of what such a refusal costs.
 */
export function admit(request: OperationRequest, principal: Principal): Admitted | ApiError {
  const { operation } = request;
  const { admission, metering } = request.front;
  request.principal = principal;
  const ticket = admission.admit(principal, operation.runsAs === 'sql');
  if (ticket instanceof ApiError) return ticket;
  request.ticket = ticket;
  const endCapped = beginCapped(metering, operation, principal);
  if (endCapped !== null) ticket.whenReleased(endCapped);
  refuseUnauthorized(request, principal);
  checkRequest(request);
  const usedUp = allowanceRefusal(metering, operation, principal);
  if (usedUp !== null) throw usedUp;
  return request as Admitted;
}

/**
 * Looks at the credential again, after something was waited for: a body can take minutes, and its key may have been revoked
 * meanwhile, its person may have reset their password, its tenant may be suspended. Throws as at the first time.
 */
export async function admitAgain(request: Admitted): Promise<void> {
  // An operation call comes with a principal that was found just now, and with its body.
  if (request.given !== null) return;
  const { authenticator, credentialInTime } = request.front;
  const credential = credentialOf((name) => request.exchange.header(name));
  const known = authenticator.peek(credential);
  request.principal = known ?? (await credentialInTime(authenticator.authenticate(credential)));
  refuseUnauthorized(request, request.principal);
}

function refuseUnauthorized({ operation, parameters }: OperationRequest, principal: Principal): void {
  const refusal = authorize(principal, authorityOf(operation), parameters.name ?? null, operation);
  if (refusal !== null) throw refusal;
  if (operation.auth !== 'login') return;
  const notLogin = authorize(principal, 'login', null);
  if (notLogin !== null) throw notLogin;
}

function authorityOf(operation: Operation): Authority {
  if (operation.authority === 'unlimited-admin') return 'manage-keys';
  if (operation.authority === 'billing') return 'billing';
  return operation.scope ?? 'read';
}
