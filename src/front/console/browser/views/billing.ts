import { call } from '../api.ts';
import type { App, View, ViewParameters } from '../app.ts';
import { chart } from '../chart.ts';
import { type Child, element, onClick } from '../element.ts';
import { formatDay, formatMoney, formatPrecise } from '../format.ts';
import { heading } from '../heading.ts';
import { badge, loaded, notice, whileBusy } from '../notices.ts';
import type { Billing, BillLine, Usage } from '../shapes.ts';
import { table } from '../table.ts';

/** The plan, what it has cost in the period so far, and the ways to the payment provider's own pages. */
export function billingView(app: App, parameters: ViewParameters): View {
  const isBack = parameters.get('checkout') === 'done';
  // Nothing else is answered to a suspended tenant.
  const isSuspended = app.me.tenant.status === 'suspended';
  const load = async () => {
    const billing = await call<Billing>('GET', '/v1/billing');
    return { billing, usage: isSuspended ? null : await call<Usage>('GET', '/v1/usage?days=true') };
  };
  return {
    title: 'Billing',
    body: [
      heading('Billing', `What ${app.me.tenant.name} pays, and for what.`),
      loaded(load, ({ billing, usage }) => [
        isBack && !billing.subscribed ? onItsWay(app) : null,
        planCard(billing, isSuspended),
        billCard(billing),
        usage === null ? null : byDayCard(usage),
      ]),
    ],
  };
}

/** The payment provider tells the server, mostly before the person is back. */
function onItsWay(app: App): Child {
  const look = element('button', { type: 'button', class: 'quiet' }, 'Look again');
  onClick(look, () => void app.refresh());
  return notice('info', element('p', {}, 'The payment provider has not told us of the payment yet.'), look);
}

function planCard(billing: Billing, isSuspended: boolean): Child {
  const problems = element('div', {});
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'plan' },
    element(
      'div',
      { class: 'card-head' },
      element('h2', { id: 'plan' }, 'Plan'),
      stateBadge(billing, isSuspended),
    ),
    warningOf(billing, isSuspended),
    element('p', {}, words(billing)),
    billing.configured ? element('div', { class: 'actions' }, ways(billing, problems)) : null,
    problems,
  );
}

function stateBadge({ status, plan }: Billing, isSuspended: boolean): Child {
  if (isSuspended) return badge('danger', 'suspended');
  if (status === 'past_due') return badge('warning', 'payment due');
  return badge(plan === 'pro' ? 'good' : 'plain', plan);
}

function warningOf({ status }: Billing, isSuspended: boolean): Child {
  if (isSuspended)
    return notice(
      'warning',
      element(
        'p',
        {},
        'This tenant is suspended until what is due is paid: its keys are refused. Nothing is deleted.',
      ),
    );
  if (status !== 'past_due') return null;
  return notice(
    'warning',
    element(
      'p',
      {},
      'The last payment failed. Look after the card within 14 days, so that this tenant is not suspended.',
    ),
  );
}

function words({ plan, configured, subscribed, status, cancel_at_period_end, period_end }: Billing): string {
  const name = `This tenant has the ${plan} plan.`;
  if (!configured) return `${name} Paid plans are not set up on this server.`;
  if (cancel_at_period_end) return `${name} It ends on ${period_end}.`;
  if (subscribed && status === 'active') return `${name} It renews on ${period_end}.`;
  return name;
}

function ways({ subscribed, status }: Billing, problems: HTMLElement): Child[] {
  const portal = wayTo('Cards, invoices, cancelling', '/v1/billing/portal', problems, subscribed);
  if (subscribed) return [portal];
  const checkout = wayTo('Upgrade to pro', '/v1/billing/checkout', problems, true);
  return status === 'canceled' ? [checkout, portal] : [checkout];
}

function wayTo(text: string, path: string, problems: HTMLElement, isFirst: boolean): HTMLElement {
  const button = element('button', { type: 'button', class: isFirst ? 'primary' : 'quiet' }, text);
  onClick(button, () => {
    void whileBusy(button, problems, async () => {
      const { url } = await call<{ url: string }>('POST', path);
      // Nothing but a page is gone to, whatever an answer says.
      if (/^https?:\/\//.test(url)) location.assign(url);
    });
  });
  return button;
}

const billNames: Readonly<Partial<Record<BillLine, string>>> = {
  base: 'Plan',
  storage: 'Storage',
  writes: 'Writes',
  queries: 'Queries',
  embedding: 'Embedding',
  reads: 'Reads of object storage',
};

function billCard({ bill, period_start, period_end, usage }: Billing): Child {
  const rows = Object.entries(billNames).map(([line, name]) => [name, formatMoney(bill[line as BillLine])]);
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'bill' },
    element('h2', { id: 'bill' }, 'Bill so far'),
    table({
      caption: `From ${period_start} until ${period_end}`,
      columns: [{ name: 'For' }, { name: 'Amount', numeric: true }],
      rows: [...rows, [element('strong', {}, 'Total'), element('strong', {}, formatMoney(bill.total))]],
    }),
    element(
      'p',
      { class: 'muted' },
      `From ${period_start} until ${period_end}, in UTC days. Storage so far: ${formatPrecise(usage.gb_months)} GB-months.`,
    ),
  );
}

function byDayCard({ days = [] }: Usage): Child {
  const name = 'Bill so far';
  const points = days.map(({ day, bill_so_far }) => ({ label: formatDay(day), value: bill_so_far }));
  const title = element('h2', { id: 'bill-by-day' }, 'By day');
  // A plot of nothing but zeros looks like one that failed.
  if (days.every(({ bill_so_far }) => bill_so_far === 0))
    return element(
      'section',
      { class: 'card', 'aria-labelledby': 'bill-by-day' },
      title,
      element('p', { class: 'muted' }, 'Nothing has cost anything so far.'),
    );
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'bill-by-day' },
    title,
    chart({ kind: 'columns', labelName: 'day', valueName: name, points, omitted: 0 }, formatMoney),
    element(
      'details',
      {},
      element('summary', {}, 'As a table'),
      table({
        caption: `${name} by day`,
        columns: [{ name: 'Day' }, { name, numeric: true }],
        rows: days.map(({ day, bill_so_far }) => [day, formatMoney(bill_so_far)]),
      }),
    ),
  );
}
