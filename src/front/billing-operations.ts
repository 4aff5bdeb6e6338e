import { ApiError } from '../../protocol/errors.ts';
import type { OperationName } from '../../protocol/operations.ts';
import { must } from '../base/assert.ts';
import type { PaidPlans } from '../billing/paid-plans.ts';
import type { FrontOperation, FrontRequest } from './front-operation.ts';

/** Checkout, portal and webhook: src/billing does the work. `billing` is null where no payment provider is set: 501. */
export function billingOperations(billing: PaidPlans | null): ReadonlyMap<OperationName, FrontOperation> {
  const tenantOf = ({ principal }: FrontRequest) => must(principal, 'a principal').tenantId;
  const withBilling =
    (work: (billing: PaidPlans, request: FrontRequest) => Promise<unknown>): FrontOperation =>
    async (request) => {
      if (billing === null) throw notSetUp();
      return work(billing, request);
    };
  return new Map<OperationName, FrontOperation>([
    [
      'billingCheckout',
      withBilling(async (set, request) => ({ url: await set.checkout(tenantOf(request)) })),
    ],
    ['billingPortal', withBilling(async (set, request) => ({ url: await set.portal(tenantOf(request)) }))],
    [
      'billingWebhook',
      withBilling(async (set, { body, signature }) => {
        await set.webhook(body instanceof Uint8Array ? body : new Uint8Array(), signature);
        return { received: true };
      }),
    ],
  ]);
}

function notSetUp(): ApiError {
  return new ApiError(
    'not_implemented',
    'this server has no payment provider: its operator can set STRIPE_SECRET_KEY',
  );
}
