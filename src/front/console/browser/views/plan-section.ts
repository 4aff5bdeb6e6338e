import { call } from '../api.ts';
import { type Child, element, onClick } from '../element.ts';
import { loaded, whileBusy } from '../notices.ts';
import type { Billing } from '../shapes.ts';

/** The subscription. Paying is done at the payment provider's own pages. */
export function planSection(): Child {
  return loaded(
    () => call<Billing>('GET', '/v1/billing'),
    (billing) => section(billing),
  );
}

function section(billing: Billing): Child {
  const problems = element('div', {});
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'plan' },
    element('h2', { id: 'plan' }, 'Plan'),
    element('p', {}, words(billing)),
    billing.configured ? element('div', { class: 'actions' }, way(billing, problems)) : null,
    problems,
  );
}

function words({ plan, configured, subscribed, cancel_at_period_end, period_end, status }: Billing): string {
  const name = `This tenant has the ${plan} plan.`;
  if (!configured) return `${name} Paid plans are not set up on this server.`;
  if (cancel_at_period_end) return `${name} It ends on ${period_end}.`;
  if (status === 'past_due')
    return `${name} The last payment failed: look after the card, so that it goes on.`;
  return subscribed ? `${name} It renews on ${period_end}.` : name;
}

function way({ subscribed }: Billing, problems: HTMLElement): Child {
  const [text, path] = subscribed
    ? ['Cards, invoices, cancelling', '/v1/billing/portal']
    : ['Upgrade to pro', '/v1/billing/checkout'];
  const button = element('button', { type: 'button', class: 'primary' }, text);
  return onClick(button, () => {
    void whileBusy(button, problems, async () => {
      const { url } = await call<{ url: string }>('POST', path);
      // Nothing but a page is gone to, whatever an answer says.
      if (/^https?:\/\//.test(url)) location.assign(url);
    });
  });
}
